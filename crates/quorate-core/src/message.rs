//! The Raft RPCs as flat domain types (KIP-595, KIP-853, KIP-996).
//!
//! Kafka's messages nest one topic with one partition and exist in many versions; that is the edge's
//! business. The edge also checks what needs no state: the cluster id, that the partition is ours,
//! and that record batches are whole (CRC, bounds). What it passes on may still hold any number.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::ids::{
    Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset, OffsetAndEpoch, ReplicaKey,
};
use crate::voters::VoterSet;

/// Kafka's error codes, as far as the Raft RPCs use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

#[allow(missing_docs)] // The names are the documentation: Kafka's own.
impl ErrorCode {
    pub const UNKNOWN_SERVER_ERROR: ErrorCode = ErrorCode(-1);
    pub const NONE: ErrorCode = ErrorCode(0);
    pub const UNKNOWN_TOPIC_OR_PARTITION: ErrorCode = ErrorCode(3);
    pub const NOT_LEADER_OR_FOLLOWER: ErrorCode = ErrorCode(6);
    pub const REQUEST_TIMED_OUT: ErrorCode = ErrorCode(7);
    pub const BROKER_NOT_AVAILABLE: ErrorCode = ErrorCode(8);
    pub const NETWORK_EXCEPTION: ErrorCode = ErrorCode(13);
    pub const CLUSTER_AUTHORIZATION_FAILED: ErrorCode = ErrorCode(31);
    pub const UNSUPPORTED_VERSION: ErrorCode = ErrorCode(35);
    pub const INVALID_REQUEST: ErrorCode = ErrorCode(42);
    pub const FENCED_LEADER_EPOCH: ErrorCode = ErrorCode(74);
    pub const UNKNOWN_LEADER_EPOCH: ErrorCode = ErrorCode(75);
    pub const SNAPSHOT_NOT_FOUND: ErrorCode = ErrorCode(98);
    pub const POSITION_OUT_OF_RANGE: ErrorCode = ErrorCode(99);
    pub const INCONSISTENT_CLUSTER_ID: ErrorCode = ErrorCode(104);
    pub const INVALID_VOTER_KEY: ErrorCode = ErrorCode(125);
}

/// A request from one replica (or, for the last two, from a tool) to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Vote, key 52.
    Vote(VoteRequest),
    /// BeginQuorumEpoch, key 53.
    BeginQuorumEpoch(BeginQuorumEpochRequest),
    /// EndQuorumEpoch, key 54.
    EndQuorumEpoch(EndQuorumEpochRequest),
    /// Fetch, key 1.
    Fetch(FetchRequest),
    /// FetchSnapshot, key 59.
    FetchSnapshot(FetchSnapshotRequest),
    /// DescribeQuorum, key 55.
    DescribeQuorum,
    /// What this replica itself believes; Quorate's private API.
    DescribeReplica,
}

/// An answer to a [`Request`]. `R` is how records travel: out as a [`LogRange`], in as [`Received`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Response<R> {
    /// To Vote.
    Vote(VoteResponse),
    /// To BeginQuorumEpoch.
    BeginQuorumEpoch(QuorumEpochResponse),
    /// To EndQuorumEpoch.
    EndQuorumEpoch(QuorumEpochResponse),
    /// To Fetch.
    Fetch(FetchResponse<R>),
    /// To FetchSnapshot.
    FetchSnapshot(FetchSnapshotResponse),
    /// To DescribeQuorum: who is behind, or why this node cannot tell.
    DescribeQuorum(Result<QuorumDescription, ErrorCode>),
    /// To DescribeReplica.
    DescribeReplica(alloc::boxed::Box<ReplicaDescription>),
    /// To any request that is refused as a whole: an error at the top level, and nothing else. A Java peer
    /// backs off after it. Incoming ones are [`Unreachable::TopLevel`].
    TopLevel(ErrorCode),
}

/// Why a request has no usable answer, as far as the network can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreachable {
    /// The peer's host did not accept the connection: nothing listens there.
    Refused,
    /// The connection was reset or ended while the answer was awaited.
    Reset,
    /// No answer, or no connection, within the time that the network allows; or no such host.
    TimedOut,
    /// The peer lists no version of this API that can carry the request.
    UnsupportedVersion,
    /// The peer's answer has this error at its top level.
    TopLevel(ErrorCode),
    /// The peer's answer does not decode, or speaks of another partition.
    Malformed,
}

/// The epoch of the node that answers, its leader, and where that leader listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CurrentLeader {
    /// The answering node's epoch.
    pub epoch: Epoch,
    /// The leader of that epoch, once known.
    pub leader: Option<NodeId>,
    /// The leader's endpoint under the listener that the request came in on.
    pub endpoint: Option<Endpoint>,
}

/// Asks for a vote, or before that whether one would be granted (KIP-996).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VoteRequest {
    /// The replica that is asked; absent below version 1.
    pub voter: Option<ReplicaKey>,
    /// The asking replica; its id may be any number.
    pub replica: ReplicaKey,
    /// The asking replica's epoch.
    pub epoch: Epoch,
    /// Its log end and the epoch of its last record.
    pub log_end: OffsetAndEpoch,
    /// Whether this only asks how a vote would go.
    pub pre_vote: bool,
}

