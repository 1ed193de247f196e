//! EndQuorumEpoch, key 54 (KIP-595; v1 KIP-853).

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::{LeaderEndpoint, NodeEndpoint};

/// A leader gives up its epoch.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 54, versions = 0..=1, flexible = 1..)]
pub struct EndQuorumEpochRequest {
    /// The cluster that the sender belongs to; absent for "any".
    pub cluster_id: Option<String>,
    /// The topics; for Raft exactly one.
    pub topics: Vec<EndQuorumEpochRequestTopic>,
    /// Where the leader listens.
    #[wire(since = 1, ignorable)]
    pub leader_endpoints: Vec<LeaderEndpoint>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`EndQuorumEpochRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct EndQuorumEpochRequestTopic {
    /// The topic's name.
    pub topic_name: String,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<EndQuorumEpochRequestPartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of an [`EndQuorumEpochRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct EndQuorumEpochRequestPartition {
    /// The partition.
    pub partition_index: i32,
    /// The leader that resigns.
    pub leader_id: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Who should succeed, best first; version 0 alone.
    #[wire(until = 0, ignorable)]
    pub preferred_successors: Vec<i32>,
    /// Who should succeed, best first.
    #[wire(since = 1, ignorable)]
    pub preferred_candidates: Vec<ReplicaInfo>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A replica that should succeed.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ReplicaInfo {
    /// Which replica.
    pub candidate_id: i32,
    /// Its log directory; zero if unknown.
    pub candidate_directory_id: Uuid,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// How the announcement was taken.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 54, versions = 0..=1, flexible = 1..)]
pub struct EndQuorumEpochResponse {
    /// An error of the whole request.
    pub error_code: i16,
    /// The topics.
    pub topics: Vec<EndQuorumEpochResponseTopic>,
    /// Where the leaders named below listen.
    #[wire(since = 1, tag = 0, ignorable)]
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`EndQuorumEpochResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct EndQuorumEpochResponseTopic {
    /// The topic's name.
    pub topic_name: String,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<EndQuorumEpochResponsePartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of an [`EndQuorumEpochResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct EndQuorumEpochResponsePartition {
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
