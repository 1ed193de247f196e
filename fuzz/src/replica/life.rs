//! What is known of a replica from its outputs alone, and what must hold after every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_core::Replica;
use quorate_core::config::{Config, Recovered};
use quorate_core::ids::{Epoch, Instant, NodeId, Offset, ReplicaKey};
use quorate_core::io::{
    Content, CorrelationId, Event, Message, Output, ProposalId, RequestId, Timeout, Write, WriteId,
};
use quorate_core::message::{FetchOutcome, LogRange, Request, Response};
use quorate_rpc::client::{Origin, encode_request};
use quorate_rpc::server::{Decoded, decode_request, encode_response};
use quorate_rpc::{ApiKey, api_of, records};

use crate::rpc::context;

/// A request that left.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) id: CorrelationId,
    pub(super) to: NodeId,
    pub(super) request: Request,
}

/// So many are remembered; older ones were forgotten by the replica long since.
const MAX_SENT: usize = 64;

/// The numbers that inputs are made around.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) epoch: Epoch,
    pub(super) leader: Option<NodeId>,
    voted: Option<ReplicaKey>,
    /// The batches of the log: first offset and epoch of each.
    pub(super) bounds: Vec<(Offset, Epoch)>,
    pub(super) log_end: Offset,
    pub(super) high_watermark: Offset,
    generation: u64,
    pub(super) last_write: WriteId,
    pub(super) durable: WriteId,
    pub(super) failed: bool,
    pub(super) last_request: u64,
    pub(super) last_proposal: u64,
    max_parked: usize,
}

impl Facts {
    pub(super) fn new(config: &Config, found: &Recovered, bounds: Vec<(Offset, Epoch)>) -> Facts {
        let last = found.epochs.last().map_or(Epoch(0), |(epoch, _)| *epoch);
        Facts {
            epoch: found.election.as_ref().map_or(Epoch(0), |state| state.epoch).max(last),
            leader: None,
            voted: None,
            bounds,
            log_end: found.log_end,
            high_watermark: Offset::ZERO,
            generation: 0,
            last_write: WriteId(0),
            durable: WriteId(0),
            failed: false,
            last_request: 0,
            last_proposal: 0,
            max_parked: config.max_parked_fetches,
        }
    }

    pub(super) fn last_epoch(&self) -> Epoch {
        self.bounds.last().map_or(Epoch(0), |(_, epoch)| *epoch)
    }
}

#[derive(Debug)]
pub(super) struct Life {
    pub(super) facts: Facts,
    pub(super) deadline: Option<(Instant, Timeout)>,
    pub(super) unanswered: BTreeMap<RequestId, ApiKey>,
    /// Proposals whose fate is not known.
    pub(super) proposed: BTreeSet<ProposalId>,
    pub(super) sent: VecDeque<Sent>,
    /// What may still be awaited, with its destination.
    awaited: Vec<(CorrelationId, NodeId, bool)>,
    /// The epoch that listeners know.
    told: Epoch,
    last_correlation: CorrelationId,
}

impl Life {
    pub(super) fn new(facts: Facts, deadline: Option<(Instant, Timeout)>) -> Life {
        Life {
            facts,
            deadline,
            unanswered: BTreeMap::new(),
            proposed: BTreeSet::new(),
            sent: VecDeque::new(),
            awaited: Vec::new(),
            told: Epoch(0),
            last_correlation: CorrelationId(0),
        }
    }

