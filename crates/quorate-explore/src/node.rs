//! One replica with its disk and its clock, and what one event makes of them.
//!
//! A node is a value, and what an event does to it depends on nothing else: so each pair of a node and an event
//! is worked out once. What a replica may say and keep is checked here; what concerns several of them is in
//! `rules.rs`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use bytes::Bytes;
use quorate_core::io::{
    CorrelationId, Event, Input, Message, Output, ProposalId, RequestId, Timeout, Write, WriteId,
};
use quorate_core::message::{
    ErrorCode, FetchOutcome, FetchResponse, LogRange, Received, Request, Response, Unreachable,
};
use quorate_core::{Epoch, Instant, NodeId, Offset, Replica, ReplicaKey};

use crate::batches::{BatchId, Batches};
use crate::cluster::{Cluster, node_at};
use crate::disk::{Disk, DiskWrite};

thread_local! {
    static IN_THE_CORE: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics of the core, which become findings, from being printed as well.
pub(crate) fn quieten_the_core() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IN_THE_CORE.get() {
                loud(info);
            }
        }));
    });
}

/// What an asker gets.
pub(crate) type Answer = Result<Response<Received>, Unreachable>;

/// What happens to a node.
pub(crate) enum Happening<'a> {
    Request {
        from: u8,
        request: &'a Request,
        /// Whether it counts no more for its asker.
        is_late: bool,
    },
    /// The answer of the request that went to this destination.
    Answer { slot: i32, answer: &'a Answer },
    /// The oldest pending write is durable.
    Durable,
    /// The clock moves on until something leaves, but not past a timeout of the role.
    Tick,
    /// The clock moves on until a timeout of the role has passed.
    Timeout,
    /// The state machine proposes a record and the driver lets the batch be cut.
    Propose(u8),
}

/// What a node does to the network, in this order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Deed {
    /// Whatever comes of its request to this destination is nothing to it any more.
    Forget { slot: i32 },
    /// A request leaves.
    Ask { slot: i32, to: u8, request: Request },
    /// It answers the request that it knows by asker and tag.
    Reply { to: u8, tag: u8, answer: Answer },
}

/// A request that is not answered yet. Tags tell those of one asker apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    asker: u8,
    tag: u8,
    /// Whose vote is asked for, unless it is a pre-vote.
    vote: Option<(Epoch, ReplicaKey)>,
}

/// A running replica with all that belongs to it.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) place: u8,
    pub(crate) replica: Replica,
    now: Instant,
    deadline: Option<(Instant, Timeout)>,
    pub(crate) disk: Disk,
    pending: Vec<(WriteId, DiskWrite)>,
    /// The log as readers see it: what is durable, and what is pending on top of it.
    pub(crate) log: Vec<BatchId>,
    generation: u64,
    /// The requests that have left and still count, by destination; whether each is a Fetch.
    asked: BTreeMap<i32, (CorrelationId, bool)>,
    open: Vec<Open>,
    pub(crate) role: &'static str,
    pub(crate) epoch: Epoch,
    pub(crate) leader: Option<NodeId>,
    pub(crate) high_watermark: Option<Offset>,
    /// The largest high watermark that the replica reported since its start.
    pub(crate) committed: Offset,
    /// The last epoch in which this directory's vote was given away, and to whom: told to anyone, even before a
    /// crash.
    pub(crate) promised: Option<(Epoch, ReplicaKey)>,
    /// The last epoch that this directory was written to have led, before the last crash.
    led: Epoch,
    /// What was odd about the peer in the event that is being worked out.
    odd: Option<String>,
}

/// What decides what a node does next: instants and numbers that only name things do not.
impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Node {
            place,
            replica,
            now: _,
            deadline,
            disk,
            pending,
            log: _,
            generation: _,
            asked,
            open,
            role: _,
            epoch: _,
            leader: _,
            high_watermark: _,
            committed: _,
            promised,
            led,
            odd: _,
        } = self;
        (place, replica, deadline.map(|(_, why)| why), disk, open, promised, led).hash(state);
        pending.len().hash(state);
        pending.iter().for_each(|(_, write)| write.hash(state));
        asked.len().hash(state);
        asked.iter().for_each(|(slot, (_, is_fetch))| (slot, is_fetch).hash(state));
    }
}

