//! Metadata, key 3 (v8 KIP-430; v10 KIP-516; v11 KIP-700; v13 KIP-1102).

use crate::codec::{UnknownTags, Uuid, Wire};

/// Asks a broker for brokers, topics and partitions.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 3, versions = 0..=13, flexible = 9..)]
pub struct MetadataRequest {
    /// The topics; null for all.
    #[wire(default = Some(Vec::new()), nullable_since = 1)]
    pub topics: Option<Vec<MetadataRequestTopic>>,
    /// Whether a topic that is missing may be made.
    #[wire(since = 4, default = true)]
    pub allow_auto_topic_creation: bool,
    /// Whether to tell what the client may do with the cluster.
    #[wire(since = 8, until = 10)]
    pub include_cluster_authorized_operations: bool,
    /// Whether to tell what the client may do with each topic.
    #[wire(since = 8)]
    pub include_topic_authorized_operations: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`MetadataRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct MetadataRequestTopic {
    /// The topic's id.
    #[wire(since = 10, ignorable)]
    pub topic_id: Uuid,
    /// The topic's name; null if the id counts.
    #[wire(default = Some(String::new()), nullable_since = 10)]
    pub name: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The brokers, and the topics with their partitions.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 3, versions = 0..=13, flexible = 9..)]
pub struct MetadataResponse {
    /// How long the request was throttled, in milliseconds.
    #[wire(since = 3, ignorable)]
    pub throttle_time_ms: i32,
    /// The brokers.
    pub brokers: Vec<MetadataResponseBroker>,
    /// The cluster.
    #[wire(since = 2, ignorable)]
    pub cluster_id: Option<String>,
    /// The active controller, or -1.
    #[wire(since = 1, default = -1, ignorable)]
    pub controller_id: i32,
    /// The topics.
    pub topics: Vec<MetadataResponseTopic>,
    /// What the client may do with the cluster, a bit each; the lowest number if it did not ask.
    #[wire(since = 8, until = 10, default = i32::MIN)]
    pub cluster_authorized_operations: i32,
    /// An error, or 0.
    #[wire(since = 13, ignorable)]
    pub error_code: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct MetadataResponseBroker {
    /// Which node.
    pub node_id: i32,
    /// A host name or address.
    pub host: String,
    /// A port.
    pub port: i32,
    /// Its rack.
    #[wire(since = 1, ignorable)]
    pub rack: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`MetadataResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct MetadataResponseTopic {
    /// An error, or 0.
    pub error_code: i16,
    /// The topic's name; null if there is none under the id.
    #[wire(default = Some(String::new()), nullable_since = 12)]
    pub name: Option<String>,
    /// The topic's id.
    #[wire(since = 10, ignorable)]
    pub topic_id: Uuid,
    /// Whether Kafka keeps it for itself.
    #[wire(since = 1, ignorable)]
    pub is_internal: bool,
    /// The partitions.
    pub partitions: Vec<MetadataResponsePartition>,
    /// What the client may do with the topic, a bit each; the lowest number if it did not ask.
    #[wire(since = 8, default = i32::MIN)]
    pub topic_authorized_operations: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`MetadataResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct MetadataResponsePartition {
    /// An error, or 0.
    pub error_code: i16,
    /// The partition.
    pub partition_index: i32,
    /// The leader, or -1.
    pub leader_id: i32,
    /// The leader's epoch.
    #[wire(since = 7, default = -1, ignorable)]
    pub leader_epoch: i32,
    /// The replicas.
    pub replica_nodes: Vec<i32>,
    /// The in-sync replicas.
    pub isr_nodes: Vec<i32>,
    /// The replicas that are down.
    #[wire(since = 5, ignorable)]
    pub offline_replicas: Vec<i32>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
