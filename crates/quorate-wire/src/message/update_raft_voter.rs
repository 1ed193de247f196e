//! UpdateRaftVoter, key 82 (KIP-853).

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::control::KRaftVersionFeature;
use crate::message::Listener;

/// A voter tells the leader where it listens and what it can run.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 82, versions = 0..=0, flexible = 0..)]
pub struct UpdateRaftVoterRequest {
    /// The cluster that the sender takes us for; absent for "any".
    #[wire(default = Some(String::new()))]
    pub cluster_id: Option<String>,
    /// The sender's epoch.
    pub current_leader_epoch: i32,
    /// Which replica.
    pub voter_id: i32,
    /// Its log directory.
    pub voter_directory_id: Uuid,
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// The levels of kraft.version that it can run.
    #[wire(name = "kRaftVersionFeature")]
    pub kraft_version_feature: KRaftVersionFeature,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether the leader took it.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 82, versions = 0..=0, flexible = 0..)]
pub struct UpdateRaftVoterResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// The leader that the answering node knows.
    #[wire(tag = 0)]
    pub current_leader: UpdateRaftVoterLeader,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The leader, and where it listens.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct UpdateRaftVoterLeader {
    /// The leader, or -1.
    #[wire(default = -1)]
    pub leader_id: i32,
    /// The leader's epoch.
    #[wire(default = -1)]
    pub leader_epoch: i32,
    /// A host name or address.
    pub host: String,
    /// A port.
    pub port: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
