//! Everything that goes into a replica and comes out of it, on one page.
//!
//! The driver calls [`Replica::step`](crate::Replica::step) with one [`Input`] after another, and then
//! does what the [`Output`] asks: submit the writes, send the messages, notify the listeners, step
//! again by the deadline. No item waits for another to be finished: what must wait for a write waits
//! inside the replica, until [`Input::Durable`] reports that write.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;

use crate::ids::{Endpoint, Epoch, Instant, NodeId, Offset, OffsetAndEpoch, ReplicaKey};
use crate::message::{
    ControlRecord, ElectionRound, KRaftVersion, LogRange, Received, Request, Response, Unreachable,
    Via,
};

/// Numbers the writes of a replica, in the order in which they are asked for. A write number never
/// comes back, as an offset does after a truncation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WriteId(pub u64);

/// Names a request that came in, until it is answered. Chosen by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names a request that went out, until its answer or failure comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorrelationId(pub u64);

/// Names a proposal, until its fate is known. Chosen by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProposalId(pub u64);

/// Everything that can happen to a replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A peer or a client asked; it is answered under the same id, perhaps much later.
    Request {
        /// For the answer.
        id: RequestId,
        /// The listener that it came in on.
        via: Via,
        /// What it asks.
        request: Request,
    },
    /// A peer answered a request of ours, or the network knows that it never will.
    Response {
        /// The request.
        id: CorrelationId,
        /// The answer.
        response: Result<Response<Received>, Unreachable>,
    },
    /// The local state machine asks the leader of this epoch to append these records, all or none.
    Propose {
        /// For the outcome.
        id: ProposalId,
        /// The epoch in which the caller believes to lead.
        epoch: Epoch,
        /// The values of one or more data records.
        records: Vec<Bytes>,
    },
    /// The local state machine wants to lead no longer: leadership of this epoch ends.
    Resign {
        /// Another epoch than the present one is ignored.
        epoch: Epoch,
    },
    /// Every write up to and including this one is on stable media.
    Durable {
        /// The last of them.
        through: WriteId,
    },
    /// Storage is in trouble.
    Storage(StorageTrouble),
    /// The operator wants this node to leave in good order.
    Shutdown,
    /// A deadline has passed, or nothing has: look at the clock.
    Tick,
}

/// What can be wrong with storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StorageTrouble {
    /// A write or a sync failed. That is final: the store is closed, and nothing more is promised.
    Failed,
}

/// What steps ask of the world, one after another. No item waits for another to finish.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Output {
    /// For storage: in this order, after every earlier write.
    pub writes: Vec<(WriteId, Write)>,
    /// For the network: send now. It may lose, delay, repeat or reorder them.
    pub messages: Vec<Message>,
    /// For the listeners: in this order.
    pub events: Vec<Event>,
    /// Step again by this time, whatever else happens, and why. Of several steps the last one counts.
    pub deadline: Option<(Instant, Timeout)>,
}

/// A write. The table of barriers is in `quorate-storage/src/lib.rs`: [`Write::ElectionState`] and
/// [`Write::Truncate`] are durable before any later write touches a file; appends in a row share a
/// sync.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Replace the quorum-state file.
    ElectionState(ElectionState),
    /// Append one batch at the log end.
    Append(Batch),
    /// Cut the log so that it ends here.
    Truncate {
        /// The new log end.
        to: Offset,
    },
}

/// The quorum-state file (KIP-595, KIP-853).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectionState {
    /// The epoch.
    pub epoch: Epoch,
    /// Its leader, once known.
    pub leader: Option<NodeId>,
    /// The replica that got this one's vote.
    pub voted: Option<ReplicaKey>,
    /// Selects the file's version: 0, or 1 from kraft.version 1 on.
    pub kraft_version: KRaftVersion,
    /// The voters' ids, which version 0 lists for information.
    pub voters: Vec<NodeId>,
}

/// A batch to append: what the core knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// The offset of its first record.
    pub base: Offset,
    /// The offset after its last record.
    pub end: Offset,
    /// The epoch of the leader that made it.
    pub epoch: Epoch,
    /// The exact length of its encoding in bytes.
    pub encoded_len: usize,
    /// Its records.
    pub content: Content,
}

/// The records of a batch. Whatever is not encoded yet is encoded once, by the driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Values of data records that this leader appends.
    Data(Vec<Bytes>),
    /// Control records that this leader appends.
    Control(Vec<ControlRecord>),
    /// A batch as a leader encoded it.
    Encoded(Bytes),
}

