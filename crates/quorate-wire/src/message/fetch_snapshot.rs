//! FetchSnapshot, key 59 (KIP-630; v1 KIP-853).

use crate::codec::{Records, UnknownTags, Uuid, Wire};
use crate::message::NodeEndpoint;

/// Asks for a slice of a snapshot.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 59, versions = 0..=1, flexible = 0..)]
pub struct FetchSnapshotRequest {
    /// The cluster that the fetcher belongs to; absent for "any".
    #[wire(tag = 0)]
    pub cluster_id: Option<String>,
    /// The fetching replica, or -1.
    #[wire(default = -1)]
    pub replica_id: i32,
    /// How many bytes the slice may have.
    #[wire(default = i32::MAX)]
    pub max_bytes: i32,
    /// The topics; exactly one.
    pub topics: Vec<FetchSnapshotRequestTopic>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`FetchSnapshotRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchSnapshotRequestTopic {
    /// The topic's name.
    pub name: String,
    /// The partitions; exactly one.
    pub partitions: Vec<FetchSnapshotRequestPartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`FetchSnapshotRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchSnapshotRequestPartition {
    /// The partition.
    pub partition: i32,
    /// The fetcher's epoch.
    pub current_leader_epoch: i32,
    /// Which snapshot.
    pub snapshot_id: FetchSnapshotId,
    /// From which byte on.
    pub position: i64,
    /// The fetcher's log directory; zero if unknown.
    #[wire(since = 1, tag = 0, ignorable)]
    pub replica_directory_id: Uuid,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Which snapshot; unlike Fetch's, its numbers default to 0.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchSnapshotId {
    /// The offset after the snapshot's last record.
    pub end_offset: i64,
    /// The epoch of that record.
    pub epoch: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A slice of a snapshot.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 59, versions = 0..=1, flexible = 0..)]
pub struct FetchSnapshotResponse {
    /// How long the request was throttled, in milliseconds.
    #[wire(ignorable)]
    pub throttle_time_ms: i32,
    /// An error of the whole request.
    pub error_code: i16,
    /// The topics.
    pub topics: Vec<FetchSnapshotResponseTopic>,
    /// Where the leaders named below listen.
    #[wire(since = 1, tag = 0, ignorable)]
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`FetchSnapshotResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchSnapshotResponseTopic {
    /// The topic's name.
    pub name: String,
    /// The partitions.
    pub partitions: Vec<FetchSnapshotResponsePartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`FetchSnapshotResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchSnapshotResponsePartition {
    /// The partition.
    pub index: i32,
    /// An error of this partition.
    pub error_code: i16,
    /// Which snapshot.
    pub snapshot_id: FetchSnapshotId,
    /// The answering node's leader and epoch; say -1 and the epoch where there is none.
    #[wire(tag = 0)]
    pub current_leader: FetchSnapshotLeader,
    /// The size of the whole snapshot in bytes.
    pub size: i64,
    /// Where the slice begins.
    pub position: i64,
    /// The slice, cut anywhere; empty in errors.
    pub unaligned_records: Records,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A leader and its epoch; unlike Fetch's, its numbers default to 0.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchSnapshotLeader {
    /// The leader, or -1.
    pub leader_id: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
