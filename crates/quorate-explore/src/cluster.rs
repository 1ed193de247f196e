//! Who the replicas are and how they are configured.
//!
//! Time is the explorer's: a replica's clock stands still until one of its deadlines is let pass. Requests and
//! parked Fetches never run out of time by themselves, since losses are the explorer's too; what failed is tried
//! again after a backoff that ends before any other deadline.

use std::time::Duration;

use quorate_core::config::Config;
use quorate_core::message::{ControlRecord, KRaftVersion, Via};
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{DirectoryId, Endpoint, Endpoints, ListenerName, NodeId, ReplicaKey};

use crate::bound::Bound;

/// Longer than any run.
const NEVER: Duration = Duration::from_secs(1_000_000);

const FIRST_PORT: u16 = 9000;

/// What does not change in a run.
pub(crate) struct Cluster {
    pub(crate) bound: Bound,
    pub(crate) configs: Vec<Config>,
    pub(crate) bootstrap: Vec<ControlRecord>,
    pub(crate) voters: VoterSet,
    pub(crate) via: Via,
}

impl Cluster {
    pub(crate) fn new(bound: Bound) -> Cluster {
        let listener = ListenerName::new("CONTROLLER");
        let endpoints = |node| Endpoints::from([(listener.clone(), endpoint(node))]);
        let level = KRaftVersion(i16::from(!bound.static_voters));
        let voters = VoterSet::new((0..bound.voters).map(|node| {
            let voter = Voter {
                directory: key(node).directory.filter(|_| !bound.static_voters),
                endpoints: endpoints(node),
                kraft_versions: (KRaftVersion(0), level),
            };
            (id(node), voter)
        }))
        .expect("ids differ");
        let mut bootstrap = Vec::new();
        if !bound.static_voters {
            bootstrap.push(ControlRecord::KRaftVersion(KRaftVersion(1)));
            bootstrap.push(ControlRecord::Voters(voters.clone()));
        }
        let configs = (0..bound.nodes()).map(|node| {
            let directory = key(node).directory.expect("a key of both parts");
            let mut config = Config::new(id(node), directory, listener.clone());
            config.endpoints = endpoints(node);
            // A node whose only bootstrap server is itself does not search: it waits until the leader finds it.
            let searches = bound.searching || node >= bound.voters;
            let server = if searches { (node + 1) % bound.voters } else { node };
            config.bootstrap_servers = vec![endpoint(server)];
            if bound.static_voters {
                config.static_voters = voters.clone();
            }
            config.request_timeout = NEVER;
            config.fetch_max_wait = Duration::from_millis(i32::MAX.unsigned_abs().into());
            config.retry_backoff = Duration::from_millis(1);
            config.high_watermark_linger = Duration::ZERO;
            config
        });
        let configs = configs.collect();
        Cluster { bound, configs, bootstrap, voters, via: Via(listener) }
    }
}

pub(crate) fn id(node: usize) -> NodeId {
    NodeId(i32::try_from(node).expect("few nodes"))
}

pub(crate) fn key(node: usize) -> ReplicaKey {
    let mut directory = [7; 16];
    directory[15] = u8::try_from(node).expect("few nodes");
    ReplicaKey::new(id(node), DirectoryId::from_bytes(directory))
}

fn endpoint(node: usize) -> Endpoint {
    Endpoint::new("host", FIRST_PORT + u16::try_from(node).expect("few nodes"))
}

/// The node that listens there.
pub(crate) fn node_at(endpoint: &Endpoint) -> usize {
    usize::from(endpoint.port - FIRST_PORT)
}
