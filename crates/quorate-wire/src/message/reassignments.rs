//! AlterPartitionReassignments, key 45 (KIP-455; v1 KIP-860), and ListPartitionReassignments, key 46 (KIP-455).

use crate::codec::{UnknownTags, Wire};

/// Asks to move replicas, or to stop moving them.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 45, versions = 0..=1, flexible = 0..)]
pub struct AlterPartitionReassignmentsRequest {
    /// How long it may take, in milliseconds.
    #[wire(default = 60000)]
    pub timeout_ms: i32,
    /// Whether the number of replicas may change.
    #[wire(since = 1, default = true)]
    pub allow_replication_factor_change: bool,
    /// The topics.
    pub topics: Vec<ReassignableTopic>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`AlterPartitionReassignmentsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ReassignableTopic {
    /// The topic's name.
    pub name: String,
    /// The partitions.
    pub partitions: Vec<ReassignablePartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition and the replicas that it is to have.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ReassignablePartition {
    /// The partition.
    pub partition_index: i32,
    /// The replicas that it is to have; null ends a reassignment.
    pub replicas: Option<Vec<i32>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each partition.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 45, versions = 0..=1, flexible = 0..)]
pub struct AlterPartitionReassignmentsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// Whether the number of replicas may change.
    #[wire(since = 1, default = true, ignorable)]
    pub allow_replication_factor_change: bool,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// What came of each.
    pub responses: Vec<ReassignableTopicResponse>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`AlterPartitionReassignmentsResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ReassignableTopicResponse {
    /// The topic's name.
    pub name: String,
    /// The partitions.
    pub partitions: Vec<ReassignablePartitionResponse>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of one partition.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ReassignablePartitionResponse {
    /// The partition.
    pub partition_index: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Asks which replicas are being moved.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 46, versions = 0..=0, flexible = 0..)]
pub struct ListPartitionReassignmentsRequest {
    /// How long it may take, in milliseconds.
    #[wire(default = 60000)]
    pub timeout_ms: i32,
    /// The partitions asked about; null for all.
    pub topics: Option<Vec<ListPartitionReassignmentsTopics>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`ListPartitionReassignmentsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ListPartitionReassignmentsTopics {
    /// The topic's name.
    pub name: String,
    /// The partitions.
    pub partition_indexes: Vec<i32>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The replicas that are being moved.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 46, versions = 0..=0, flexible = 0..)]
pub struct ListPartitionReassignmentsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The topics.
    pub topics: Vec<OngoingTopicReassignment>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`ListPartitionReassignmentsResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct OngoingTopicReassignment {
    /// The topic's name.
    pub name: String,
    /// The partitions.
    pub partitions: Vec<OngoingPartitionReassignment>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition whose replicas are being moved.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct OngoingPartitionReassignment {
    /// The partition.
    pub partition_index: i32,
    /// The replicas.
    pub replicas: Vec<i32>,
    /// The replicas that are being added.
    pub adding_replicas: Vec<i32>,
    /// The replicas that are being removed.
    pub removing_replicas: Vec<i32>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
