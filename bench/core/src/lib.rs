//! Three replicas in one thread, without disk, network or clock: what the core alone costs.
//!
//! Each replica has an inbox and is driven as `quorate-node` drives it: all inputs at hand are stepped, the open batch is
//! cut, and what was asked for is done once. A write is durable at once, a message is in its receiver's inbox at once, and
//! time stands still until nothing but a deadline is left. Batches are not encoded: bytes of the right length stand in.

use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;
use quorate_core::config::{Config, Recovered};
use quorate_core::io::{
    Content, CorrelationId, Event, Input, Message, Output, ProposalId, RequestId, Timeout, Write,
};
use quorate_core::message::{
    ControlRecord, FetchOutcome, FetchRequest, FetchResponse, FetcherHighWatermark, KRaftVersion,
    LogRange, Received, ReceivedBatch, Request, Response, Via,
};
use quorate_core::voters::{Voter, VoterSet};
use quorate_core::{
    DirectoryId, Endpoint, Endpoints, Epoch, Instant, ListenerName, NodeId, Offset, Replica,
    ReplicaKey,
};

/// How many replicas there are, all of them voters.
pub const REPLICAS: usize = 3;

/// The length of a record's value in bytes.
pub const VALUE_LEN: usize = 256;

const FIRST_PORT: u16 = 9000;

/// Batches that a replica keeps for Fetch answers: a follower is never further behind.
const TAIL: usize = 16;

/// What calls [`Replica::step`], so that a binary can count around it.
pub type Step = fn(&mut Replica, Instant, Input, &mut Output);

/// Three replicas and what lies between them.
pub struct Quorum {
    nodes: Vec<Node>,
    now: Instant,
    step: Step,
    /// Swapped with a replica's own while that is carried out, so that no buffer is made twice.
    spare_inbox: Vec<Input>,
    spare_output: Output,
    /// Bytes that stand in for encoded batches.
    filler: Bytes,
    value: Bytes,
    via: Via,
    last_proposal: u64,
}

struct Node {
    replica: Replica,
    inbox: Vec<Input>,
    output: Output,
    tail: VecDeque<ReceivedBatch>,
    high_watermark: Offset,
    leads: Option<Epoch>,
}

impl Quorum {
    /// A quorum that has just elected its leader. `configure` changes the defaults of each replica's configuration.
    pub fn new(step: Step, configure: impl Fn(&mut Config)) -> Quorum {
        let listener = ListenerName::new("CONTROLLER");
        let endpoints = |node| Endpoints::from([(listener.clone(), endpoint(node))]);
        let voters = VoterSet::new((0..REPLICAS).map(|node| {
            let levels = KRaftVersion::SUPPORTED;
            let directory = key(node).directory;
            let voter = Voter { directory, endpoints: endpoints(node), kraft_versions: levels };
            (key(node).id, voter)
        }))
        .expect("ids differ");
        let now = Instant::default();
        let nodes = (0..REPLICAS).map(|node| {
            let directory = key(node).directory.expect("a key of both parts");
            let mut config = Config::new(key(node).id, directory, listener.clone());
            config.endpoints = endpoints(node);
            config.bootstrap_servers = (0..REPLICAS).map(endpoint).collect();
            config.seed = u64::from(endpoint(node).port);
            configure(&mut config);
            let bootstrap = vec![
                ControlRecord::KRaftVersion(KRaftVersion(1)),
                ControlRecord::Voters(voters.clone()),
            ];
            let recovered = Recovered { bootstrap, ..Recovered::default() };
            let mut output = Output::default();
            let replica = Replica::start(config, recovered, now, &mut output)
                .expect("configuration and directory fit");
            Node {
                replica,
                inbox: Vec::new(),
                output,
                tail: VecDeque::with_capacity(TAIL),
                high_watermark: Offset::ZERO,
                leads: None,
            }
        });
        let mut quorum = Quorum {
            nodes: nodes.collect(),
            now,
            step,
            spare_inbox: Vec::new(),
            spare_output: Output::default(),
            filler: Bytes::from(vec![0; 1 << 20]),
            value: Bytes::from(vec![7; VALUE_LEN]),
            via: Via(listener),
            last_proposal: 0,
        };
        while !quorum.is_level() {
            quorum.run_once();
        }
        quorum
    }

    /// Proposes so many records, each by itself, and runs until every replica knows that they are committed.
    pub fn round(&mut self, records: usize) {
        let leader = self.leader();
        let epoch = self.epoch();
        for _ in 0..records {
            let id = self.next_proposal();
            let records = vec![self.value.clone()];
            self.nodes[leader].inbox.push(Input::Propose { id, epoch, records });
        }
        let end = self.nodes[leader].replica.log_end().plus(records);
        while self.nodes.iter().any(|node| node.high_watermark < end) {
            self.run_once();
        }
        assert!(
            self.nodes.iter().all(|node| node.replica.log_end() == end),
            "nothing else is appended"
        );
    }

