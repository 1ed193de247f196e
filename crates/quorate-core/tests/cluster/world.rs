//! A small cluster on a clock, a network and disks of memory, all driven by one seed.
//!
//! After every step the rules of Raft are checked on what the replicas asked for; a disk keeps what it
//! reported as durable and, in a crash, any prefix of the writes after it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::Config;
use quorate_core::io::{
    CorrelationId, Destination, ElectionState, Input, Message, Output, ProposalId, RequestId,
    StorageTrouble, Timeout, Write, WriteId,
};
use quorate_core::message::{
    ControlRecord, ErrorCode, FetchOutcome, FetchResponse, KRaftVersion, LogRange, Received,
    ReceivedBatch, Request, Response, Unreachable, Via,
};
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{
    DirectoryId, Endpoint, Endpoints, Epoch, Instant, ListenerName, NodeId, Offset, Replica,
    ReplicaKey,
};

use super::disk::Disk;

#[path = "rules.rs"]
mod rules;

/// How the cluster of a run is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) nodes: i32,
    /// Voters in the 0-0 checkpoint (kraft.version 1), else static ones.
    pub(crate) dynamic: bool,
}

/// SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

struct Node {
    replica: Option<Replica>,
    config: Config,
    bootstrap: Vec<ControlRecord>,
    /// What is on stable media.
    durable: Disk,
    /// What readers see.
    view: Disk,
    pending: VecDeque<(WriteId, Write)>,
    generation: u64,
    boot: u64,
    deadline: Option<Instant>,
    high_watermark: Offset,
    fetch_in_flight: Option<(CorrelationId, Instant)>,
    leads: Option<Epoch>,
    is_stuck: bool,
    is_broken: bool,
    shut_down: bool,
    steps: u64,
    /// Election states that it asked to be written, and how many batches.
    writes: (Vec<ElectionState>, u64),
}

/// A node in one of its lives, the request that waits there, and for a real vote who would get it.
type Asker = (usize, u64, CorrelationId, Option<ReplicaKey>);

enum Happening {
    Step { node: usize, boot: u64, input: Box<Input>, to: Option<(usize, u64, CorrelationId)> },
    Flush { node: usize, boot: u64 },
    Tick { node: usize, boot: u64 },
    Restart { node: usize },
}

pub(crate) struct World {
    pub(crate) chance: Chance,
    pub(crate) now: Instant,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    happenings: HashMap<u64, Happening>,
    last_happening: u64,
    nodes: Vec<Node>,
    listener: ListenerName,
    /// Who waits for the answer to a request, and who asked for which vote.
    askers: BTreeMap<(usize, u64, RequestId), Asker>,
    /// Links that are cut, in one direction.
    cut: BTreeSet<(usize, usize)>,
    pub(crate) is_faulty: bool,
    // What has been seen, for the rules.
    leaders: BTreeMap<Epoch, usize>,
    content: BTreeMap<(Offset, Epoch), (Bytes, Epoch)>,
    control: BTreeMap<(Offset, Epoch), Vec<(Offset, ControlRecord)>>,
    committed: Vec<(Offset, Epoch)>,
    committed_end: Offset,
    last_proposal: u64,
    not_appended: BTreeSet<ProposalId>,
    /// What happened of late; kept where somebody will read it.
    story: Option<VecDeque<String>>,
}

fn key(id: i32) -> ReplicaKey {
    let mut directory = [7; 16];
    directory[15] = u8::try_from(id).unwrap();
    ReplicaKey::new(NodeId(id), DirectoryId::from_bytes(directory))
}