/// What the network is to send.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// A request to a peer.
    Request {
        /// To whom.
        to: Destination,
        /// For the answer.
        id: CorrelationId,
        /// The request.
        request: Request,
    },
    /// The answer to [`Input::Request`].
    Response {
        /// The request.
        id: RequestId,
        /// The answer.
        response: Response<LogRange>,
    },
}

/// A peer as a destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Its id, or a negative number for a bootstrap server. One request at a time goes to each.
    pub id: NodeId,
    /// Where it listens.
    pub endpoint: Endpoint,
}

/// What listeners learn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Everything below is committed. Comes once for each advance, never goes back.
    HighWatermark(Offset),
    /// The epoch or its leader changed. `leader` is this node itself only from the moment on at which it
    /// may append.
    Leader {
        /// The epoch.
        epoch: Epoch,
        /// Its leader, once known.
        leader: Option<NodeId>,
    },
    /// The records of this proposal are in the leader's log and now either become committed or not. All
    /// proposals of the epoch that are appended but not committed when `Leader` reports another leader or
    /// epoch have an unknown outcome: they may still commit, each at most once.
    Appended {
        /// Which proposal.
        id: ProposalId,
        /// Its first offset.
        base: Offset,
        /// The offset after its last record.
        end: Offset,
        /// The epoch.
        epoch: Epoch,
    },
    /// Nothing of this proposal was appended, nor will be.
    NotAppended {
        /// Which proposal.
        id: ProposalId,
        /// Why.
        reason: NotAppended,
    },
    /// The log was cut: records at and above this offset, none of them committed, are gone.
    Truncated {
        /// The new log end.
        to: Offset,
        /// The log's new generation, see [`LogRange`].
        generation: u64,
    },
    /// The role changed, for logs and metrics.
    Role {
        /// As in [`ReplicaDescription::role`](crate::message::ReplicaDescription).
        role: &'static str,
        /// The epoch.
        epoch: Epoch,
        /// What made it change.
        reason: &'static str,
    },
    /// An election round ended: one line of the log.
    Round(ElectionRound),
    /// Committed data would be lost if this replica went on: it votes and fetches no more.
    IntegrityFault(IntegrityFault),
    /// Something odd came from a peer and was refused or ignored: one line of the log.
    Refused {
        /// The peer's id as it gave it, if it did.
        peer: Option<NodeId>,
        /// What was wrong.
        what: String,
    },
    /// A shutdown that was asked for is complete: nobody waits for this node.
    ShutDown,
}

/// Why a proposal was not appended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NotAppended {
    /// This node does not lead the epoch.
    NotLeader {
        /// The present epoch.
        epoch: Epoch,
        /// Its leader, once known.
        leader: Option<NodeId>,
    },
    /// As much as is allowed is appended and not yet committed.
    QueueFull,
    /// The records do not fit one batch; the limit in bytes.
    TooLarge {
        /// What the records would take.
        bytes: usize,
        /// What a batch may take.
        limit: usize,
    },
    /// There are no records, or one of them is empty, which no reader of the log would take.
    Empty,
}

/// Evidence that committed data were lost somewhere: the leader that this replica follows says, in its
/// own epoch, that this log parts from its own below the high watermark.
///
/// Differs from Kafka, which stops the process: this replica stays up, takes no part, and says why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IntegrityFault {
    /// The leader that said so.
    pub leader: NodeId,
    /// In which epoch.
    pub epoch: Epoch,
    /// Where it says that the logs part.
    pub diverging: OffsetAndEpoch,
    /// This replica's high watermark.
    pub high_watermark: Offset,
    /// This replica's log end.
    pub log_end: OffsetAndEpoch,
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timeout {
    /// An open batch is to be cut: now, once the driver has nothing more to step.
    Linger,
    /// A voter without a leader campaigns.
    Election,
    /// A follower has not fetched.
    Fetch,
    /// A leader has not heard from a majority.
    CheckQuorum,
    /// A leader announces itself to those that do not fetch.
    BeginQuorumEpoch,
    /// A parked Fetch is answered.
    ParkedFetch,
    /// A request was not answered.
    Request,
    /// A peer may be asked again.
    Backoff,
    /// A leader's oldest unfinished write is too old.
    StuckWrite,
    /// A shutdown has taken too long.
    Shutdown,
}

impl fmt::Display for IntegrityFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "leader {} of epoch {} says that our logs part at {}, but ours is committed up to {} and ends at {}: \
             committed records are lost on one side. This node votes and fetches no more. Compare both logs, then \
             format the directory that is wrong",
            self.leader, self.epoch, self.diverging, self.high_watermark, self.log_end
        )
    }
}