impl Node {
    /// A node on an empty directory.
    pub(crate) fn new(
        place: u8,
        cluster: &Cluster,
        batches: &mut Batches,
        deeds: &mut Vec<Deed>,
    ) -> Result<Node, String> {
        Node::start(place, Disk::default(), None, Epoch(0), cluster, batches, deeds)
    }

    /// The node after a crash that left this directory.
    pub(crate) fn restart(
        &self,
        disk: Disk,
        cluster: &Cluster,
        batches: &mut Batches,
        deeds: &mut Vec<Deed>,
    ) -> Result<Node, String> {
        let me = cluster.configs[usize::from(self.place)].node;
        let led = disk.election.iter().filter(|state| state.leader == Some(me));
        let led = led.map(|state| state.epoch).fold(self.led, Epoch::max);
        Node::start(self.place, disk, self.promised, led, cluster, batches, deeds)
    }

    fn start(
        place: u8,
        disk: Disk,
        promised: Option<(Epoch, ReplicaKey)>,
        led: Epoch,
        cluster: &Cluster,
        batches: &mut Batches,
        deeds: &mut Vec<Deed>,
    ) -> Result<Node, String> {
        let config = cluster.configs[usize::from(place)].clone();
        let recovered = disk.recovered(cluster.bootstrap.clone(), batches);
        let mut output = Output::default();
        let now = Instant::default();
        let replica = guarded(|| Replica::start(config, recovered, now, &mut output))?
            .map_err(|error| format!("does not start: {error}"))?;
        let mut node = Node {
            place,
            replica,
            now,
            deadline: None,
            log: disk.log.clone(),
            disk,
            pending: Vec::new(),
            generation: 0,
            asked: BTreeMap::new(),
            open: Vec::new(),
            role: "",
            epoch: Epoch(0),
            leader: None,
            high_watermark: None,
            committed: Offset::ZERO,
            promised,
            led,
            odd: None,
        };
        node.absorb(output, cluster, batches, deeds)?;
        node.check(cluster, batches)?;
        Ok(node)
    }

    /// Every directory that a crash may leave.
    pub(crate) fn after_crash(&self, batches: &Batches) -> Vec<Disk> {
        let pending: Vec<DiskWrite> = self.pending.iter().map(|(_, write)| write.clone()).collect();
        self.disk.after_crash(&pending, batches)
    }

    pub(crate) fn has_pending_writes(&self) -> bool {
        !self.pending.is_empty()
    }

    /// What becomes durable next, for a story.
    pub(crate) fn oldest_pending(&self, batches: &Batches) -> String {
        match self.pending.first() {
            None => String::new(),
            Some((_, DiskWrite::ElectionState(state))) => crate::story::show_election(state),
            Some((_, DiskWrite::Append(id))) => batches.show(*id),
            Some((_, DiskWrite::Truncate(to))) => format!("cut to {to}"),
        }
    }

    /// The destinations of which an answer is awaited.
    pub(crate) fn asked(&self) -> impl Iterator<Item = i32> {
        self.asked.keys().copied()
    }

    /// The smallest tag under which no request of this asker is open.
    pub(crate) fn free_tag(&self, asker: u8) -> u8 {
        let is_free = |tag: &u8| !self.open.iter().any(|o| o.asker == asker && o.tag == *tag);
        (0..u8::MAX).find(is_free).expect("few requests are open")
    }

    /// Whether a timeout of the role lies ahead.
    pub(crate) fn has_timeout(&self) -> bool {
        self.deadline.is_some_and(|(_, why)| is_role_timeout(why) || is_passing(why))
    }

    /// Whether something smaller is due before that.
    pub(crate) fn has_tick(&self) -> bool {
        self.deadline.is_some_and(|(_, why)| is_passing(why))
    }

