//! DescribeTopicPartitions, key 75 (KIP-966).

use crate::codec::{UnknownTags, Uuid, Wire};

/// Asks for topics with their partitions, a page at a time.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 75, versions = 0..=0, flexible = 0..)]
pub struct DescribeTopicPartitionsRequest {
    /// The topics.
    pub topics: Vec<DescribeTopicPartitionsRequestTopic>,
    /// How many partitions the answer may have.
    #[wire(default = 2000)]
    pub response_partition_limit: i32,
    /// Where to go on; null for the beginning.
    pub cursor: Option<TopicPartitionCursor>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`DescribeTopicPartitionsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeTopicPartitionsRequestTopic {
    /// The topic's name.
    pub name: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct TopicPartitionCursor {
    /// The topic's name.
    pub topic_name: String,
    /// The partition.
    pub partition_index: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A page of topics with their partitions.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 75, versions = 0..=0, flexible = 0..)]
pub struct DescribeTopicPartitionsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// The topics.
    pub topics: Vec<DescribeTopicPartitionsResponseTopic>,
    /// Where the next request goes on; null at the end.
    pub next_cursor: Option<TopicPartitionCursor>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`DescribeTopicPartitionsResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeTopicPartitionsResponseTopic {
    /// An error, or 0.
    pub error_code: i16,
    /// The topic's name.
    #[wire(default = Some(String::new()))]
    pub name: Option<String>,
    /// The topic's id.
    pub topic_id: Uuid,
    /// Whether Kafka keeps it for itself.
    pub is_internal: bool,
    /// The partitions.
    pub partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    /// What the client may do with the topic, a bit each; the lowest number if it did not ask.
    #[wire(default = i32::MIN)]
    pub topic_authorized_operations: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`DescribeTopicPartitionsResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeTopicPartitionsResponsePartition {
    /// An error, or 0.
    pub error_code: i16,
    /// The partition.
    pub partition_index: i32,
    /// The leader, or -1.
    pub leader_id: i32,
    /// The leader's epoch.
    #[wire(default = -1)]
    pub leader_epoch: i32,
    /// The replicas.
    pub replica_nodes: Vec<i32>,
    /// The in-sync replicas.
    pub isr_nodes: Vec<i32>,
    /// Replicas out of sync that may lead nevertheless; null if there are none.
    pub eligible_leader_replicas: Option<Vec<i32>>,
    /// Replicas that were eligible before an unclean stop; null if there are none.
    pub last_known_elr: Option<Vec<i32>>,
    /// The replicas that are down.
    pub offline_replicas: Vec<i32>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
