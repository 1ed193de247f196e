//! Fetch, key 1 (KIP-595; v15 KIP-903; v17 KIP-853; v18 KIP-1166).

use crate::codec::{Records, UnknownTags, Uuid, Wire};

/// Asks for records from an offset on.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 1, versions = 4..=18, flexible = 12..)]
pub struct FetchRequest {
    /// The cluster that the fetcher belongs to; absent for "any".
    #[wire(since = 12, tag = 0, ignorable)]
    pub cluster_id: Option<String>,
    /// The fetching replica, or -1.
    #[wire(until = 14, default = -1)]
    pub replica_id: i32,
    /// The fetching replica.
    #[wire(since = 15, tag = 1)]
    pub replica_state: FetchReplicaState,
    /// How long the answer may wait, in milliseconds.
    pub max_wait_ms: i32,
    /// How many bytes are worth an answer; a Raft leader ignores it.
    pub min_bytes: i32,
    /// How many bytes the answer may have; one batch comes in any case.
    #[wire(default = i32::MAX, ignorable)]
    pub max_bytes: i32,
    /// 0 for all records, 1 for committed transactions.
    pub isolation_level: i8,
    /// A fetch session; 0 for none.
    #[wire(since = 7, ignorable)]
    pub session_id: i32,
    /// Its epoch; -1 for none.
    #[wire(since = 7, default = -1, ignorable)]
    pub session_epoch: i32,
    /// The topics; for Raft exactly one.
    pub topics: Vec<FetchTopic>,
    /// What leaves the session.
    #[wire(since = 7)]
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    /// The fetcher's rack.
    #[wire(since = 11, ignorable)]
    pub rack_id: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Who fetches.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchReplicaState {
    /// The fetching replica, or -1.
    #[wire(default = -1)]
    pub replica_id: i32,
    /// A broker's epoch, or -1.
    #[wire(default = -1)]
    pub replica_epoch: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`FetchRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchTopic {
    /// The topic's name.
    #[wire(until = 12, ignorable)]
    pub topic: String,
    /// The topic's id.
    #[wire(since = 13, ignorable)]
    pub topic_id: Uuid,
    /// The partitions asked about; for Raft exactly one.
    pub partitions: Vec<FetchPartition>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`FetchRequest`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchPartition {
    /// The partition.
    pub partition: i32,
    /// The fetcher's epoch, or -1.
    #[wire(since = 9, default = -1, ignorable)]
    pub current_leader_epoch: i32,
    /// The first offset wanted: the fetcher's log end.
    pub fetch_offset: i64,
    /// The epoch of the record before it, or -1.
    #[wire(since = 12, default = -1)]
    pub last_fetched_epoch: i32,
    /// The fetcher's log start, or -1.
    #[wire(since = 5, default = -1, ignorable)]
    pub log_start_offset: i64,
    /// How many bytes; a Raft leader ignores it.
    pub partition_max_bytes: i32,
    /// The fetcher's log directory; zero if unknown.
    #[wire(since = 17, tag = 0, ignorable)]
    pub replica_directory_id: Uuid,
    /// The fetcher's high watermark, -1 if it knows none, the default if it says nothing.
    #[wire(since = 18, tag = 1, default = i64::MAX, ignorable)]
    pub high_watermark: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic that leaves the session.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ForgottenTopic {
    /// The topic's name.
    #[wire(until = 12, ignorable)]
    pub topic: String,
    /// The topic's id.
    #[wire(since = 13, ignorable)]
    pub topic_id: Uuid,
    /// Its partitions.
    pub partitions: Vec<i32>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Records, or why there are none.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 1, versions = 4..=18, flexible = 12..)]
pub struct FetchResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error of the whole request.
    #[wire(since = 7, ignorable)]
    pub error_code: i16,
    /// The fetch session; 0 for none.
    #[wire(since = 7)]
    pub session_id: i32,
    /// The topics.
    pub responses: Vec<FetchableTopicResponse>,
    /// Where the leaders named below listen.
    #[wire(since = 16, tag = 0)]
    pub node_endpoints: Vec<FetchNodeEndpoint>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A topic of a [`FetchResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchableTopicResponse {
    /// The topic's name.
    #[wire(until = 12, ignorable)]
    pub topic: String,
    /// The topic's id.
    #[wire(since = 13, ignorable)]
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<FetchPartitionData>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A partition of a [`FetchResponse`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchPartitionData {
    /// The partition.
    pub partition_index: i32,
    /// An error of this partition.
    pub error_code: i16,
    /// The leader's high watermark, or -1.
    pub high_watermark: i64,
    /// The end of decided transactions, or -1.
    #[wire(default = -1, ignorable)]
    pub last_stable_offset: i64,
    /// The leader's log start, or -1.
    #[wire(since = 5, default = -1, ignorable)]
    pub log_start_offset: i64,
    /// Where the logs part; -1 both if they do not.
    #[wire(since = 12, tag = 0)]
    pub diverging_epoch: EpochEndOffset,
    /// The answering node's leader and epoch.
    #[wire(since = 12, tag = 1)]
    pub current_leader: LeaderIdAndEpoch,
    /// The snapshot to fetch in place of records; -1 both for none.
    #[wire(since = 12, tag = 2)]
    pub snapshot_id: SnapshotId,
    /// Aborted transactions; none in Raft.
    #[wire(default = Some(Vec::new()), ignorable)]
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// Where to read from, or -1.
    #[wire(since = 11, default = -1)]
    pub preferred_read_replica: i32,
    /// Record batches.
    pub records: Option<Records>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An epoch and where it ends.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct EpochEndOffset {
    /// The epoch, or -1.
    #[wire(default = -1)]
    pub epoch: i32,
    /// The offset after its last record, or -1.
    #[wire(default = -1)]
    pub end_offset: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A leader and its epoch.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct LeaderIdAndEpoch {
    /// The leader, or -1.
    #[wire(default = -1)]
    pub leader_id: i32,
    /// Its epoch, or -1.
    #[wire(default = -1)]
    pub leader_epoch: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Which snapshot.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct SnapshotId {
    /// The offset after the snapshot's last record.
    #[wire(default = -1)]
    pub end_offset: i64,
    /// The epoch of that record.
    #[wire(default = -1)]
    pub epoch: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An aborted transaction.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AbortedTransaction {
    /// Its producer.
    pub producer_id: i64,
    /// Its first offset.
    pub first_offset: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Where a node listens; its port has 32 bits here.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct FetchNodeEndpoint {
    /// Which node.
    pub node_id: i32,
    /// A host name or address.
    pub host: String,
    /// A port.
    pub port: i32,
    /// Its rack.
    pub rack: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