/// How a vote was decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VoteResponse {
    /// Partition-level error.
    pub error: ErrorCode,
    /// The answering node's epoch and leader.
    pub current: CurrentLeader,
    /// Whether the vote is granted.
    pub granted: bool,
}

/// A leader announces itself to a voter that does not fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BeginQuorumEpochRequest {
    /// The voter that is meant; absent below version 1.
    pub voter: Option<ReplicaKey>,
    /// The leader; may be any number.
    pub leader: NodeId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its endpoints; empty below version 1.
    pub endpoints: Endpoints,
}

/// A leader gives up its epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndQuorumEpochRequest {
    /// The leader that resigns; may be any number.
    pub leader: NodeId,
    /// The epoch that ends.
    pub epoch: Epoch,
    /// Who should succeed, best first.
    pub preferred_candidates: Vec<ReplicaKey>,
    /// The resigning leader's endpoints; empty below version 1 and from Java.
    pub endpoints: Endpoints,
}

/// To BeginQuorumEpoch and EndQuorumEpoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuorumEpochResponse {
    /// Partition-level error.
    pub error: ErrorCode,
    /// The answering node's epoch and leader.
    pub current: CurrentLeader,
}

/// Asks a leader for records from an offset, and so acknowledges all below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchRequest {
    /// The fetching replica; id -1 for an anonymous observer.
    pub replica: ReplicaKey,
    /// The fetcher's epoch.
    pub epoch: Epoch,
    /// The first offset wanted, the fetcher's log end.
    pub offset: Offset,
    /// The epoch of the record before it.
    pub last_fetched_epoch: Epoch,
    /// How long the answer may wait for news. Negative is malformed.
    pub max_wait_ms: i32,
    /// How many bytes of records the fetcher wants at most; one batch comes in any case.
    pub max_bytes: i32,
    /// The fetcher's high watermark (KIP-1166).
    pub high_watermark: FetcherHighWatermark,
}

/// What a fetcher says of its high watermark (KIP-1166).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetcherHighWatermark {
    /// Below Fetch 18: nothing is said, and a parked Fetch is not answered for its sake.
    Unsaid,
    /// The fetcher does not know one.
    Unknown,
    /// The fetcher knows this one.
    Known(Offset),
}

/// To Fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchResponse<R> {
    /// Partition-level error.
    pub error: ErrorCode,
    /// The answering node's epoch and leader.
    pub current: CurrentLeader,
    /// The leader's high watermark; absent while it is unknown, and in errors.
    pub high_watermark: Option<Offset>,
    /// Where the answering node's log starts.
    pub log_start: Option<Offset>,
    /// What the leader has for the fetcher.
    pub outcome: FetchOutcome<R>,
}

/// What a leader has for a fetcher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FetchOutcome<R> {
    /// Records from the asked offset on, perhaps none.
    Records(R),
    /// The logs part: the largest epoch not above the asked one, and where it ends.
    Diverging(OffsetAndEpoch),
    /// The asked offset is gone; this snapshot holds what was there.
    Snapshot(OffsetAndEpoch),
}

/// A piece of the log that the driver puts into a Fetch answer: whole batches, the first of them
/// starting at `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogRange {
    /// The first offset.
    pub from: Offset,
    /// The end; equal to `from` if there is nothing.
    pub to: Offset,
    /// As many bytes at most, but one batch in any case.
    pub max_bytes: u32,
    /// How often the log had been truncated. If the log has moved on when the bytes are read, the
    /// answer becomes NOT_LEADER_OR_FOLLOWER.
    pub generation: u64,
}

/// Records of a Fetch answer, checked at the edge: whole batches with right CRCs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Received {
    /// The batches up to the first that is not whole or not right.
    pub batches: Vec<ReceivedBatch>,
    /// What was wrong with the rest, if it was more than cut short.
    pub rejected: Option<String>,
}

/// One record batch as it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReceivedBatch {
    /// The offset of its first record.
    pub base: Offset,
    /// The offset after its last record.
    pub end: Offset,
    /// Its `partitionLeaderEpoch`.
    pub epoch: Epoch,
    /// The encoded batch, header and all.
    pub bytes: Bytes,
    /// The control records in it that the core reads, with their offsets.
    pub control: Vec<(Offset, ControlRecord)>,
}

/// A record that steers the quorum itself (KIP-595, KIP-630, KIP-853).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControlRecord {
    /// The first record of every epoch.
    LeaderChange {
        /// Who leads.
        leader: NodeId,
        /// All voters.
        voters: Vec<NodeId>,
        /// Who granted its vote.
        granting: Vec<NodeId>,
    },
    /// The feature level of the quorum itself.
    KRaftVersion(KRaftVersion),
    /// The voter set.
    Voters(VoterSet),
    /// Opens a snapshot.
    SnapshotHeader {
        /// When the last record that it contains was appended, in milliseconds since 1970.
        last_contained_log_timestamp: i64,
    },
    /// Closes a snapshot.
    SnapshotFooter,
}