    /// Proposes one record at the leader, has it written and reports that as durable. Nobody fetches it.
    pub fn append(&mut self) {
        let leader = self.leader();
        let epoch = self.epoch();
        let id = self.next_proposal();
        let records = vec![self.value.clone()];
        let node = &mut self.nodes[leader];
        (self.step)(
            &mut node.replica,
            self.now,
            Input::Propose { id, epoch, records },
            &mut node.output,
        );
        (self.step)(&mut node.replica, self.now, Input::Tick, &mut node.output);
        let [(through, Write::Append(_))] = node.output.writes[..] else {
            panic!("a record is one append");
        };
        (self.step)(&mut node.replica, self.now, Input::Durable { through }, &mut node.output);
        forget(&mut node.output);
    }

    /// A follower's Fetch at an offset below the log end, answered at once. It acknowledges all below that offset.
    pub fn fetch(&mut self, offset: Offset) {
        let leader = self.leader();
        let follower = (leader + 1) % REPLICAS;
        let request = Request::Fetch(FetchRequest {
            replica: key(follower),
            epoch: self.epoch(),
            offset,
            last_fetched_epoch: self.epoch(),
            max_wait_ms: 500,
            max_bytes: 1 << 20,
            high_watermark: FetcherHighWatermark::Known(offset),
        });
        let input = Input::Request { id: RequestId(1), via: self.via.clone(), request };
        let node = &mut self.nodes[leader];
        (self.step)(&mut node.replica, self.now, input, &mut node.output);
        assert!(node.output.messages.len() == 1, "a Fetch below the log end is answered");
        forget(&mut node.output);
    }

    /// The leader's log end.
    pub fn log_end(&self) -> Offset {
        self.nodes[self.leader()].replica.log_end()
    }

    fn leader(&self) -> usize {
        self.nodes.iter().position(|node| node.leads.is_some()).expect("there is a leader")
    }

    fn epoch(&self) -> Epoch {
        self.nodes.iter().find_map(|node| node.leads).expect("there is a leader")
    }

    fn next_proposal(&mut self) -> ProposalId {
        self.last_proposal += 1;
        ProposalId(self.last_proposal)
    }

    /// Whether there is a leader, and all that it has is committed and known to be.
    fn is_level(&self) -> bool {
        let Some(leader) = self.nodes.iter().find(|node| node.leads.is_some()) else {
            return false;
        };
        let end = leader.replica.log_end();
        self.nodes.iter().all(|node| node.high_watermark == end)
    }

    /// Lets each replica take what is in its inbox; if there was nothing, time passes until the next deadline.
    fn run_once(&mut self) {
        let mut is_quiet = true;
        for node in 0..REPLICAS {
            is_quiet &= !self.take_inbox(node);
        }
        if !is_quiet {
            return;
        }
        let deadlines = self.nodes.iter().filter_map(|node| Some(node.output.deadline?.0));
        self.now = deadlines.min().expect("a replica always waits for something");
        for node in &mut self.nodes {
            if node.output.deadline.is_some_and(|(at, _)| at <= self.now) {
                node.inbox.push(Input::Tick);
            }
        }
    }

    /// One turn of a driver's loop. Returns whether there was anything to do.
    fn take_inbox(&mut self, index: usize) -> bool {
        let node = &mut self.nodes[index];
        let output = &node.output;
        if node.inbox.is_empty() && output.writes.is_empty() && output.messages.is_empty() {
            return false;
        }
        let mut inbox = mem::replace(&mut node.inbox, mem::take(&mut self.spare_inbox));
        for input in inbox.drain(..) {
            (self.step)(&mut node.replica, self.now, input, &mut node.output);
        }
        self.spare_inbox = inbox;
        while let Some((at, Timeout::Linger)) = node.output.deadline
            && at <= self.now
        {
            (self.step)(&mut node.replica, self.now, Input::Tick, &mut node.output);
        }
        self.carry_out(index);
        true
    }

    /// Does what a replica's steps asked for.
    fn carry_out(&mut self, index: usize) {
        let deadline = self.nodes[index].output.deadline;
        let spare = mem::take(&mut self.spare_output);
        let mut output = mem::replace(&mut self.nodes[index].output, spare);
        self.nodes[index].output.deadline = deadline;
        let mut through = None;
        for (id, write) in output.writes.drain(..) {
            through = Some(id);
            self.nodes[index].write(write, &self.filler);
        }
        if let Some(through) = through {
            self.nodes[index].inbox.push(Input::Durable { through });
        }
        for message in output.messages.drain(..) {
            self.deliver(index, message);
        }
        for event in output.events.drain(..) {
            self.nodes[index].notice(index, event);
        }
        self.spare_output = output;
    }

