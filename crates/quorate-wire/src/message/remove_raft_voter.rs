//! RemoveRaftVoter, key 81 (KIP-853).

use crate::codec::{UnknownTags, Uuid, Wire};

/// Asks the leader to make a voter an observer.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 81, versions = 0..=0, flexible = 0..)]
pub struct RemoveRaftVoterRequest {
    /// The cluster that the sender takes us for; absent for "any".
    #[wire(default = Some(String::new()))]
    pub cluster_id: Option<String>,
    /// Which replica.
    pub voter_id: i32,
    /// Its log directory.
    pub voter_directory_id: Uuid,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether the voter is gone.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 81, versions = 0..=0, flexible = 0..)]
pub struct RemoveRaftVoterResponse {
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