    /// What the node becomes, and what it does meanwhile. An error is a broken rule.
    pub(crate) fn react(
        &self,
        happening: &Happening<'_>,
        cluster: &Cluster,
        batches: &mut Batches,
        deeds: &mut Vec<Deed>,
    ) -> Result<Node, String> {
        let mut node = self.clone();
        match happening {
            Happening::Request { from, request, is_late } => {
                let tag = node.free_tag(*from);
                let vote = match request {
                    Request::Vote(vote) if !vote.pre_vote => Some((vote.epoch, vote.replica)),
                    _ => None,
                };
                node.open.push(Open { asker: *from, tag, vote });
                let id = RequestId(u64::from(*from) << 8 | u64::from(tag));
                let via = cluster.via.clone();
                let input = Input::Request { id, via, request: (*request).clone() };
                node.step(input, cluster, batches, deeds)?;
                // What comes late may look odd.
                node.odd = node.odd.filter(|_| !is_late);
            }
            Happening::Answer { slot, answer } => {
                let (id, _) = node.asked.remove(slot).ok_or("gets an answer it does not await")?;
                let input = Input::Response { id, response: (*answer).clone() };
                node.step(input, cluster, batches, deeds)?;
            }
            Happening::Durable => {
                let (through, write) = node.pending.remove(0);
                node.disk.apply(&write, batches);
                node.step(Input::Durable { through }, cluster, batches, deeds)?;
            }
            Happening::Tick => {
                let before = deeds.len();
                while deeds.len() == before
                    && let Some((at, why)) = node.deadline
                    && is_passing(why)
                {
                    node.now = node.now.max(at);
                    node.step(Input::Tick, cluster, batches, deeds)?;
                }
            }
            Happening::Timeout => {
                while let Some((at, why)) = node.deadline
                    && (is_role_timeout(why) || is_passing(why))
                {
                    node.now = node.now.max(at);
                    node.step(Input::Tick, cluster, batches, deeds)?;
                    if is_role_timeout(why) {
                        break;
                    }
                }
            }
            Happening::Propose(number) => {
                let records = vec![Bytes::from(format!("p{number}"))];
                let id = ProposalId(u64::from(*number));
                let epoch = node.epoch;
                node.step(Input::Propose { id, epoch, records }, cluster, batches, deeds)?;
                while let Some((at, Timeout::Linger)) = node.deadline {
                    node.now = node.now.max(at);
                    node.step(Input::Tick, cluster, batches, deeds)?;
                }
            }
        }
        node.check(cluster, batches)?;
        Ok(node)
    }

    fn step(
        &mut self,
        input: Input,
        cluster: &Cluster,
        batches: &mut Batches,
        deeds: &mut Vec<Deed>,
    ) -> Result<(), String> {
        let mut output = Output::default();
        guarded(|| self.replica.step(self.now, input, &mut output))?;
        self.absorb(output, cluster, batches, deeds)
    }

