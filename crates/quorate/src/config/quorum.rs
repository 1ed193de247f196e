//! `controller.quorum.voters` and `controller.quorum.bootstrap.servers`.

use quorate_core::message::KRaftVersion;
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{Endpoint, Endpoints, ListenerName, NodeId};

use super::listeners::{is_wildcard, split_host_port};
use super::properties::Properties;
use crate::failure::Failure;

const VOTERS: &str = "controller.quorum.voters";
const BOOTSTRAP: &str = "controller.quorum.bootstrap.servers";

/// The static voters, each as id and endpoint, in the order of the file.
pub(crate) fn static_voters(properties: &Properties) -> Result<Vec<(NodeId, Endpoint)>, Failure> {
    let mut voters: Vec<(NodeId, Endpoint)> = Vec::new();
    for entry in properties.list(VOTERS) {
        let (id, endpoint) = parse_voter(entry).ok_or_else(|| {
            properties
                .bad(VOTERS, format!("has the entry {entry}, which is no ID@HOST:PORT"))
                .next("for example 1@controller1.example.com:9093")
        })?;
        if is_wildcard(&endpoint.host) {
            let what = format!("has the host {}, which is not routable", endpoint.host);
            return Err(properties
                .bad(VOTERS, what)
                .next("give the host under which the others find that node"));
        }
        if voters.iter().any(|(other, _)| *other == id) {
            return Err(properties
                .bad(VOTERS, format!("names node {id} twice"))
                .next("remove one of the entries"));
        }
        voters.push((id, endpoint));
    }
    Ok(voters)
}

fn parse_voter(entry: &str) -> Option<(NodeId, Endpoint)> {
    let (id, address) = entry.split_once('@')?;
    let id = NodeId(id.parse().ok()?);
    let (host, port) = split_host_port(address)?;
    (id.is_replica() && !host.is_empty() && port > 0).then(|| (id, Endpoint::new(host, port)))
}

/// Static voters as the set that the replica uses.
pub(crate) fn voter_set(voters: &[(NodeId, Endpoint)], listener: &ListenerName) -> VoterSet {
    let voters = voters.iter().map(|(id, endpoint)| {
        let endpoints = Endpoints::from([(listener.clone(), endpoint.clone())]);
        (*id, Voter { directory: None, endpoints, kraft_versions: KRaftVersion::SUPPORTED })
    });
    VoterSet::new(voters).unwrap_or_default()
}

/// Where to look for the quorum.
pub(crate) fn bootstrap_servers(properties: &Properties) -> Result<Vec<Endpoint>, Failure> {
    properties
        .list(BOOTSTRAP)
        .into_iter()
        .map(|entry| match split_host_port(entry) {
            Some((host, port)) if !host.is_empty() && port > 0 => Ok(Endpoint::new(host, port)),
            _ => Err(properties
                .bad(BOOTSTRAP, format!("has the entry {entry}, which is no HOST:PORT"))
                .next("for example controller1.example.com:9093")),
        })
        .collect()
}

/// One of the two keys must be there, and static voters must contain a controller's own id.
pub(crate) fn check(
    properties: &Properties,
    node: NodeId,
    controller: bool,
    voters: &[(NodeId, Endpoint)],
    servers: &[Endpoint],
) -> Result<(), Failure> {
    if voters.is_empty() && servers.is_empty() {
        return Err(properties
            .failure(format!("neither {BOOTSTRAP} nor {VOTERS} is set"))
            .next(format!("set {BOOTSTRAP} to HOST:PORT of the controllers")));
    }
    if controller && !voters.is_empty() && !voters.iter().any(|(id, _)| *id == node) {
        return Err(properties
            .bad(VOTERS, format!("does not contain node.id={node}"))
            .next("static voters name every controller, this one too"));
    }
    Ok(())
}
