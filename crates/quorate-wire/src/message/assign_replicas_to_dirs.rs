//! AssignReplicasToDirs, key 73 (KIP-858).

use crate::codec::{UnknownTags, Uuid, Wire};

/// A broker says in which log directories its replicas are.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 73, versions = 0..=0, flexible = 0..)]
pub struct AssignReplicasToDirsRequest {
    /// Which broker.
    pub broker_id: i32,
    /// The broker's epoch: the offset of its registration.
    #[wire(default = -1)]
    pub broker_epoch: i64,
    /// The log directories.
    pub directories: Vec<AssignReplicasToDirsRequestDirectory>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A log directory of an [`AssignReplicasToDirsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AssignReplicasToDirsRequestDirectory {
    /// Its id.
    pub id: Uuid,
    /// The topics.
    pub topics: Vec<AssignReplicasToDirsRequestTopic>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`AssignReplicasToDirsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AssignReplicasToDirsRequestTopic {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<AssignReplicasToDirsRequestPartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of an [`AssignReplicasToDirsRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AssignReplicasToDirsRequestPartition {
    /// The partition.
    pub partition_index: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Whether the assignments are committed.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 73, versions = 0..=0, flexible = 0..)]
pub struct AssignReplicasToDirsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// The log directories.
    pub directories: Vec<AssignReplicasToDirsResponseDirectory>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A log directory of an [`AssignReplicasToDirsResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AssignReplicasToDirsResponseDirectory {
    /// Its id.
    pub id: Uuid,
    /// The topics.
    pub topics: Vec<AssignReplicasToDirsResponseTopic>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of an [`AssignReplicasToDirsResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AssignReplicasToDirsResponseTopic {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<AssignReplicasToDirsResponsePartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of an [`AssignReplicasToDirsResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AssignReplicasToDirsResponsePartition {
    /// The partition.
    pub partition_index: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