    /// Does what a driver does with the output of a step.
    fn absorb(
        &mut self,
        output: Output,
        cluster: &Cluster,
        batches: &mut Batches,
        deeds: &mut Vec<Deed>,
    ) -> Result<(), String> {
        self.deadline = output.deadline;
        for (id, write) in output.writes {
            self.submit(id, write, batches)?;
        }
        for event in output.events {
            match event {
                Event::HighWatermark(offset) if offset <= self.committed => {
                    return Err(format!(
                        "its high watermark goes from {} to {offset}",
                        self.committed
                    ));
                }
                Event::HighWatermark(offset) => self.committed = offset,
                Event::Truncated { generation, .. } => self.generation = generation,
                Event::IntegrityFault(fault) => {
                    return Err(format!("committed data are lost: {fault}"));
                }
                Event::Refused { peer, what } => {
                    self.odd = Some(format!("finds a correct peer ({peer:?}) odd: {what}"));
                }
                Event::NotAppended { id, reason } => {
                    return Err(format!("a leader does not append {id:?}: {reason:?}"));
                }
                Event::Leader { .. } | Event::Appended { .. } | Event::Role { .. } => {}
                Event::Round(_) | Event::ShutDown => {}
            }
        }
        self.forget(deeds)?;
        for message in output.messages {
            match message {
                Message::Request { to, id, request } => {
                    // A request may leave and be forgotten in one step, by a change of the role.
                    if self.asked.remove(&to.id.0).is_some() {
                        deeds.push(Deed::Forget { slot: to.id.0 });
                    }
                    self.check_request(&request, cluster, batches)?;
                    let is_fetch = matches!(request, Request::Fetch(_));
                    self.asked.insert(to.id.0, (id, is_fetch));
                    let node = u8::try_from(node_at(&to.endpoint)).expect("few nodes");
                    deeds.push(Deed::Ask { slot: to.id.0, to: node, request });
                }
                Message::Response { id, response } => {
                    let (asker, tag) = (u8::try_from(id.0 >> 8), u8::try_from(id.0 & 0xff));
                    let (Ok(to), Ok(tag)) = (asker, tag) else {
                        return Err(format!("answers {id:?}, which nobody asked"));
                    };
                    let place =
                        self.open.iter().position(|open| open.asker == to && open.tag == tag);
                    let Some(place) = place else {
                        return Err(format!("answers a request of node {to} twice"));
                    };
                    let open = self.open.remove(place);
                    self.check_response(&open, &response)?;
                    let answer = self.filled(response, batches);
                    deeds.push(Deed::Reply { to, tag, answer });
                }
            }
        }
        self.forget(deeds)
    }

    fn submit(&mut self, id: WriteId, write: Write, batches: &mut Batches) -> Result<(), String> {
        let end = batches.end(&self.log);
        let write = match write {
            Write::ElectionState(state) => DiskWrite::ElectionState(state),
            Write::Append(batch) => {
                if batch.base != end {
                    return Err(format!("appends at {} to a log that ends at {end}", batch.base));
                }
                DiskWrite::Append(batches.intern(batch))
            }
            Write::Truncate { to } => {
                if to < self.committed {
                    let committed = self.committed;
                    return Err(format!(
                        "cuts its log to {to}, below its high watermark {committed}"
                    ));
                }
                if batches.below(&self.log, to).is_none() {
                    return Err(format!("cuts a batch in two, at {to}"));
                }
                DiskWrite::Truncate(to)
            }
        };
        // Readers see writes at once.
        let mut view = Disk { election: None, log: std::mem::take(&mut self.log) };
        view.apply(&write, batches);
        self.log = view.log;
        self.pending.push((id, write));
        Ok(())
    }

    /// Notes which requests count no more, and tries whether their answers do nothing indeed.
    fn forget(&mut self, deeds: &mut Vec<Deed>) -> Result<(), String> {
        let forgotten: Vec<(i32, CorrelationId)> = self
            .asked
            .iter()
            .filter(|(_, (id, _))| !self.replica.awaits(*id))
            .map(|(slot, (id, _))| (*slot, *id))
            .collect();
        for (slot, id) in forgotten {
            self.asked.remove(&slot);
            deeds.push(Deed::Forget { slot });
            let mut replica = self.replica.clone();
            let mut output = Output::default();
            let input = Input::Response { id, response: Err(Unreachable::Reset) };
            guarded(|| replica.step(self.now, input, &mut output))?;
            if replica != self.replica || !output.writes.is_empty() || !output.messages.is_empty() {
                return Err("a late answer changes something".into());
            }
        }
        Ok(())
    }