    /// Takes a step's output and checks what must hold of it. `batches` came in with the step.
    pub(super) fn check(
        &mut self,
        replica: &Replica,
        now: Instant,
        output: &mut Output,
        batches: usize,
    ) {
        let proposed = self.proposed.len();
        let waiting = self.unanswered.len();
        let peers = replica.voters().len() + 8;
        let Output { writes, messages, events, deadline } = std::mem::take(output);
        assert!(writes.len() <= batches + 8, "{} writes in a step", writes.len());
        assert!(messages.len() <= waiting + 2 * peers, "{} messages in a step", messages.len());
        assert!(events.len() <= 2 * proposed + batches + 32, "{} events in a step", events.len());
        for (id, write) in writes {
            assert_eq!(id, WriteId(self.facts.last_write.0 + 1), "writes are numbered in order");
            self.facts.last_write = id;
            self.on_write(write);
        }
        for event in events {
            self.on_event(event);
        }
        for message in messages {
            match message {
                Message::Request { to, id, request } => {
                    assert!(id > self.last_correlation || !self.is_known(id), "{id:?} twice");
                    self.last_correlation = self.last_correlation.max(id);
                    self.on_request(replica, &request);
                    self.awaited.push((id, to.id, matches!(request, Request::Fetch(_))));
                    self.sent.push_back(Sent { id, to: to.id, request });
                    if self.sent.len() > MAX_SENT {
                        self.sent.pop_front();
                    }
                }
                Message::Response { id, response } => self.on_response(id, &response),
            }
        }
        self.deadline = deadline;
        self.check_state(replica, now);
    }

    fn is_known(&self, id: CorrelationId) -> bool {
        self.awaited.iter().any(|(known, ..)| *known == id)
    }

    fn check_state(&mut self, replica: &Replica, now: Instant) {
        assert_eq!(replica.log_end(), self.facts.log_end, "the log as its writes make it");
        assert!(replica.durable_end() <= replica.log_end());
        if let Some((at, why)) = self.deadline {
            assert!(at > now || why == Timeout::Linger, "{why:?} was due and is not done");
        }
        self.awaited.retain(|(id, ..)| replica.awaits(*id));
        let fetches = self.awaited.iter().filter(|(.., is_fetch)| *is_fetch).count();
        assert!(fetches <= 1, "{fetches} Fetches at once");
        let peers: BTreeSet<NodeId> = self.awaited.iter().map(|(_, to, _)| *to).collect();
        assert_eq!(peers.len(), self.awaited.len(), "one request at a time to each");
        if self.facts.durable == self.facts.last_write {
            let waiting = self.unanswered.len();
            assert!(waiting <= self.facts.max_parked, "{waiting} wait, and for no write");
        }
    }

    fn on_epoch(&mut self, epoch: Epoch) {
        assert!(epoch >= self.facts.epoch, "epoch {epoch} after {}", self.facts.epoch);
        if epoch > self.facts.epoch {
            (self.facts.epoch, self.facts.leader, self.facts.voted) = (epoch, None, None);
        }
    }