impl World {
    pub(crate) fn new(seed: u64, shape: Shape) -> World {
        let listener = ListenerName::new("CONTROLLER");
        let endpoint = |id: i32| Endpoint::new("host", u16::try_from(9000 + id).unwrap());
        let voters = VoterSet::new((0..shape.nodes).map(|id| {
            let directory = key(id).directory.filter(|_| shape.dynamic);
            let endpoints = Endpoints::from([(listener.clone(), endpoint(id))]);
            let level = KRaftVersion(i16::from(shape.dynamic));
            (NodeId(id), Voter { directory, endpoints, kraft_versions: (KRaftVersion(0), level) })
        }))
        .unwrap();
        let nodes = (0..shape.nodes).map(|id| {
            let mut config = Config::new(NodeId(id), key(id).directory.unwrap(), listener.clone());
            config.endpoints = Endpoints::from([(listener.clone(), endpoint(id))]);
            config.linger = Duration::from_millis(seed % 3 * 5);
            config.high_watermark_linger = Duration::from_millis(seed % 2);
            let mut bootstrap = Vec::new();
            if shape.dynamic {
                config.bootstrap_servers = (0..shape.nodes).map(endpoint).collect();
                bootstrap.push(ControlRecord::KRaftVersion(KRaftVersion(1)));
                bootstrap.push(ControlRecord::Voters(voters.clone()));
            } else {
                config.static_voters = voters.clone();
            }
            Node {
                replica: None,
                config,
                bootstrap,
                durable: Disk::default(),
                view: Disk::default(),
                pending: VecDeque::new(),
                generation: 0,
                boot: 0,
                deadline: None,
                high_watermark: Offset(0),
                fetch_in_flight: None,
                leads: None,
                is_stuck: false,
                is_broken: false,
                shut_down: false,
                steps: 0,
                writes: (Vec::new(), 0),
            }
        });
        let mut world = World {
            chance: Chance(seed),
            now: Instant::default(),
            queue: BinaryHeap::new(),
            happenings: HashMap::new(),
            last_happening: 0,
            nodes: nodes.collect(),
            listener,
            askers: BTreeMap::new(),
            cut: BTreeSet::new(),
            is_faulty: true,
            leaders: BTreeMap::new(),
            content: BTreeMap::new(),
            control: BTreeMap::new(),
            committed: Vec::new(),
            committed_end: Offset(0),
            last_proposal: 0,
            not_appended: BTreeSet::new(),
            story: None,
        };
        for node in 0..world.nodes.len() {
            world.after(0, Happening::Restart { node });
        }
        world
    }

    /// Remembers from now on what happens.
    pub(crate) fn keep_story(&mut self) {
        self.story = Some(VecDeque::new());
    }

    /// The last lines of what happened, for a failure.
    pub(crate) fn story(&self) -> String {
        let lines = self.story.iter().flatten().cloned();
        lines.collect::<Vec<_>>().join("\n")
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        let Some(story) = &mut self.story else { return };
        if story.len() == 400 {
            story.pop_front();
        }
        story.push_back(format!("{:?} {}", self.now, line()));
    }

    fn after(&mut self, micros: u64, happening: Happening) {
        self.last_happening += 1;
        self.happenings.insert(self.last_happening, happening);
        let at = self.now + Duration::from_micros(micros);
        self.queue.push(Reverse((at, self.last_happening)));
    }

