//! What waits for which write, and the requests in flight.
//!
//! The table, each row with the one place where it is decided:
//!
//! | What leaves | Waits for | Where |
//! |---|---|---|
//! | whatever bears an epoch: a Vote, its answer, every other message | the latest election state | [`Outbox::answer`], [`Outbox::request`] |
//! | a Fetch at offset `o` | the log below `o` as well, that is, every write so far | `Outbox::request` |
//! | records in a Fetch answer | leader=self of this epoch; **not** the leader's own flush | `Outbox::answer` |
//! | the leader's own part in the high watermark | its own log | `Log::durable_end`, used in `role/leader.rs` |
//!
//! One request at a time goes to each destination (KIP-595), and one Fetch at a time to anyone: two could
//! append the same offsets twice.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use crate::ids::{Instant, NodeId};
use crate::io::{CorrelationId, Destination, Message, Output, RequestId, Timeout, Write, WriteId};
use crate::message::{LogRange, Request, Response};

/// A step in progress: the time, and what is asked of the world so far.
pub(crate) struct Turn<'a> {
    pub(crate) now: Instant,
    pub(crate) output: &'a mut Output,
    /// Where in the output this step's election state stands.
    pub(crate) election_write: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Outbox {
    last_write: WriteId,
    last_election: WriteId,
    durable: WriteId,
    /// Writes that are not durable, with the time at which they were asked for.
    unfinished: VecDeque<(WriteId, Instant)>,
    /// Messages with the write that they wait for, in the order of the writes.
    held: VecDeque<(WriteId, Message)>,
    last_correlation: u64,
    slots: BTreeMap<NodeId, Slot>,
    /// How long a write has taken of late.
    write_time: Duration,
    /// The shortest time in which a request was answered since the role changed; none was yet.
    shortest: Option<Duration>,
    /// The same of the role before.
    shortest_before: Duration,
}

/// The state of a destination. One that has no entry is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    /// The timeout counts from the moment at which the request leaves.
    Awaiting {
        id: CorrelationId,
        kind: RequestKind,
        timeout: Duration,
        sent: Option<Instant>,
    },
    BackingOff {
        until: Instant,
    },
    /// It is well, and not asked again for a moment.
    Pausing {
        until: Instant,
    },
}

/// A request whose answer came.
pub(crate) struct Answered {
    pub(crate) by: NodeId,
    pub(crate) kind: RequestKind,
    /// When it was sent; absent for one that had not left yet.
    pub(crate) sent: Option<Instant>,
}

/// What was asked of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestKind {
    Vote,
    BeginQuorumEpoch,
    EndQuorumEpoch,
    Fetch,
}

/// Write numbers count from the durable one, and correlation ids not at all: a destination has one request at
/// the most, so that who is asked what names it.
impl Hash for Outbox {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Outbox {
            last_write,
            last_election,
            durable,
            unfinished,
            held,
            last_correlation: _,
            slots,
            write_time: _,
            shortest: _,
            shortest_before: _,
        } = self;
        let ahead = |write: &WriteId| write.0.saturating_sub(durable.0);
        (ahead(last_write), ahead(last_election), unfinished.len(), held.len()).hash(state);
        for (write, message) in held {
            ahead(write).hash(state);
            match message {
                Message::Request { to, id: _, request } => (to, request).hash(state),
                Message::Response { id, response } => (id, response).hash(state),
            }
        }
        slots.len().hash(state);
        for (to, slot) in slots {
            to.hash(state);
            match slot {
                Slot::Awaiting { id: _, kind, timeout: _, sent } => {
                    (0, kind, sent.is_some()).hash(state)
                }
                Slot::BackingOff { until: _ } => 1.hash(state),
                Slot::Pausing { until: _ } => 2.hash(state),
            }
        }
    }
}

impl Outbox {
    /// Numbers a write and hands it to storage.
    pub(crate) fn write(&mut self, turn: &mut Turn<'_>, write: Write) -> WriteId {
        let id = WriteId(self.last_write.0 + 1);
        self.last_write = id;
        if matches!(write, Write::ElectionState(_)) {
            self.last_election = id;
        }
        self.unfinished.push_back((id, turn.now));
        turn.output.writes.push((id, write));
        id
    }

    /// Answers a request, once the election state that the answer tells of is durable.
    pub(crate) fn answer(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        response: Response<LogRange>,
    ) {
        self.send_after(turn, self.last_election, Message::Response { id, response });
    }

    /// Answers a tool, to which nothing is promised: at once, even while the disk is stuck.
    pub(crate) fn answer_tool(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        response: Response<LogRange>,
    ) {
        turn.output.messages.push(Message::Response { id, response });
    }

    /// Sends a request to a destination that is [ready](Outbox::is_ready), once what it promises is durable.
    pub(crate) fn request(
        &mut self,
        turn: &mut Turn<'_>,
        to: Destination,
        request: Request,
        timeout: Duration,
    ) {
        let (kind, after) = match &request {
            Request::Vote(_) => (RequestKind::Vote, self.last_election),
            Request::BeginQuorumEpoch(_) => (RequestKind::BeginQuorumEpoch, self.last_election),
            Request::EndQuorumEpoch(_) => (RequestKind::EndQuorumEpoch, self.last_election),
            Request::Fetch(_) => (RequestKind::Fetch, self.last_write),
            Request::FetchSnapshot(_) | Request::DescribeQuorum | Request::DescribeReplica => {
                unreachable!("a replica does not send {request:?}")
            }
        };
        self.last_correlation += 1;
        let id = CorrelationId(self.last_correlation);
        self.slots.insert(to.id, Slot::Awaiting { id, kind, timeout, sent: None });
        self.send_after(turn, after, Message::Request { to, id, request });
    }

