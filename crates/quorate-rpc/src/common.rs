//! What several RPCs share: the one partition, cluster ids, keys, leaders and endpoints.

use quorate_core::ids::{
    DirectoryId, Endpoint, Endpoints, Epoch, ListenerName, NodeId, ReplicaKey,
};
use quorate_core::message::{CurrentLeader, ErrorCode};
use quorate_wire::Uuid;
use quorate_wire::message::{Listener, NodeEndpoint};

/// The topic of the metadata log; its id is [`Uuid::METADATA_TOPIC`].
pub(crate) const TOPIC: &str = "__cluster_metadata";
/// Its only partition.
pub(crate) const PARTITION: i32 = 0;

/// The only element; none if there are none or several.
pub(crate) fn only<T>(elements: Vec<T>) -> Option<T> {
    <[T; 1]>::try_from(elements).ok().map(|[element]| element)
}

/// An absent cluster id fits any cluster.
pub(crate) fn check_cluster(theirs: Option<&str>, ours: &str) -> Result<(), ErrorCode> {
    match theirs {
        Some(theirs) if theirs != ours => Err(ErrorCode::INCONSISTENT_CLUSTER_ID),
        _ => Ok(()),
    }
}

pub(crate) fn key_in(id: i32, directory: Uuid) -> ReplicaKey {
    ReplicaKey::new(NodeId(id), DirectoryId::from_bytes(directory.0))
}

/// A negative id means that nobody in particular is meant.
pub(crate) fn voter_in(id: i32, directory: Uuid) -> Option<ReplicaKey> {
    (id >= 0).then(|| key_in(id, directory))
}

pub(crate) fn voter_out(voter: Option<&ReplicaKey>) -> (i32, Uuid) {
    voter.map_or((-1, Uuid::ZERO), |voter| (voter.id.0, directory_out(voter)))
}

pub(crate) fn directory_out(key: &ReplicaKey) -> Uuid {
    key.directory.map_or(Uuid::ZERO, |directory| Uuid(*directory.as_bytes()))
}

/// Of two endpoints under one name the last counts.
pub(crate) fn endpoints_in(listeners: Vec<Listener>) -> Endpoints {
    listeners
        .into_iter()
        .map(|l| (ListenerName::new(&l.name), Endpoint::new(&l.host, l.port)))
        .collect()
}

pub(crate) fn endpoints_out(endpoints: &Endpoints) -> Vec<Listener> {
    endpoints
        .iter()
        .map(|(name, endpoint)| Listener {
            name: name.as_str().to_owned(),
            host: endpoint.host.to_string(),
            port: endpoint.port,
            ..Listener::default()
        })
        .collect()
}

pub(crate) fn leader_in(id: i32) -> Option<NodeId> {
    Some(NodeId(id)).filter(|id| id.is_replica())
}

pub(crate) fn leader_out(leader: Option<NodeId>) -> i32 {
    leader.map_or(-1, |leader| leader.0)
}

/// The leader with its endpoint among those that came along.
pub(crate) fn current_in(leader_id: i32, epoch: i32, nodes: Vec<NodeEndpoint>) -> CurrentLeader {
    let leader = leader_in(leader_id);
    let endpoint = nodes
        .into_iter()
        .find(|node| Some(NodeId(node.node_id)) == leader)
        .map(|node| Endpoint::new(&node.host, node.port));
    CurrentLeader { epoch: Epoch(epoch), leader, endpoint }
}

/// For the versions that have node endpoints: the leader's, if both are known.
pub(crate) fn nodes_out(current: &CurrentLeader) -> Vec<NodeEndpoint> {
    let node =
        current.leader.zip(current.endpoint.as_ref()).map(|(leader, endpoint)| NodeEndpoint {
            node_id: leader.0,
            host: endpoint.host.to_string(),
            port: endpoint.port,
            ..NodeEndpoint::default()
        });
    node.into_iter().collect()
}