    fn deliver(&mut self, from: usize, message: Message) {
        match message {
            Message::Request { to, id, request } => {
                let to = usize::from(to.endpoint.port - FIRST_PORT);
                let id = asked_by(from, id);
                self.nodes[to].inbox.push(Input::Request { id, via: self.via.clone(), request });
            }
            Message::Response { id, response } => {
                let (to, id) = asker(id);
                let response = Ok(self.nodes[from].fill(response));
                self.nodes[to].inbox.push(Input::Response { id, response });
            }
        }
    }
}

impl Node {
    fn write(&mut self, write: Write, filler: &Bytes) {
        let batch = match write {
            Write::Append(batch) => batch,
            Write::ElectionState(_) => return,
            Write::Truncate { to } => panic!("nothing is ever cut, and so not to {to}"),
        };
        let control = match batch.content {
            Content::Control(records) => records
                .into_iter()
                .enumerate()
                .map(|(i, record)| (batch.base.plus(i), record))
                .collect(),
            Content::Data(_) | Content::Encoded(_) => Vec::new(),
        };
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(ReceivedBatch {
            base: batch.base,
            end: batch.end,
            epoch: batch.epoch,
            bytes: filler.slice(..batch.encoded_len),
            control,
        });
    }

    fn notice(&mut self, index: usize, event: Event) {
        match event {
            Event::HighWatermark(high_watermark) => self.high_watermark = high_watermark,
            Event::Leader { epoch, leader } => {
                self.leads = (leader == Some(key(index).id)).then_some(epoch);
            }
            Event::Appended { .. } | Event::Role { .. } | Event::Round(_) => {}
            unexpected => panic!("replica {index}: {unexpected:?}"),
        }
    }

    /// Puts the batches of a Fetch answer in, as the edge of the fetcher would find them.
    fn fill(&self, response: Response<LogRange>) -> Response<Received> {
        match response {
            Response::Fetch(response) => {
                let outcome = match response.outcome {
                    FetchOutcome::Records(range) => FetchOutcome::Records(self.batches(range)),
                    FetchOutcome::Diverging(end) => FetchOutcome::Diverging(end),
                    FetchOutcome::Snapshot(id) => FetchOutcome::Snapshot(id),
                };
                let FetchResponse { error, current, high_watermark, log_start, outcome: _ } =
                    response;
                Response::Fetch(FetchResponse {
                    error,
                    current,
                    high_watermark,
                    log_start,
                    outcome,
                })
            }
            Response::Vote(response) => Response::Vote(response),
            Response::BeginQuorumEpoch(response) => Response::BeginQuorumEpoch(response),
            unexpected => panic!("an election and what follows it needs no {unexpected:?}"),
        }
    }

    fn batches(&self, range: LogRange) -> Received {
        if range.from == range.to {
            return Received::default();
        }
        let first = self.tail.iter().position(|batch| batch.base == range.from);
        let first = first.expect("a follower is not far behind");
        Received { batches: self.tail.range(first..).cloned().collect(), rejected: None }
    }
}

/// A request's id at the one that is asked, which names who asked.
fn asked_by(from: usize, CorrelationId(id): CorrelationId) -> RequestId {
    RequestId(id * REPLICAS as u64 + from as u64)
}

fn asker(RequestId(id): RequestId) -> (usize, CorrelationId) {
    let replicas = REPLICAS as u64;
    (usize::try_from(id % replicas).expect("few replicas"), CorrelationId(id / replicas))
}

fn forget(output: &mut Output) {
    output.writes.clear();
    output.messages.clear();
    output.events.clear();
}

fn key(node: usize) -> ReplicaKey {
    let mut directory = [7; 16];
    directory[15] = u8::try_from(node).expect("few replicas");
    let id = NodeId(i32::try_from(node).expect("few replicas"));
    ReplicaKey::new(id, DirectoryId::from_bytes(directory))
}

fn endpoint(node: usize) -> Endpoint {
    Endpoint::new("host", FIRST_PORT + u16::try_from(node).expect("few replicas"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_when_every_replica_knows_of_its_records() {
        let mut quorum = Quorum::new(Replica::step, |_| {});
        let start = quorum.log_end();
        for (round, records) in [1, 64, 256, 1].into_iter().enumerate() {
            quorum.round(records);
            assert!(quorum.is_level(), "round {round}");
        }
        assert_eq!(quorum.log_end(), start.plus(1 + 64 + 256 + 1));
    }

    #[test]
    fn a_fetch_acknowledges_what_was_appended() {
        let mut quorum = Quorum::new(Replica::step, |_| {});
        let start = quorum.log_end();
        quorum.append();
        quorum.append();
        quorum.fetch(start.plus(1));
        let leader = &quorum.nodes[quorum.leader()].replica;
        let description = leader.describe(quorum.now);
        assert_eq!(description.log_end.offset, start.plus(2));
        assert_eq!(description.high_watermark, Some(start.plus(1)));
    }
}
