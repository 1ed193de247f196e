//! What a replica is told at its start.

use alloc::vec::Vec;
use core::time::Duration;

use crate::ids::{
    DirectoryId, Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset, ReplicaKey,
};
use crate::io::ElectionState;
use crate::message::ControlRecord;
use crate::voters::VoterSet;

/// A replica's configuration. Names and defaults are those of `controller.quorum.*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// `node.id`.
    pub node: NodeId,
    /// `directory.id` of the metadata log directory.
    pub directory: DirectoryId,
    /// This replica's advertised controller endpoints.
    pub endpoints: Endpoints,
    /// The first of `controller.listener.names`: replicas talk to each other through it.
    pub default_listener: ListenerName,
    /// `controller.quorum.voters`; empty unless they are configured.
    pub static_voters: VoterSet,
    /// `controller.quorum.bootstrap.servers`; where it is empty the static voters stand in.
    pub bootstrap_servers: Vec<Endpoint>,
    /// Whether this replica stands for election. One that does not follows and votes, and never leads, not even as the
    /// only voter.
    pub campaigns: bool,
    /// `controller.quorum.election.timeout.ms`; each election draws from it up to twice as much.
    pub election_timeout: Duration,
    /// `controller.quorum.election.backoff.max.ms`: for whom the resigned leader did not prefer.
    pub election_backoff_max: Duration,
    /// `controller.quorum.fetch.timeout.ms`.
    pub fetch_timeout: Duration,
    /// `controller.quorum.request.timeout.ms`.
    pub request_timeout: Duration,
    /// `controller.quorum.retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `controller.quorum.append.linger.ms`: an upper bound, see `append.rs`.
    pub linger: Duration,
    /// `controller.quorum.fetch.max.bytes`.
    pub fetch_max_bytes: u32,
    /// How long a leader lets a Fetch wait that only a new high watermark would answer, so that records which come next
    /// find it parked: an answer without records keeps its fetcher away for a round trip.
    pub high_watermark_linger: Duration,
    /// How long a leader may hold a Fetch of ours.
    pub fetch_max_wait: Duration,
    /// The largest batch, in bytes of its encoding.
    pub max_batch_bytes: usize,
    /// How many bytes a leader may have appended that are not committed.
    pub max_uncommitted_bytes: usize,
    /// How many Fetches a leader parks; beyond it the oldest is answered early.
    pub max_parked_fetches: usize,
    /// How far apart the voters' campaigns lie after the leader's death has shown on the socket, at the least:
    /// some round trips and a sync. Zero turns such hints off. See `hints.rs`.
    pub hint_delay: Duration,
    /// How long a shutdown may take before the node stops waiting for its successor.
    pub shutdown_timeout: Duration,
    /// The seed of all chance in this replica.
    pub seed: u64,
}

impl Config {
    /// Kafka's defaults (except the linger, which is 0) for a replica that knows nobody yet.
    pub fn new(node: NodeId, directory: DirectoryId, default_listener: ListenerName) -> Config {
        Config {
            node,
            directory,
            endpoints: Endpoints::new(),
            default_listener,
            static_voters: VoterSet::default(),
            bootstrap_servers: Vec::new(),
            campaigns: true,
            election_timeout: Duration::from_millis(1000),
            election_backoff_max: Duration::from_millis(1000),
            fetch_timeout: Duration::from_millis(2000),
            request_timeout: Duration::from_millis(2000),
            retry_backoff: Duration::from_millis(20),
            linger: Duration::ZERO,
            fetch_max_bytes: 1 << 20,
            high_watermark_linger: Duration::from_millis(1),
            fetch_max_wait: Duration::from_millis(500),
            max_batch_bytes: 8 << 20,
            max_uncommitted_bytes: 64 << 20,
            max_parked_fetches: 1024,
            hint_delay: Duration::from_millis(10),
            shutdown_timeout: Duration::from_secs(5),
            seed: 0,
        }
    }

    /// How long a leader goes on without hearing from a majority: one and a half fetch timeouts.
    pub fn check_quorum_timeout(&self) -> Duration {
        self.fetch_timeout * 3 / 2
    }

    /// This replica's key.
    pub fn key(&self) -> ReplicaKey {
        ReplicaKey::new(self.node, Some(self.directory))
    }
}

/// What storage found in the directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Recovered {
    /// The quorum-state file, if there is one.
    pub election: Option<ElectionState>,
    /// The first offset of the log.
    pub log_start: Offset,
    /// The log end.
    pub log_end: Offset,
    /// Each epoch in the log with its first offset, ascending.
    pub epochs: Vec<(Epoch, Offset)>,
    /// The control records of the 0-0 checkpoint.
    pub bootstrap: Vec<ControlRecord>,
    /// The control records of the log with their offsets, ascending.
    pub control: Vec<(Offset, ControlRecord)>,
}