    fn send_after(&mut self, turn: &mut Turn<'_>, write: WriteId, message: Message) {
        if write <= self.durable {
            self.send(turn, message);
        } else {
            let place = self.held.partition_point(|(held, _)| *held <= write);
            self.held.insert(place, (write, message));
        }
    }

    fn send(&mut self, turn: &mut Turn<'_>, message: Message) {
        if let Message::Request { to, .. } = &message
            && let Some(Slot::Awaiting { sent, .. }) = self.slots.get_mut(&to.id)
        {
            *sent = Some(turn.now);
        }
        turn.output.messages.push(message);
    }

    /// Lets go what waited for these writes. A prompt report tells how long they took.
    pub(crate) fn on_durable(&mut self, turn: &mut Turn<'_>, through: WriteId, is_prompt: bool) {
        assert!(through <= self.last_write, "{through:?} was never asked for");
        self.durable = self.durable.max(through);
        while let Some((id, since)) = self.unfinished.front().copied() {
            if id > through {
                break;
            }
            if is_prompt {
                // A moving average over eight writes or so.
                self.write_time = (self.write_time * 7 + turn.now.since(since)) / 8;
            }
            self.unfinished.pop_front();
        }
        while self.held.front().is_some_and(|(id, _)| *id <= through) {
            if let Some((_, message)) = self.held.pop_front() {
                self.send(turn, message);
            }
        }
    }

    /// How long a write has taken of late, from when it was asked for until it was reported, where that was prompt.
    pub(crate) fn write_time(&self) -> Duration {
        self.write_time
    }

    /// Takes note of how long an answer took that nobody held back on purpose.
    pub(crate) fn note_answer_time(&mut self, time: Duration) {
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
    }

    /// How long a round trip takes: the shortest of late, since answers may be held, or wait for a disk.
    pub(crate) fn round_trip(&self) -> Duration {
        self.shortest.unwrap_or(self.shortest_before)
    }

    /// Whether a message waits for a write.
    pub(crate) fn holds_messages(&self) -> bool {
        !self.held.is_empty()
    }

    /// When the oldest unfinished write was asked for.
    pub(crate) fn oldest_unfinished(&self) -> Option<Instant> {
        self.unfinished.front().map(|(_, since)| *since)
    }

    /// Forgets every request in flight, sent or waiting: their answers, if they come, mean nothing to
    /// another role (KIP-595).
    pub(crate) fn forget_requests(&mut self) {
        self.slots.clear();
        self.shortest_before = self.round_trip();
        self.shortest = None;
        self.held.retain(|(_, message)| matches!(message, Message::Response { .. }));
    }

    /// Takes the request that this answer belongs to, if it still counts.
    pub(crate) fn take(&mut self, answered: CorrelationId) -> Option<Answered> {
        let answered = self.slots.iter().find_map(|(to, slot)| match slot {
            Slot::Awaiting { id, kind, sent, .. } if *id == answered => {
                Some(Answered { by: *to, kind: *kind, sent: *sent })
            }
            _ => None,
        })?;
        self.slots.remove(&answered.by);
        Some(answered)
    }

    /// Whether the answer to this request still counts.
    pub(crate) fn awaits(&self, id: CorrelationId) -> bool {
        self.slots
            .values()
            .any(|slot| matches!(slot, Slot::Awaiting { id: awaited, .. } if *awaited == id))
    }

    pub(crate) fn back_off(&mut self, to: NodeId, until: Instant) {
        self.slots.insert(to, Slot::BackingOff { until });
    }

    pub(crate) fn pause(&mut self, to: NodeId, until: Instant) {
        self.slots.insert(to, Slot::Pausing { until });
    }

    pub(crate) fn is_ready(&self, to: NodeId) -> bool {
        !self.slots.contains_key(&to)
    }

    pub(crate) fn is_backing_off(&self, to: NodeId) -> bool {
        matches!(self.slots.get(&to), Some(Slot::BackingOff { .. }))
    }

    /// Whether an answer is awaited from anyone.
    pub(crate) fn is_awaiting(&self) -> bool {
        self.slots.values().any(|slot| matches!(slot, Slot::Awaiting { .. }))
    }

    /// Whether a Fetch is on its way, to anyone.
    pub(crate) fn is_fetching(&self) -> bool {
        self.slots
            .values()
            .any(|slot| matches!(slot, Slot::Awaiting { kind: RequestKind::Fetch, .. }))
    }

    /// Frees the destinations whose backoff is over, and those that did not answer in time: these are
    /// returned.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<(NodeId, RequestKind)> {
        let mut timed_out = Vec::new();
        self.slots.retain(|to, slot| match slot {
            Slot::Awaiting { kind, timeout, sent: Some(sent), .. } if *sent + *timeout <= now => {
                timed_out.push((*to, *kind));
                false
            }
            Slot::BackingOff { until } | Slot::Pausing { until } => *until > now,
            Slot::Awaiting { .. } => true,
        });
        timed_out
    }

    /// When the next destination becomes free by itself.
    pub(crate) fn deadline(&self) -> Option<(Instant, Timeout)> {
        self.slots
            .values()
            .filter_map(|slot| match slot {
                Slot::Awaiting { timeout, sent, .. } => {
                    sent.map(|at| (at + *timeout, Timeout::Request))
                }
                Slot::BackingOff { until } | Slot::Pausing { until } => {
                    Some((*until, Timeout::Backoff))
                }
            })
            .min()
    }
}
