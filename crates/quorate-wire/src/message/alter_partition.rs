//! AlterPartition, key 56 (KIP-497; v3 KIP-903).

use crate::codec::{UnknownTags, Uuid, Wire};

/// Leaders of partitions ask to change their in-sync replicas.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 56, versions = 2..=3, flexible = 2..)]
pub struct AlterPartitionRequest {
    /// Which broker.
    pub broker_id: i32,
    /// The broker's epoch: the offset of its registration.
    #[wire(default = -1)]
    pub broker_epoch: i64,
    /// The topics.
    pub topics: Vec<AlterPartitionRequestTopic>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`AlterPartitionRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AlterPartitionRequestTopic {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<AlterPartitionRequestPartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of an [`AlterPartitionRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AlterPartitionRequestPartition {
    /// The partition.
    pub partition_index: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// The in-sync replicas that the leader wants.
    #[wire(until = 2)]
    pub new_isr: Vec<i32>,
    /// The in-sync replicas that the leader wants, with their epochs.
    #[wire(since = 3)]
    pub new_isr_with_epochs: Vec<IsrBrokerState>,
    /// 1 if the leader still recovers from an unclean election.
    pub leader_recovery_state: i8,
    /// The partition's epoch, which every change raises.
    pub partition_epoch: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An in-sync replica and its epoch.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct IsrBrokerState {
    /// Which broker.
    #[wire(since = 3)]
    pub broker_id: i32,
    /// The broker's epoch: the offset of its registration.
    #[wire(since = 3, default = -1)]
    pub broker_epoch: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What the partitions are like now.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 56, versions = 2..=3, flexible = 2..)]
pub struct AlterPartitionResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// The topics.
    pub topics: Vec<AlterPartitionResponseTopic>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`AlterPartitionResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AlterPartitionResponseTopic {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<AlterPartitionResponsePartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of an [`AlterPartitionResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AlterPartitionResponsePartition {
    /// The partition.
    pub partition_index: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// The leader, or -1.
    pub leader_id: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// The in-sync replicas.
    pub isr: Vec<i32>,
    /// 1 if the leader still recovers from an unclean election.
    pub leader_recovery_state: i8,
    /// The partition's epoch, which every change raises.
    pub partition_epoch: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
