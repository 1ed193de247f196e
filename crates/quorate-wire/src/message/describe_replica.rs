//! DescribeReplica, key 31000: what a replica believes, leader or not. Private to Quorate.
//!
//! DescribeQuorum answers on a leader alone; with no leader, only the replicas' own views tell why.
//! A node lists this API only to clients whose ApiVersions request names the software `quorate`, so
//! no Kafka client ever meets it. Numbers that are not known are -1; ages are in milliseconds.

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::Listener;

/// Asks a node for its own view.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 31000, versions = 0..=0, flexible = 0..)]
pub struct DescribeReplicaRequest {
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What a replica believes.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 31000, versions = 0..=0, flexible = 0..)]
pub struct DescribeReplicaResponse {
    /// An error of the whole request.
    pub error_code: i16,
    /// Its text.
    pub error_message: Option<String>,
    /// The cluster that the node belongs to.
    pub cluster_id: String,
    /// Who speaks; -1 for an anonymous observer.
    #[wire(default = -1)]
    pub node_id: i32,
    /// Its log directory; zero if it has none.
    pub directory_id: Uuid,
    /// The version of Quorate that it runs.
    pub software_version: String,
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// `leader`, `follower`, `candidate`, `prospective`, `unattached` or `resigned`.
    pub role: String,
    /// Its epoch.
    pub epoch: i32,
    /// The leader that it knows.
    #[wire(default = -1)]
    pub leader_id: i32,
    /// Whom it voted for in this epoch.
    #[wire(default = -1)]
    pub voted_id: i32,
    /// The log directory of whom it voted for; zero if unknown.
    pub voted_directory_id: Uuid,
    /// Whether it is in the voter set that it uses.
    pub is_voter: bool,
    /// The first offset of its log.
    pub log_start_offset: i64,
    /// The end of its log.
    #[wire(default = -1)]
    pub log_end_offset: i64,
    /// The epoch of its last record.
    #[wire(default = -1)]
    pub log_end_epoch: i32,
    /// All below is on stable media.
    pub durable_end_offset: i64,
    /// How long its oldest unfinished write has taken so far.
    #[wire(default = -1)]
    pub oldest_unfinished_write_ms: i64,
    /// All below is committed, as far as it knows.
    #[wire(default = -1)]
    pub high_watermark: i64,
    /// The level of kraft.version that it uses.
    pub kraft_version: i16,
    /// The voter set that it uses.
    pub voters: Vec<DescribedVoter>,
    /// The offset of the record that the set comes from; -1 for static voters.
    #[wire(default = -1)]
    pub voters_offset: i64,
    /// How long it has been without a leader.
    #[wire(default = -1)]
    pub leaderless_ms: i64,
    /// The last election round in which it was a nominee.
    pub last_round: Option<DescribedRound>,
    /// Why it takes no part, if it does not.
    pub integrity_fault: Option<String>,
    /// Peers that did not answer last time.
    pub unreachable: Vec<UnreachablePeer>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A voter.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribedVoter {
    /// Which replica.
    pub voter_id: i32,
    /// Its log directory; zero if unknown.
    pub voter_directory_id: Uuid,
    /// Where it listens.
    pub endpoints: Vec<Listener>,
    /// The lowest level of kraft.version that it can run.
    pub min_kraft_version: i16,
    /// The highest.
    pub max_kraft_version: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// One round of an election as its nominee saw it.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribedRound {
    /// The epoch that votes were asked for.
    pub epoch: i32,
    /// Whether it was a round of pre-votes.
    pub pre_vote: bool,
    /// The nominee's log end.
    pub log_end_offset: i64,
    /// The epoch of its last record.
    pub log_end_epoch: i32,
    /// `won`, `lost`, or `open` while it goes on.
    pub outcome: String,
    /// What each other voter said.
    pub answers: Vec<DescribedAnswer>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What a voter said to a nominee.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribedAnswer {
    /// Which voter.
    pub voter_id: i32,
    /// `none`, `granted`, `refused`, or why it could not be asked, as in [`UnreachablePeer::reason`].
    pub kind: String,
    /// The error that it refused with, often NONE.
    pub error_code: i16,
    /// Its epoch.
    #[wire(default = -1)]
    pub epoch: i32,
    /// The leader that it knows.
    #[wire(default = -1)]
    pub leader_id: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A peer that did not answer last time.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct UnreachablePeer {
    /// Which node.
    pub node_id: i32,
    /// `connection-refused`, `reset`, `timed-out`, `unsupported-version`, `malformed`, or `error-` and a code.
    pub reason: String,
    /// How long ago that began.
    pub since_ms: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
