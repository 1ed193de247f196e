//! ElectLeaders, key 43 (KIP-183; v1 KIP-460).

use crate::codec::{UnknownTags, Wire};

/// Asks for elections of partition leaders.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 43, versions = 0..=2, flexible = 2..)]
pub struct ElectLeadersRequest {
    /// 0 for the preferred leader, 1 for any replica.
    #[wire(since = 1)]
    pub election_type: i8,
    /// The partitions; null for all.
    #[wire(default = Some(Vec::new()))]
    pub topic_partitions: Option<Vec<ElectLeadersTopic>>,
    /// How long it may take, in milliseconds.
    #[wire(default = 60000)]
    pub timeout_ms: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`ElectLeadersRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ElectLeadersTopic {
    /// The topic's name.
    pub topic: String,
    /// The partitions.
    pub partitions: Vec<i32>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of the elections.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 43, versions = 0..=2, flexible = 2..)]
pub struct ElectLeadersResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    #[wire(since = 1)]
    pub error_code: i16,
    /// What came of each topic.
    pub replica_election_results: Vec<ReplicaElectionResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`ElectLeadersResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ReplicaElectionResult {
    /// The topic's name.
    pub topic: String,
    /// What came of each partition.
    pub partition_result: Vec<PartitionElectionResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of the election of one partition.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct PartitionElectionResult {
    /// The partition.
    pub partition_id: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