    /// What a request promises is on stable media (protocol reference 8.1, 21 to 23).
    fn check_request(
        &mut self,
        request: &Request,
        cluster: &Cluster,
        batches: &Batches,
    ) -> Result<(), String> {
        let me = cluster.configs[usize::from(self.place)].key();
        let (epoch, leader, voted) = self.written();
        match request {
            Request::Vote(vote) => {
                if epoch != vote.epoch {
                    return Err(format!(
                        "asks for votes of epoch {}, {epoch} is durable",
                        vote.epoch
                    ));
                }
                if !vote.pre_vote {
                    if voted != Some(me) {
                        return Err("asks for votes before its own is durable".into());
                    }
                    self.promise(vote.epoch, me)?;
                }
            }
            Request::BeginQuorumEpoch(begin) if (epoch, leader) != (begin.epoch, Some(me.id)) => {
                return Err("announces itself before its leadership is durable".into());
            }
            Request::Fetch(fetch) => {
                if epoch != fetch.epoch {
                    return Err(format!("fetches in epoch {}, {epoch} is durable", fetch.epoch));
                }
                let durable = (batches.end(&self.disk.log), batches.last_epoch(&self.disk.log));
                if durable != (fetch.offset, fetch.last_fetched_epoch) {
                    let (offset, epoch) = durable;
                    return Err(format!(
                        "fetches at {} after epoch {}, but {offset}@{epoch} is durable",
                        fetch.offset, fetch.last_fetched_epoch
                    ));
                }
                if self.asked.values().any(|(_, is_fetch)| *is_fetch) {
                    return Err("has two Fetches in flight".into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_response(&mut self, open: &Open, response: &Response<LogRange>) -> Result<(), String> {
        let (epoch, _, voted) = self.written();
        let told = match response {
            Response::Vote(vote) => {
                if vote.granted
                    && let Some((asked, candidate)) = open.vote
                {
                    let is_durable = epoch > asked || (epoch == asked && voted == Some(candidate));
                    if !is_durable {
                        let id = candidate.id;
                        return Err(format!("grants {id} epoch {asked}, which is not durable"));
                    }
                    self.promise(asked, candidate)?;
                }
                vote.current.epoch
            }
            Response::Fetch(fetch) => fetch.current.epoch,
            Response::BeginQuorumEpoch(answer) | Response::EndQuorumEpoch(answer) => {
                answer.current.epoch
            }
            Response::TopLevel(error) => {
                return Err(format!("finds a correct peer odd: {error:?}"));
            }
            _ => Epoch(0),
        };
        if told > epoch {
            return Err(format!("tells of epoch {told}, but {epoch} is durable"));
        }
        Ok(())
    }

    /// One vote a directory and epoch, over all of history.
    fn promise(&mut self, epoch: Epoch, candidate: ReplicaKey) -> Result<(), String> {
        match self.promised {
            Some((last, other)) if last == epoch && other != candidate => {
                Err(format!("votes in epoch {epoch} for {} and for {}", other.id, candidate.id))
            }
            Some((last, _)) if last >= epoch => Ok(()),
            _ => {
                self.promised = Some((epoch, candidate));
                Ok(())
            }
        }
    }

    /// The election state on stable media.
    fn written(&self) -> (Epoch, Option<NodeId>, Option<ReplicaKey>) {
        self.disk
            .election
            .as_ref()
            .map_or((Epoch(0), None, None), |state| (state.epoch, state.leader, state.voted))
    }

    /// What must hold of a replica between events (protocol reference 8.1; the numbers are its).
    fn check(&mut self, cluster: &Cluster, batches: &Batches) -> Result<(), String> {
        if let Some(odd) = self.odd.take() {
            return Err(odd);
        }
        let view = self.replica.describe(self.now);
        let was_leader = self.role == "leader" && self.epoch == view.epoch;
        if view.epoch < self.epoch {
            return Err(format!("goes back from epoch {} to {}", self.epoch, view.epoch));
        }
        if view.epoch == self.epoch && self.leader.is_some() && view.leader != self.leader {
            let (old, new) = (self.leader, view.leader);
            return Err(format!("epoch {} had the leader {old:?}, now {new:?}", self.epoch));
        }
        self.epoch = view.epoch;
        self.leader = view.leader;
        self.role = view.role;
        let end = (batches.end(&self.log), batches.last_epoch(&self.log));
        if (view.log_end.offset, view.log_end.epoch) != end {
            return Err(format!(
                "its log ends at {}, on disk at {}@{}",
                view.log_end, end.0, end.1
            ));
        }
        // 21: what it counts as durable is, and is what its log says.
        let agree = self.log.iter().zip(&self.disk.log).take_while(|(a, b)| a == b).count();
        if view.durable_end > batches.end(&self.log[..agree]) {
            return Err(format!("counts {} as durable, which is not", view.durable_end));
        }
        // 19: the effective voters are the latest of the log.
        let mut in_log = self.log.iter().flat_map(|id| &batches.get(*id).control).filter_map(
            |(offset, record)| match record {
                quorate_core::message::ControlRecord::Voters(set) => Some((*offset, set)),
                _ => None,
            },
        );
        let first = (!cluster.bound.static_voters).then_some(Offset(-1));
        let (offset, set) = in_log
            .next_back()
            .map_or((first, &cluster.voters), |(offset, set)| (Some(offset), set));
        if view.voters_offset != offset || view.voters != *set {
            return Err(format!(
                "its voters are those of {:?}, not {offset:?}",
                view.voters_offset
            ));
        }
        if let Some(high_watermark) = view.high_watermark {
            let Some(count) = batches.below(&self.log, high_watermark) else {
                return Err(format!("its high watermark {high_watermark} is not in its log"));
            };
            // 11: a leader commits nothing before a record of its own.
            let last = batches.last_epoch(&self.log[..count]);
            if view.role == "leader" && last != view.epoch {
                return Err(format!("leads epoch {} and commits up to epoch {last}", view.epoch));
            }
        }
        if view.role == "leader" && !was_leader && view.epoch <= self.led {
            return Err(format!("leads epoch {} again after a crash", view.epoch));
        }
        self.high_watermark = view.high_watermark;
        Ok(())
    }

    /// Puts the records into an answer.
    fn filled(&self, response: Response<LogRange>, batches: &Batches) -> Answer {
        Ok(match response {
            Response::Vote(answer) => Response::Vote(answer),
            Response::BeginQuorumEpoch(answer) => Response::BeginQuorumEpoch(answer),
            Response::EndQuorumEpoch(answer) => Response::EndQuorumEpoch(answer),
            Response::Fetch(fetch) => {
                let FetchResponse { mut error, current, mut high_watermark, log_start, outcome } =
                    fetch;
                let outcome = match outcome {
                    FetchOutcome::Diverging(at) => FetchOutcome::Diverging(at),
                    FetchOutcome::Snapshot(at) => FetchOutcome::Snapshot(at),
                    FetchOutcome::Records(range) => {
                        let mut received = Received::default();
                        if range.generation == self.generation {
                            let log = self.log.iter().map(|id| batches.get(*id));
                            let within = log.filter(|b| b.base >= range.from && b.end <= range.to);
                            received.batches = within.cloned().collect();
                        } else {
                            error = ErrorCode::NOT_LEADER_OR_FOLLOWER;
                            high_watermark = None;
                        }
                        FetchOutcome::Records(received)
                    }
                };
                Response::Fetch(FetchResponse {
                    error,
                    current,
                    high_watermark,
                    log_start,
                    outcome,
                })
            }
            other => return Err(unexpected(&other)),
        })
    }
}

/// Tools' requests are not part of an exploration.
fn unexpected(_: &Response<LogRange>) -> Unreachable {
    Unreachable::Malformed
}

/// Whether a deadline stands for a role's patience, which is what a bound counts.
fn is_role_timeout(why: Timeout) -> bool {
    matches!(why, Timeout::Election | Timeout::Fetch | Timeout::CheckQuorum | Timeout::StuckWrite)
}

/// Whether a deadline is one of those that pass again and again. The others are as far away as can be.
fn is_passing(why: Timeout) -> bool {
    matches!(why, Timeout::Linger | Timeout::BeginQuorumEpoch | Timeout::Backoff)
}

/// Runs the core; a panic in it is a broken rule, and told with its story.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    IN_THE_CORE.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IN_THE_CORE.set(false);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        format!("panics: {}", text.unwrap_or_default())
    })
}
