//! BeginQuorumEpoch, key 53 (KIP-595; v1 KIP-853).

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::{LeaderEndpoint, NodeEndpoint};

/// A leader announces itself.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 53, versions = 0..=1, flexible = 1..)]
pub struct BeginQuorumEpochRequest {
    /// The cluster that the sender belongs to; absent for "any".
    pub cluster_id: Option<String>,
    /// The voter that is meant, or -1.
    #[wire(since = 1, default = -1, ignorable)]
    pub voter_id: i32,
    /// The topics; for Raft exactly one.
    pub topics: Vec<BeginQuorumEpochRequestTopic>,
    /// Where the leader listens.
    #[wire(since = 1, ignorable)]
    pub leader_endpoints: Vec<LeaderEndpoint>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`BeginQuorumEpochRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct BeginQuorumEpochRequestTopic {
    /// The topic's name.
    pub topic_name: String,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<BeginQuorumEpochRequestPartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`BeginQuorumEpochRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct BeginQuorumEpochRequestPartition {
    /// The partition.
    pub partition_index: i32,
    /// The log directory of the voter that is meant; zero if unknown.
    #[wire(since = 1, ignorable)]
    pub voter_directory_id: Uuid,
    /// The leader.
    pub leader_id: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// How the announcement was taken.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 53, versions = 0..=1, flexible = 1..)]
pub struct BeginQuorumEpochResponse {
    /// An error of the whole request.
    pub error_code: i16,
    /// The topics.
    pub topics: Vec<BeginQuorumEpochResponseTopic>,
    /// Where the leaders named below listen.
    #[wire(since = 1, tag = 0, ignorable)]
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`BeginQuorumEpochResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct BeginQuorumEpochResponseTopic {
    /// The topic's name.
    pub topic_name: String,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<BeginQuorumEpochResponsePartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`BeginQuorumEpochResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct BeginQuorumEpochResponsePartition {
    /// The partition.
    pub partition_index: i32,
    /// An error of this partition.
    pub error_code: i16,
    /// The leader that the answering node knows, or -1.
    pub leader_id: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