/// The level of the feature `kraft.version` (KIP-853): 0 for static voters, 1 for voters in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KRaftVersion(pub i16);

impl KRaftVersion {
    /// The range that this implementation supports.
    pub const SUPPORTED: (KRaftVersion, KRaftVersion) = (KRaftVersion(0), KRaftVersion(1));

    /// Whether voters stand in the log, with their directory ids.
    pub fn is_reconfigurable(self) -> bool {
        self.0 >= 1
    }
}

/// Asks for a slice of a snapshot (KIP-630).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchSnapshotRequest {
    /// The fetching replica.
    pub replica: ReplicaKey,
    /// The fetcher's epoch.
    pub epoch: Epoch,
    /// Which snapshot.
    pub snapshot: OffsetAndEpoch,
    /// From which byte on.
    pub position: i64,
    /// How many bytes at most.
    pub max_bytes: i32,
}

/// To FetchSnapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchSnapshotResponse {
    /// Partition-level error.
    pub error: ErrorCode,
    /// The answering node's epoch and leader.
    pub current: CurrentLeader,
    /// The snapshot that was asked for.
    pub snapshot: OffsetAndEpoch,
}

/// What a leader knows of its quorum (KIP-595, KIP-836).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuorumDescription {
    /// The leader that answers.
    pub leader: NodeId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its high watermark, once known.
    pub high_watermark: Option<Offset>,
    /// The voters by id.
    pub voters: Vec<ReplicaProgress>,
    /// The observers that fetched of late.
    pub observers: Vec<ReplicaProgress>,
    /// The voters' endpoints.
    pub nodes: BTreeMap<NodeId, Endpoints>,
}

/// How far a replica has come, as its leader sees it. Ages count back from now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplicaProgress {
    /// Which replica.
    pub key: ReplicaKey,
    /// The offset that it asked for last; the leader's own log end for itself.
    pub log_end: Option<Offset>,
    /// How long ago it fetched.
    pub last_fetch: Option<Duration>,
    /// How long ago it had all that the leader had.
    pub last_caught_up: Option<Duration>,
}

/// What a replica believes, leader or not. What it does not know of its node is added at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplicaDescription {
    /// Who speaks.
    pub key: ReplicaKey,
    /// `leader`, `follower`, `candidate`, `prospective`, `unattached` or `resigned`.
    pub role: &'static str,
    /// Its epoch.
    pub epoch: Epoch,
    /// The leader that it knows.
    pub leader: Option<NodeId>,
    /// The vote that it gave in this epoch.
    pub voted: Option<ReplicaKey>,
    /// Whether it is in the voter set that it uses.
    pub is_voter: bool,
    /// The first offset of its log.
    pub log_start: Offset,
    /// The end of its log and its last record's epoch.
    pub log_end: OffsetAndEpoch,
    /// All below is on stable media.
    pub durable_end: Offset,
    /// All below is committed, as far as it knows.
    pub high_watermark: Option<Offset>,
    /// The level of kraft.version that it uses.
    pub kraft_version: KRaftVersion,
    /// The voter set that it uses.
    pub voters: VoterSet,
    /// The offset of the record that the set comes from; absent for static voters.
    pub voters_offset: Option<Offset>,
    /// How long it has been without a leader.
    pub leaderless: Option<Duration>,
    /// How long its oldest unfinished write has taken so far.
    pub oldest_unfinished_write: Option<Duration>,
    /// What each voter said in the last election round that it took part in as a nominee.
    pub last_round: Option<ElectionRound>,
    /// Why it takes no part, if it does not: see [`crate::io::IntegrityFault`].
    pub integrity_fault: Option<String>,
    /// Peers that did not answer last time: what happened, and how long ago that began.
    pub unreachable: Vec<(NodeId, Unreachable, Duration)>,
}

/// One round of an election as the nominee saw it: why is there no leader?
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectionRound {
    /// The epoch that votes were asked for.
    pub epoch: Epoch,
    /// Whether it was a round of pre-votes.
    pub pre_vote: bool,
    /// The nominee's log end.
    pub log_end: OffsetAndEpoch,
    /// How it ended; absent while it goes on.
    pub won: Option<bool>,
    /// What each other voter said.
    pub answers: BTreeMap<NodeId, VoterAnswer>,
}

/// What a voter said to a nominee.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VoterAnswer {
    /// It has not answered.
    None,
    /// It granted its vote.
    Granted,
    /// It refused: with this error, epoch and leader.
    Refused {
        /// The error, often NONE.
        error: ErrorCode,
        /// Its epoch.
        epoch: Epoch,
        /// The leader that it knows.
        leader: Option<NodeId>,
    },
    /// It could not be asked.
    Unreachable(Unreachable),
}

/// The listener that a request came in on: answers name the leader's endpoint under it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Via(pub ListenerName);
