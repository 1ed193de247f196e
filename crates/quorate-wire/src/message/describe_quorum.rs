//! DescribeQuorum, key 55 (KIP-595; v1 KIP-836; v2 KIP-853).

use crate::codec::{UnknownTags, Uuid, Wire};
use crate::message::Listener;

/// Asks a leader for the state of its quorum.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 55, versions = 0..=2, flexible = 0..)]
pub struct DescribeQuorumRequest {
    /// The topics.
    pub topics: Vec<DescribeQuorumRequestTopic>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`DescribeQuorumRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeQuorumRequestTopic {
    /// The topic's name.
    pub topic_name: String,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<DescribeQuorumRequestPartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`DescribeQuorumRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeQuorumRequestPartition {
    /// The partition.
    pub partition_index: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The state of a quorum as its leader sees it.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 55, versions = 0..=2, flexible = 0..)]
pub struct DescribeQuorumResponse {
    /// An error of the whole request.
    pub error_code: i16,
    /// Its text; empty on success.
    #[wire(since = 2, default = Some(String::new()), ignorable)]
    pub error_message: Option<String>,
    /// The topics.
    pub topics: Vec<DescribeQuorumResponseTopic>,
    /// Where the voters listen.
    #[wire(since = 2)]
    pub nodes: Vec<DescribeQuorumNode>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`DescribeQuorumResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeQuorumResponseTopic {
    /// The topic's name.
    pub topic_name: String,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<DescribeQuorumResponsePartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`DescribeQuorumResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeQuorumResponsePartition {
    /// The partition.
    pub partition_index: i32,
    /// An error of this partition.
    pub error_code: i16,
    /// Its text; empty on success.
    #[wire(since = 2, default = Some(String::new()), ignorable)]
    pub error_message: Option<String>,
    /// The leader that the answering node knows, or -1.
    pub leader_id: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// The leader's high watermark, or -1.
    pub high_watermark: i64,
    /// The voters.
    pub current_voters: Vec<ReplicaState>,
    /// The observers that fetched of late.
    pub observers: Vec<ReplicaState>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// How far a replica has come.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ReplicaState {
    /// Which replica.
    pub replica_id: i32,
    /// Its log directory; zero if unknown, and below version 2.
    #[wire(since = 2)]
    pub replica_directory_id: Uuid,
    /// Its log end, or -1.
    pub log_end_offset: i64,
    /// When it fetched last, in milliseconds since 1970, or -1.
    #[wire(since = 1, default = -1, ignorable)]
    pub last_fetch_timestamp: i64,
    /// When it had all last, in milliseconds since 1970, or -1.
    #[wire(since = 1, default = -1, ignorable)]
    pub last_caught_up_timestamp: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeQuorumNode {
    /// Which node.
    pub node_id: i32,
    /// Its listeners.
    pub listeners: Vec<Listener>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
