//! Topics and partitions: types 2, 3, 5, 9 (KIP-631; directories KIP-858) and 28 (KIP-966).

use crate::codec::{UnknownTags, Uuid, Wire};

/// A topic is made.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 2, versions = 0..=0, flexible = 0..)]
pub struct TopicRecord {
    /// The topic's name.
    pub name: String,
    /// The topic's id.
    pub topic_id: Uuid,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic and its partitions go.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 9, versions = 0..=0, flexible = 0..)]
pub struct RemoveTopicRecord {
    /// The topic's id.
    pub topic_id: Uuid,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition is made.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 3, versions = 0..=2, flexible = 0..)]
pub struct PartitionRecord {
    /// The partition.
    #[wire(default = -1)]
    pub partition_id: i32,
    /// The topic's id.
    pub topic_id: Uuid,
    /// The replicas.
    pub replicas: Vec<i32>,
    /// The in-sync replicas.
    pub isr: Vec<i32>,
    /// The replicas that are being removed.
    pub removing_replicas: Vec<i32>,
    /// The replicas that are being added.
    pub adding_replicas: Vec<i32>,
    /// The leader, or -1.
    #[wire(default = -1)]
    pub leader: i32,
    /// 1 if the leader still recovers from an unclean election.
    #[wire(tag = 0)]
    pub leader_recovery_state: i8,
    /// The leader's epoch.
    #[wire(default = -1)]
    pub leader_epoch: i32,
    /// The partition's epoch, which every change raises.
    #[wire(default = -1)]
    pub partition_epoch: i32,
    /// The log directory of each replica.
    #[wire(since = 1)]
    pub directories: Vec<Uuid>,
    /// Replicas out of sync that may lead nevertheless; null if there are none.
    #[wire(since = 2, tag = 1)]
    pub eligible_leader_replicas: Option<Vec<i32>>,
    /// Replicas that were eligible before an unclean stop; null if there are none.
    #[wire(since = 2, tag = 2)]
    pub last_known_elr: Option<Vec<i32>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Something about a partition changes.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 5, versions = 0..=2, flexible = 0..)]
pub struct PartitionChangeRecord {
    /// The partition.
    #[wire(default = -1)]
    pub partition_id: i32,
    /// The topic's id.
    pub topic_id: Uuid,
    /// The in-sync replicas, if they change.
    #[wire(tag = 0)]
    pub isr: Option<Vec<i32>>,
    /// The leader, -1 for none, -2 if it stays.
    #[wire(tag = 1, default = -2)]
    pub leader: i32,
    /// The replicas, if they change.
    #[wire(tag = 2)]
    pub replicas: Option<Vec<i32>>,
    /// The replicas that are being removed, if they change.
    #[wire(tag = 3)]
    pub removing_replicas: Option<Vec<i32>>,
    /// The replicas that are being added, if they change.
    #[wire(tag = 4)]
    pub adding_replicas: Option<Vec<i32>>,
    /// As in [`PartitionRecord`]; -1 if it stays.
    #[wire(tag = 5, default = -1)]
    pub leader_recovery_state: i8,
    /// The log directory of each replica, if they change.
    #[wire(since = 1, tag = 8)]
    pub directories: Option<Vec<Uuid>>,
    /// Replicas out of sync that may lead nevertheless, if they change.
    #[wire(since = 2, tag = 6)]
    pub eligible_leader_replicas: Option<Vec<i32>>,
    /// Replicas that were eligible before an unclean stop, if they change.
    #[wire(since = 2, tag = 7)]
    pub last_known_elr: Option<Vec<i32>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic, or each if the name is empty, loses its eligible leader replicas.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 28, versions = 0..=0, flexible = 0..)]
pub struct ClearElrRecord {
    /// The topic's name.
    pub topic_name: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