    /// Lets everything happen that is due within `time`.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(Reverse((at, id))) = self.queue.peek().copied() {
            if at > end {
                break;
            }
            self.queue.pop();
            self.now = at;
            let Some(happening) = self.happenings.remove(&id) else { continue };
            match happening {
                Happening::Restart { node } => self.restart(node),
                Happening::Step { node, boot, input, to } => {
                    if self.is_up(node, boot) {
                        self.step(node, *input);
                    } else if let Some((asker, boot, id)) = to {
                        // The host answers for the process that is gone.
                        let response = Err(Unreachable::Refused);
                        self.deliver(node, asker, boot, Input::Response { id, response }, None);
                    }
                }
                Happening::Flush { node, boot } => self.flush(node, boot),
                Happening::Tick { node, boot } => {
                    let due = self.nodes[node].deadline.is_some_and(|at| at <= self.now);
                    if due && self.is_up(node, boot) {
                        self.step(node, Input::Tick);
                    }
                }
            }
        }
        self.now = end;
    }

    fn is_up(&self, node: usize, boot: u64) -> bool {
        self.nodes[node].replica.is_some() && self.nodes[node].boot == boot
    }

    /// One random bad thing.
    pub(crate) fn disturb(&mut self) {
        let node = usize::try_from(self.chance.below(self.nodes.len() as u64)).unwrap();
        match self.chance.below(16) {
            0 | 1 => self.crash(node),
            2 => {
                self.nodes[node].is_stuck = !self.nodes[node].is_stuck;
                let boot = self.nodes[node].boot;
                self.after(1000, Happening::Flush { node, boot });
            }
            3 | 4 => {
                for other in 0..self.nodes.len() {
                    self.cut.insert((node, other));
                    if self.chance.percent(70) {
                        self.cut.insert((other, node));
                    }
                }
            }
            5 => {
                let other = usize::try_from(self.chance.below(self.nodes.len() as u64)).unwrap();
                self.cut.insert((node, other));
            }
            6 | 7 => self.cut.clear(),
            8 => {
                if let Some(epoch) = self.nodes[node].leads {
                    self.poke(node, Input::Resign { epoch });
                }
            }
            9 => self.poke(node, Input::Shutdown),
            10 if self.chance.percent(30) => {
                self.poke(node, Input::Storage(StorageTrouble::Failed));
                self.nodes[node].is_broken = true;
            }
            _ => {}
        }
    }

    fn poke(&mut self, node: usize, input: Input) {
        if self.nodes[node].replica.is_some() {
            self.step(node, input);
        }
    }

    /// Proposes a record at whoever believes to lead.
    pub(crate) fn propose(&mut self) {
        for node in 0..self.nodes.len() {
            let Some(epoch) = self.nodes[node].leads else { continue };
            self.last_proposal += 1;
            let id = self.last_proposal;
            let count = 1 + self.chance.below(3);
            let records = (0..count).map(|i| Bytes::from(format!("p{id}.{i}"))).collect();
            self.poke(node, Input::Propose { id: ProposalId(id), epoch, records });
        }
    }

    /// Faults end, everybody is back.
    pub(crate) fn heal(&mut self) {
        self.is_faulty = false;
        self.cut.clear();
        for node in 0..self.nodes.len() {
            let state = &mut self.nodes[node];
            state.is_stuck = false;
            let boot = state.boot;
            // A broken disk needs its operator.
            if state.is_broken {
                self.crash(node);
            } else if state.replica.is_some() {
                self.after(1000, Happening::Flush { node, boot });
            }
        }
    }

    /// How many records are committed.
    pub(crate) fn committed(&self) -> Offset {
        self.committed_end
    }

    /// Which election states each node asked to be written so far, and how many batches.
    pub(crate) fn writes(&self) -> Vec<(Vec<ElectionState>, u64)> {
        self.nodes.iter().map(|node| node.writes.clone()).collect()
    }

    /// Whoever leads.
    pub(crate) fn leader(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.leads.is_some())
    }

    /// Tells a node to stop; it starts again at once.
    pub(crate) fn shut_down(&mut self, node: usize) {
        self.poke(node, Input::Shutdown);
    }

    /// How often the replicas were stepped so far.
    pub(crate) fn steps(&self) -> u64 {
        self.nodes.iter().map(|node| node.steps).sum()
    }

    /// The one leader that everybody follows, or what each believes.
    pub(crate) fn agreed_leader(&self) -> Result<NodeId, String> {
        let views: Vec<_> = self
            .nodes
            .iter()
            .map(|node| {
                let view = node.replica.as_ref().map(|replica| replica.describe(self.now))?;
                Some((view.role, view.epoch, view.leader, view.log_end, view.high_watermark))
            })
            .collect();
        let leader = views[0].and_then(|view| view.2);
        let same = views.iter().all(|view| {
            view.is_some_and(|view| {
                view.2 == leader && (view.0 == "follower" || view.0 == "leader")
            })
        });
        leader.filter(|_| same).ok_or_else(|| format!("{views:#?}"))
    }

    /// Everything proposed is committed everywhere.
    pub(crate) fn is_level(&self) -> bool {
        self.nodes.iter().all(|node| node.high_watermark == self.nodes[0].view.end())
            && self.nodes.iter().all(|node| node.view.end() == self.nodes[0].view.end())
    }

    pub(crate) fn crash(&mut self, node: usize) {
        let lost = self.nodes[node].pending.len();
        let kept = self.chance.below(lost as u64 + 1);
        if self.nodes[node].replica.take().is_none() {
            return;
        }
        let pending = std::mem::take(&mut self.nodes[node].pending);
        for (_, write) in pending.into_iter().take(usize::try_from(kept).unwrap()) {
            self.persist(node, write);
        }
        // Its host resets the connections on which answers were awaited.
        let boot = self.nodes[node].boot;
        let waiting = (node, boot, RequestId(0))..=(node, boot, RequestId(u64::MAX));
        let waiting: Vec<Asker> = self.askers.range(waiting).map(|(_, asker)| *asker).collect();
        for (to, to_boot, id, _) in waiting {
            let input = Input::Response { id, response: Err(Unreachable::Reset) };
            self.deliver(node, to, to_boot, input, None);
        }
        let state = &mut self.nodes[node];
        state.boot += 1;
        state.deadline = None;
        state.leads = None;
        self.tell(|| format!("n{node} crashes, {kept} of {lost} unsynced writes survive"));
        let down = if self.is_faulty { self.chance.below(3_000_000) } else { 10_000 };
        self.after(down, Happening::Restart { node });
    }

    fn restart(&mut self, node: usize) {
        let now = self.now;
        let control = &self.control;
        let state = &mut self.nodes[node];
        for batch in &mut state.durable.log {
            batch.control = control.get(&(batch.base, batch.epoch)).cloned().unwrap_or_default();
        }
        state.view = state.durable.clone();
        state.generation = 0;
        state.high_watermark = Offset(0);
        state.fetch_in_flight = None;
        state.is_stuck = false;
        state.is_broken = false;
        state.config.seed = self.chance.next();
        let mut output = Output::default();
        let recovered = state.durable.recovered(state.bootstrap.clone());
        let replica = Replica::start(state.config.clone(), recovered, now, &mut output).unwrap();
        state.replica = Some(replica);
        self.tell(|| format!("n{node} starts"));
        self.take(node, output);
    }

    fn flush(&mut self, node: usize, boot: u64) {
        if !self.is_up(node, boot) || self.nodes[node].is_stuck || self.nodes[node].is_broken {
            return;
        }
        let all = self.nodes[node].pending.len() as u64;
        let count = if self.is_faulty { self.chance.below(all + 1).max(1) } else { all };
        let mut through = None;
        for _ in 0..count {
            let Some((id, write)) = self.nodes[node].pending.pop_front() else { break };
            self.persist(node, write);
            through = Some(id);
        }
        if let Some(through) = through {
            self.step(node, Input::Durable { through });
        }
    }

    fn step(&mut self, node: usize, input: Input) {
        self.tell(|| format!("n{node} <- {input:?}"));
        if let Input::Response { id, .. } = &input
            && self.nodes[node].fetch_in_flight.is_some_and(|(flying, _)| flying == *id)
        {
            self.nodes[node].fetch_in_flight = None;
        }
        let is_tick = input == Input::Tick;
        let now = self.now;
        let state = &mut self.nodes[node];
        let mut output = Output::default();
        state.replica.as_mut().unwrap().step(now, input, &mut output);
        let is_due = |output: &Output| {
            output
                .deadline
                .is_some_and(|(at, why)| at <= now && (is_tick || why != Timeout::Linger))
        };
        assert!(!is_due(&output), "n{node}: a busy loop, {:?} is due", output.deadline);
        self.take(node, output);
    }

    /// Does what a step asked for, and checks it.
    fn take(&mut self, node: usize, output: Output) {
        self.nodes[node].steps += 1;
        for (id, write) in output.writes {
            self.tell(|| format!("n{node} write {id:?} {write:?}"));
            assert!(!self.nodes[node].is_broken, "n{node}: a write to a broken disk");
            self.check_write(node, &write);
            let state = &mut self.nodes[node];
            match &write {
                Write::ElectionState(election) => state.writes.0.push(election.clone()),
                Write::Append(_) => state.writes.1 += 1,
                Write::Truncate { .. } => {}
            }
            state.view.apply(write.clone());
            state.pending.push_back((id, write));
            let delay = 200 + self.chance.below(if self.is_faulty { 30_000 } else { 2_000 });
            let boot = self.nodes[node].boot;
            self.after(delay, Happening::Flush { node, boot });
        }
        for event in output.events {
            self.tell(|| format!("n{node} {event:?}"));
            self.on_event(node, event);
        }
        for message in output.messages {
            self.tell(|| format!("n{node} -> {message:?}"));
            self.check_promise(node, &message);
            self.send(node, message);
        }
        if std::mem::take(&mut self.nodes[node].shut_down) {
            return self.crash(node);
        }
        let state = &mut self.nodes[node];
        state.deadline = output.deadline.map(|(at, _)| at);
        let boot = state.boot;
        if let Some(at) = state.deadline {
            let wait = u64::try_from(at.since(self.now).as_micros()).unwrap();
            self.after(wait, Happening::Tick { node, boot });
        }
    }

    fn send(&mut self, node: usize, message: Message) {
        let boot = self.nodes[node].boot;
        match message {
            Message::Request { to: Destination { endpoint, .. }, id, request } => {
                let to = usize::from(endpoint.port - 9000);
                let voter = match &request {
                    Request::Vote(vote) if !vote.pre_vote => Some(vote.replica),
                    _ => None,
                };
                let copies = if self.is_faulty && self.chance.percent(3) { 2 } else { 1 };
                for _ in 0..copies {
                    self.last_happening += 1;
                    let request_id = RequestId(self.last_happening);
                    let to_boot = self.nodes[to].boot;
                    self.askers.insert((to, to_boot, request_id), (node, boot, id, voter));
                    let via = Via(self.listener.clone());
                    let input = Input::Request { id: request_id, via, request: request.clone() };
                    self.deliver(node, to, to_boot, input, Some((node, boot, id)));
                }
            }
            Message::Response { id, response } => {
                let asker = self.askers.remove(&(node, boot, id));
                let (to, to_boot, correlation, _) = asker.expect("one answer to a request");
                let response = self.filled(node, response);
                let copies = if self.is_faulty && self.chance.percent(3) { 2 } else { 1 };
                for _ in 0..copies {
                    let input = Input::Response { id: correlation, response: response.clone() };
                    self.deliver(node, to, to_boot, input, None);
                }
            }
        }
    }

    /// Puts the records into an answer, as a driver does.
    fn filled(
        &mut self,
        node: usize,
        response: Response<LogRange>,
    ) -> Result<Response<Received>, Unreachable> {
        Ok(match response {
            Response::Vote(vote) => Response::Vote(vote),
            Response::BeginQuorumEpoch(answer) => Response::BeginQuorumEpoch(answer),
            Response::EndQuorumEpoch(answer) => Response::EndQuorumEpoch(answer),
            Response::TopLevel(error) => return Err(Unreachable::TopLevel(error)),
            Response::Fetch(fetch) => {
                let FetchResponse { mut error, current, mut high_watermark, log_start, outcome } =
                    fetch;
                let outcome = match outcome {
                    FetchOutcome::Diverging(at) => FetchOutcome::Diverging(at),
                    FetchOutcome::Snapshot(at) => FetchOutcome::Snapshot(at),
                    FetchOutcome::Records(range) => {
                        let mut batches = Vec::new();
                        if range.generation == self.nodes[node].generation {
                            let log = &self.nodes[node].view.log;
                            let within = |batch: &&ReceivedBatch| {
                                batch.base >= range.from && batch.end <= range.to
                            };
                            batches = log.iter().filter(within).take(4).cloned().collect();
                        } else {
                            error = ErrorCode::NOT_LEADER_OR_FOLLOWER;
                            high_watermark = None;
                        }
                        for batch in &mut batches {
                            let before = self.nodes[node].view.batch_before(batch.base);
                            let before = before.map_or(Epoch(0), |batch| batch.epoch);
                            self.check_content(batch, before);
                            let read = self.control.get(&(batch.base, batch.epoch));
                            batch.control = read.cloned().unwrap_or_default();
                        }
                        FetchOutcome::Records(Received { batches, rejected: None })
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
            other => panic!("nobody asked for {other:?}"),
        })
    }

    /// Carries an input over the network: perhaps late, perhaps never.
    fn deliver(
        &mut self,
        from: usize,
        to: usize,
        boot: u64,
        input: Input,
        asker: Option<(usize, u64, CorrelationId)>,
    ) {
        let is_cut = self.cut.contains(&(from, to));
        let is_lost = is_cut || (self.is_faulty && self.chance.percent(4));
        if is_lost {
            if let Some((asker, boot, id)) = asker
                && self.chance.percent(30)
            {
                let why = if is_cut { Unreachable::TimedOut } else { Unreachable::Reset };
                let input = Box::new(Input::Response { id, response: Err(why) });
                self.after(50_000, Happening::Step { node: asker, boot, input, to: None });
            }
            return;
        }
        let mut delay = 100 + self.chance.below(1_000);
        if self.is_faulty && self.chance.percent(10) {
            delay += self.chance.below(3_000_000);
        }
        self.after(delay, Happening::Step { node: to, boot, input: Box::new(input), to: asker });
    }
}
