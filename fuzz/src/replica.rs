//! The core under any sequence of inputs: what peers say is arbitrary, what the driver says is what a correct one could.
//!
//! The input is read from its front: configuration and log, then one input after another until it ends.

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_core::Replica;
use quorate_core::config::Config;
use quorate_core::ids::{Instant, Offset};
use quorate_core::io::{Input, Output, ProposalId, RequestId, StorageTrouble, Timeout, WriteId};
use quorate_core::message::{FetchOutcome, Received, Request, Response, Unreachable};

use crate::source::Source;

mod life;
mod making;

use life::{Facts, Life};

/// More inputs than this tell nothing new.
const MAX_INPUTS: usize = 400;

/// The longest time that a configuration or a request can name.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// The target.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let config = making::config(&mut source);
    let (recovered, bounds) = making::recovered(&mut source);
    let now = Instant::from_start(Duration::from_secs(1));
    let mut output = Output::default();
    let facts = Facts::new(&config, &recovered, bounds);
    let Ok(replica) = Replica::start(config.clone(), recovered, now, &mut output) else { return };
    let life = Life::new(facts, output.deadline);
    let mut driver = Driver { config, replica, now, life };
    driver.life.check(&driver.replica, now, &mut output, 0);
    for _ in 0..MAX_INPUTS {
        if source.is_empty() {
            break;
        }
        driver.input(&mut source);
    }
    driver.settle();
}

/// What stands between the replica and the world.
struct Driver {
    config: Config,
    replica: Replica,
    now: Instant,
    life: Life,
}

impl Driver {
    fn step(&mut self, input: Input) {
        let batches = match &input {
            Input::Response { response: Ok(Response::Fetch(fetch)), .. } => match &fetch.outcome {
                FetchOutcome::Records(received) => received.batches.len(),
                _ => 0,
            },
            _ => 0,
        };
        let mut output = Output::default();
        self.replica.step(self.now, input, &mut output);
        self.life.check(&self.replica, self.now, &mut output, batches);
    }

    fn input(&mut self, source: &mut Source<'_>) {
        match source.byte() % 16 {
            0..=3 => self.answer(source, false),
            4 | 5 => self.answer(source, true),
            6..=8 => {
                let request = making::request(source, &self.config, &self.life.facts);
                self.request(source, request);
            }
            9 => self.request(source, Request::DescribeReplica),
            10 => self.durable(self.life.facts.last_write.0),
            11 => {
                let open = self.life.facts.last_write.0 - self.life.facts.durable.0;
                self.durable(self.life.facts.durable.0 + u64::from(source.byte()).min(open));
            }
            12 => self.tick_at_deadline(),
            13 => {
                let micros = making::waiting(source);
                self.now = self.now + micros;
                self.step(Input::Tick);
            }
            14 => {
                let (epoch, records) = making::proposal(source, &self.life.facts);
                let id = ProposalId(self.life.facts.last_proposal + 1);
                self.life.facts.last_proposal = id.0;
                self.life.proposed.insert(id);
                self.step(Input::Propose { id, epoch, records });
            }
            _ => match source.below(8) {
                0 => self.step(Input::Shutdown),
                1 => self.step(Input::Resign { epoch: self.life.facts.epoch }),
                // A driver says it once.
                2 if !self.life.facts.failed => {
                    self.life.facts.failed = true;
                    self.step(Input::Storage(StorageTrouble::Failed));
                }
                3 => self.request(source, Request::DescribeQuorum),
                _ => self.step(Input::Tick),
            },
        }
    }

    fn request(&mut self, source: &mut Source<'_>, request: Request) {
        let id = RequestId(self.life.facts.last_request + 1);
        self.life.facts.last_request = id.0;
        self.life.unanswered.insert(id, quorate_rpc::api_of(&request));
        self.step(Input::Request { id, via: making::via(source), request });
    }

    /// What a failed store reports no more.
    fn durable(&mut self, through: u64) {
        if !self.life.facts.failed && through > self.life.facts.durable.0 {
            self.life.facts.durable = WriteId(through);
            self.step(Input::Durable { through: WriteId(through) });
        }
    }

    /// Answers a request that was sent, the only one or any, as asked or any other thing.
    fn answer(&mut self, source: &mut Source<'_>, is_honest: bool) {
        if self.life.sent.is_empty() {
            return;
        }
        // The latest ones most of all.
        let back = source.below(4).min(self.life.sent.len() - 1);
        let at = self.life.sent.len() - 1 - back;
        let Some(sent) = self.life.sent.remove(at) else { return };
        let response = match is_honest {
            true => Ok(making::honest_answer(source, &self.config, &self.life.facts, &sent)),
            false => making::answer(source, &self.config, &self.life.facts, &sent),
        };
        let response = response.and_then(|response| self.check_divergence(response));
        self.step(Input::Response { id: sent.id, response });
    }

    /// As the driver does: a log is cut between batches.
    fn check_divergence(
        &self,
        answer: Response<Received>,
    ) -> Result<Response<Received>, Unreachable> {
        if let Response::Fetch(fetch) = &answer
            && let FetchOutcome::Diverging(diverging) = fetch.outcome
        {
            let target = self.replica.truncation_target(diverging);
            let cuts = Offset::ZERO < target && target < self.replica.log_end();
            if cuts && !self.life.facts.bounds.iter().any(|(base, _)| *base == target) {
                return Err(Unreachable::Malformed);
            }
        }
        Ok(answer)
    }

    /// Sleeps until the replica wants to be woken. A timer that is acted on is over.
    fn tick_at_deadline(&mut self) {
        let Some((at, _)) = self.life.deadline else { return };
        self.now = self.now.max(at);
        self.step(Input::Tick);
        if let Some((at, why)) = self.life.deadline {
            assert!(at > self.now, "{why:?} is due again at once");
        }
    }

    /// Everything is durable and a long time passes: nobody is left waiting, and the replica does not spin.
    fn settle(&mut self) {
        for _ in 0..3 {
            self.durable(self.life.facts.last_write.0);
            self.now = self.now + LONGEST + LONGEST;
            self.tick_at_deadline();
        }
        self.durable(self.life.facts.last_write.0);
        if !self.life.facts.failed && self.life.facts.durable == self.life.facts.last_write {
            let waiting: BTreeSet<_> = self.life.unanswered.keys().collect();
            assert!(waiting.is_empty(), "never answered: {waiting:?}");
            assert_eq!(self.replica.durable_end(), self.replica.log_end(), "all is durable");
        }
        if let Some((_, Timeout::Linger)) = self.life.deadline {
            self.tick_at_deadline();
        }
        assert!(self.life.proposed.is_empty(), "no outcome: {:?}", self.life.proposed);
        // What an explorer needs: a value, and one that can be shown.
        assert_eq!(self.replica.clone(), self.replica);
        let _ = self.replica.describe(self.now);
    }
}