    fn on_write(&mut self, write: Write) {
        let facts = &mut self.facts;
        match write {
            Write::ElectionState(state) => {
                self.on_epoch(state.epoch);
                let Facts { voted, leader, .. } = &mut self.facts;
                if state.voted.is_some() {
                    assert!(
                        voted.is_none() || *voted == state.voted,
                        "voted for {voted:?} and {:?}",
                        state.voted
                    );
                    *voted = state.voted;
                }
                if state.leader.is_some() {
                    assert!(
                        leader.is_none() || *leader == state.leader,
                        "leader {leader:?} and {:?} of {}",
                        state.leader,
                        state.epoch
                    );
                    *leader = state.leader;
                }
            }
            Write::Append(batch) => {
                assert_eq!(batch.base, facts.log_end, "a batch at the log end");
                assert!(batch.end > batch.base && batch.epoch >= facts.last_epoch(), "{batch:?}");
                assert!(batch.epoch <= facts.epoch, "{batch:?} in epoch {}", facts.epoch);
                // It checks lengths and counts of what the core makes.
                let bytes = records::encode(&batch, 1).expect("the driver can encode it");
                assert_eq!(bytes.len(), batch.encoded_len);
                if !matches!(batch.content, Content::Encoded(_)) {
                    let checked = records::check(bytes);
                    assert_eq!((checked.batches.len(), checked.rejected), (1, None), "{batch:?}");
                }
                facts.bounds.push((batch.base, batch.epoch));
                facts.log_end = batch.end;
            }
            Write::Truncate { to } => {
                assert!(to < facts.log_end && to >= facts.high_watermark, "truncation to {to}");
                let is_bound =
                    to == Offset::ZERO || facts.bounds.iter().any(|(base, _)| *base == to);
                assert!(is_bound, "truncation to {to} cuts a batch in two");
                facts.bounds.retain(|(base, _)| *base < to);
                facts.log_end = to;
                facts.generation += 1;
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::HighWatermark(offset) => {
                let known = self.facts.high_watermark;
                assert!(offset > known, "high watermark {offset} after {known}");
                assert!(offset <= self.facts.log_end, "high watermark {offset}");
                self.facts.high_watermark = offset;
            }
            Event::Leader { epoch, leader: _ } | Event::Role { epoch, .. } => {
                let known = self.told;
                assert!(known <= epoch && epoch <= self.facts.epoch, "{epoch} told after {known}");
                self.told = epoch;
            }
            Event::Appended { id, base, end, epoch } => {
                assert!(self.proposed.remove(&id), "{id:?} has its outcome");
                assert!(base < end && end <= self.facts.log_end && epoch == self.facts.epoch);
            }
            Event::NotAppended { id, .. } => {
                assert!(self.proposed.remove(&id), "{id:?} has its outcome");
            }
            Event::Truncated { to, generation } => {
                assert!(to >= self.facts.high_watermark);
                assert_eq!(generation, self.facts.generation);
            }
            Event::IntegrityFault(_)
            | Event::Round(_)
            | Event::Refused { .. }
            | Event::ShutDown => {}
        }
    }

    fn on_request(&self, replica: &Replica, request: &Request) {
        let epoch = match request {
            Request::Vote(request) => request.epoch,
            Request::BeginQuorumEpoch(request) => request.epoch,
            Request::EndQuorumEpoch(request) => request.epoch,
            Request::Fetch(request) => {
                assert!(request.offset <= replica.durable_end(), "it acknowledges {request:?}");
                request.epoch
            }
            other => panic!("a replica does not send {other:?}"),
        };
        assert!(epoch <= self.facts.epoch, "{request:?} in epoch {}", self.facts.epoch);
        let version = *api_of(request).versions().end();
        let origin = Origin { client_id: "fuzz", cluster_id: "QuorateGoldenClusterAA" };
        let slices = encode_request(request, version, 1, &origin).expect("it can be sent");
        let decoded = decode_request(slices.concat().split_off(4).into(), &context());
        assert!(
            matches!(&decoded, Ok(Decoded::Request(same, _)) if same == request),
            "{decoded:?}"
        );
    }

    fn on_response(&mut self, id: RequestId, response: &Response<LogRange>) {
        let api = self.unanswered.remove(&id).expect("asked, and not answered before");
        let request = match api {
            ApiKey::DescribeQuorum => Request::DescribeQuorum,
            ApiKey::DescribeReplica => Request::DescribeReplica,
            api => crate::rpc::example(api),
        };
        let origin = Origin { client_id: "fuzz", cluster_id: "QuorateGoldenClusterAA" };
        let version = *api.versions().end();
        let asked = encode_request(&request, version, 1, &origin).expect("it can be sent");
        let asked = decode_request(asked.concat().split_off(4).into(), &context());
        let Ok(Decoded::Request(_, format)) = asked else { panic!("our own request: {asked:?}") };
        // It fails too if the answer is one to another request.
        encode_response(format, response, vec![], &context(), 1).expect("it can be answered");
        if let Response::Fetch(fetch) = response {
            assert!(fetch.current.epoch <= self.facts.epoch);
            if let FetchOutcome::Records(range) = &fetch.outcome {
                assert!(range.from == range.to || range.from < range.to && range.from.0 >= 0);
                assert!(range.generation <= self.facts.generation);
                let is_current = range.generation == self.facts.generation;
                assert!(range.from == range.to || !is_current || range.to <= self.facts.log_end);
            }
        }
    }
}
