//! Vote, key 52 (KIP-595; v1 KIP-853; v2 KIP-996).

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::NodeEndpoint;

/// Asks for a vote, or whether one would be granted.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 52, versions = 0..=2, flexible = 0..)]
pub struct VoteRequest {
    /// The cluster that the sender belongs to; absent for "any".
    pub cluster_id: Option<String>,
    /// The voter that is asked, or -1.
    #[wire(since = 1, default = -1, ignorable)]
    pub voter_id: i32,
    /// The topics; for Raft exactly one.
    pub topics: Vec<VoteRequestTopic>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`VoteRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct VoteRequestTopic {
    /// The topic's name.
    pub topic_name: String,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<VoteRequestPartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`VoteRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct VoteRequestPartition {
    /// The partition.
    pub partition_index: i32,
    /// The asking replica's epoch.
    pub replica_epoch: i32,
    /// The asking replica.
    pub replica_id: i32,
    /// Its log directory; zero if unknown.
    #[wire(since = 1, ignorable)]
    pub replica_directory_id: Uuid,
    /// The log directory of the voter that is asked; zero if unknown.
    #[wire(since = 1, ignorable)]
    pub voter_directory_id: Uuid,
    /// The epoch of the asking replica's last record.
    pub last_offset_epoch: i32,
    /// Its log end offset.
    pub last_offset: i64,
    /// Whether this only asks how a vote would go.
    #[wire(since = 2)]
    pub pre_vote: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// How a vote was decided.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 52, versions = 0..=2, flexible = 0..)]
pub struct VoteResponse {
    /// An error of the whole request.
    pub error_code: i16,
    /// The topics.
    pub topics: Vec<VoteResponseTopic>,
    /// Where the leaders named below listen.
    #[wire(since = 1, tag = 0, ignorable)]
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`VoteResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct VoteResponseTopic {
    /// The topic's name.
    pub topic_name: String,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<VoteResponsePartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`VoteResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct VoteResponsePartition {
    /// The partition.
    pub partition_index: i32,
    /// An error of this partition.
    pub error_code: i16,
    /// The leader that the voter knows, or -1.
    pub leader_id: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Whether the vote is granted.
    pub vote_granted: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
