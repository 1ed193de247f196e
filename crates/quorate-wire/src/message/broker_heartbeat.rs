//! BrokerHeartbeat, key 63 (KIP-631; v1 KIP-858; v2 KIP-1066).

use crate::codec::{UnknownTags, Uuid, Wire};

/// A broker says that it is alive.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 63, versions = 0..=2, flexible = 0..)]
pub struct BrokerHeartbeatRequest {
    /// Which broker.
    pub broker_id: i32,
    /// The broker's epoch: the offset of its registration.
    #[wire(default = -1)]
    pub broker_epoch: i64,
    /// Up to where the broker has read the metadata.
    pub current_metadata_offset: i64,
    /// Whether the broker asks to be fenced.
    pub want_fence: bool,
    /// Whether the broker asks to be shut down.
    pub want_shut_down: bool,
    /// Log directories that have failed.
    #[wire(since = 1, tag = 0)]
    pub offline_log_dirs: Vec<Uuid>,
    /// Log directories that take no new replicas; null if the broker never said.
    #[wire(since = 2, tag = 1)]
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What the controller makes of the broker.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 63, versions = 0..=2, flexible = 0..)]
pub struct BrokerHeartbeatResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Whether the broker has almost all metadata.
    pub is_caught_up: bool,
    /// Whether the broker is fenced.
    #[wire(default = true)]
    pub is_fenced: bool,
    /// Whether the broker may stop.
    pub should_shut_down: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
