//! CreateTopics, key 19 (KIP-4; v5 KIP-525; v7 KIP-516).

use crate::codec::{UnknownTags, Uuid, Wire};

/// Asks for topics.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 19, versions = 2..=7, flexible = 5..)]
pub struct CreateTopicsRequest {
    /// The topics.
    pub topics: Vec<CreatableTopic>,
    /// How long it may take, in milliseconds.
    #[wire(default = 60000)]
    pub timeout_ms: i32,
    /// Whether to check alone and change nothing.
    pub validate_only: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic to be made.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatableTopic {
    /// The topic's name.
    pub name: String,
    /// How many partitions, or -1.
    pub num_partitions: i32,
    /// How many replicas each has, or -1.
    pub replication_factor: i16,
    /// Which brokers get the replicas, if the client decides.
    pub assignments: Vec<CreatableReplicaAssignment>,
    /// The configurations.
    pub configs: Vec<CreatableTopicConfig>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Where the replicas of a partition go.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatableReplicaAssignment {
    /// The partition.
    pub partition_index: i32,
    /// The brokers.
    pub broker_ids: Vec<i32>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A configuration of a topic to be made.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatableTopicConfig {
    /// The key.
    pub name: String,
    /// The value.
    #[wire(default = Some(String::new()))]
    pub value: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each topic.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 19, versions = 2..=7, flexible = 5..)]
pub struct CreateTopicsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// The topics.
    pub topics: Vec<CreatableTopicResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic that was made, or why not.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatableTopicResult {
    /// The topic's name.
    pub name: String,
    /// The topic's id.
    #[wire(since = 7, ignorable)]
    pub topic_id: Uuid,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// Why there are no configurations.
    #[wire(since = 5, tag = 0, ignorable)]
    pub topic_config_error_code: i16,
    /// How many partitions, or -1.
    #[wire(since = 5, default = -1, ignorable)]
    pub num_partitions: i32,
    /// How many replicas each has, or -1.
    #[wire(since = 5, default = -1, ignorable)]
    pub replication_factor: i16,
    /// The configurations.
    #[wire(since = 5, default = Some(Vec::new()), ignorable)]
    pub configs: Option<Vec<CreatableTopicConfigs>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A configuration of a topic that was made.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatableTopicConfigs {
    /// The key.
    #[wire(since = 5)]
    pub name: String,
    /// The value.
    #[wire(since = 5, default = Some(String::new()))]
    pub value: Option<String>,
    /// Whether it cannot be changed.
    #[wire(since = 5)]
    pub read_only: bool,
    /// Where the value comes from, or -1.
    #[wire(since = 5, default = -1, ignorable)]
    pub config_source: i8,
    /// Whether the value is kept secret.
    #[wire(since = 5)]
    pub is_sensitive: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
