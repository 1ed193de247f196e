//! QuorumStateData: what the quorum-state file holds (KIP-595; v1 KIP-853).
//!
//! The file itself is JSON; these are its members as Kafka's schema has them.

use crate::codec::{UnknownTags, Uuid, Wire};

/// A replica's memory of elections.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(versions = 0..=1, flexible = 0..)]
pub struct QuorumStateData {
    /// Always empty.
    #[wire(until = 0)]
    pub cluster_id: String,
    /// The leader, or -1.
    #[wire(default = -1)]
    pub leader_id: i32,
    /// The epoch.
    #[wire(default = -1)]
    pub leader_epoch: i32,
    /// Who got the vote of this epoch, or -1.
    #[wire(default = -1)]
    pub voted_id: i32,
    /// Its log directory; zero if unknown.
    #[wire(since = 1)]
    pub voted_directory_id: Uuid,
    /// Always 0.
    #[wire(until = 0)]
    pub applied_offset: i64,
    /// The configured voters.
    #[wire(until = 0, default = Some(Vec::new()))]
    pub current_voters: Option<Vec<QuorumStateVoter>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A voter in [`QuorumStateData`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct QuorumStateVoter {
    /// Which replica.
    pub voter_id: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
