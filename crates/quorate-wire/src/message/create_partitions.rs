//! CreatePartitions, key 37 (KIP-195).

use crate::codec::{UnknownTags, Wire};

/// Asks for more partitions.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 37, versions = 0..=3, flexible = 2..)]
pub struct CreatePartitionsRequest {
    /// The topics.
    pub topics: Vec<CreatePartitionsTopic>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: i32,
    /// Whether to check alone and change nothing.
    pub validate_only: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic that is to have more partitions.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatePartitionsTopic {
    /// The topic's name.
    pub name: String,
    /// How many partitions there are to be.
    pub count: i32,
    /// Which brokers get the replicas, if the client decides.
    #[wire(default = Some(Vec::new()))]
    pub assignments: Option<Vec<CreatePartitionsAssignment>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Where the replicas of a new partition go.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatePartitionsAssignment {
    /// The brokers.
    pub broker_ids: Vec<i32>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each topic.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 37, versions = 0..=3, flexible = 2..)]
pub struct CreatePartitionsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// What came of each.
    pub results: Vec<CreatePartitionsTopicResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of one topic.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatePartitionsTopicResult {
    /// The topic's name.
    pub name: String,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
