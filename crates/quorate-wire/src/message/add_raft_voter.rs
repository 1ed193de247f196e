//! AddRaftVoter, key 80 (KIP-853).

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::Listener;

/// Asks the leader to make a replica a voter.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 80, versions = 0..=1, flexible = 0..)]
pub struct AddRaftVoterRequest {
    /// The cluster that the sender takes us for; absent for "any".
    #[wire(default = Some(String::new()))]
    pub cluster_id: Option<String>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: i32,
    /// Which replica.
    pub voter_id: i32,
    /// Its log directory.
    pub voter_directory_id: Uuid,
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// Whether the answer waits for the new voter set to be committed, or comes once the leader has written it.
    #[wire(since = 1, default = true)]
    pub ack_when_committed: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether the replica is a voter now.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 80, versions = 0..=1, flexible = 0..)]
pub struct AddRaftVoterResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
