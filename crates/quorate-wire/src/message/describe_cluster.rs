//! DescribeCluster, key 60 (KIP-700; v1 KIP-919; v2 KIP-1073).

use crate::codec::{UnknownTags, Wire};

/// Asks which brokers or controllers there are.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 60, versions = 0..=2, flexible = 0..)]
pub struct DescribeClusterRequest {
    /// Whether to tell what the client may do with the cluster.
    pub include_cluster_authorized_operations: bool,
    /// 1 for brokers, 2 for controllers.
    #[wire(since = 1, default = 1)]
    pub endpoint_type: i8,
    /// Whether to name fenced brokers too.
    #[wire(since = 2)]
    pub include_fenced_brokers: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The nodes of the cluster.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 60, versions = 0..=2, flexible = 0..)]
pub struct DescribeClusterResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    pub error_message: Option<String>,
    /// 1 for brokers, 2 for controllers.
    #[wire(since = 1, default = 1)]
    pub endpoint_type: i8,
    /// The cluster.
    pub cluster_id: String,
    /// The active controller, or -1.
    #[wire(default = -1)]
    pub controller_id: i32,
    /// The nodes.
    pub brokers: Vec<DescribeClusterBroker>,
    /// What the client may do with the cluster, a bit each; the lowest number if it did not ask.
    #[wire(default = i32::MIN)]
    pub cluster_authorized_operations: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A broker, or a controller.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeClusterBroker {
    /// Which broker.
    pub broker_id: i32,
    /// A host name or address.
    pub host: String,
    /// A port.
    pub port: i32,
    /// Its rack.
    pub rack: Option<String>,
    /// Whether the broker is fenced.
    #[wire(since = 2)]
    pub is_fenced: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
