//! A run: virtual time, what is due on it, and the machines. One seed decides everything.

mod clients;
mod drive;
mod faults;
mod network;
mod quiet;
mod starting;
mod storage;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use bytes::Bytes;
use quorate_core::Offset;
use quorate_core::io::{CorrelationId, WriteId};
use quorate_core::message::{LogRange, Response, Unreachable};

use crate::checkers::{self, Checker};
use crate::clock::Micros;
use crate::counters::{Count, Counters};
use crate::facts::{Facts, Seen};
use crate::history::History;
use crate::machine::{Asker, Machine, Reply};
use crate::plan::Plan;
use crate::random::{Digest, Random, keyed};
use crate::trace::{Trace, What};
use crate::workload::Workload;

use network::Links;
use quiet::Quiet;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which checker spoke.
    pub checker: &'static str,
    /// What it said.
    pub what: String,
    /// When, in virtual time.
    pub at: Micros,
    /// Whose replica was the last to take a step.
    pub node: usize,
}

pub(crate) struct World<'a, W: Workload> {
    pub(crate) plan: &'a Plan,
    seed: u64,
    workload: W,
    now: Micros,
    queue: BinaryHeap<Reverse<Due>>,
    last_due: u64,
    machines: Vec<Machine<W::Machine>>,
    links: Links,
    /// Requests that have no answer yet.
    flights: BTreeMap<(usize, u64, CorrelationId), Flight>,
    /// The last Fetch of each node, for those who want it repeated.
    last_fetch: BTreeMap<usize, (usize, Bytes, Asker)>,
    facts: Facts,
    checkers: Vec<Box<dyn Checker>>,
    pub(crate) counters: Counters,
    pub(crate) trace: Trace,
    pub(crate) digest: Digest,
    pub(crate) history: History,
    pub(crate) failure: Option<Failure>,
    pub(crate) events: u64,
    proposals: u64,
    /// Whose replica took the last step.
    stepped: usize,
    quiet: Option<Quiet>,
    is_done: bool,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    to: usize,
    /// The connection that it left on.
    connection: u64,
}

struct Due {
    at: Micros,
    number: u64,
    what: Happening,
}

#[allow(clippy::large_enum_variant)] // Few of the large ones are under way at a time.
enum Happening {
    /// An entry of the schedule.
    Act(usize),
    /// A process looks at its inbox.
    Wake { node: usize, boot: u64 },
    /// A process looks at its clock.
    Timer { node: usize, boot: u64, timer: u64 },
    /// A request arrives.
    Request { to: usize, frame: Bytes, from: Asker },
    /// An answer, or the news that there will be none.
    Answer { to: Asker, from: usize, frame: Result<Bytes, Unreachable> },
    /// Storage has had the time that a group of writes takes.
    Commit { node: usize, boot: u64 },
    /// The driver hears of it.
    Stored { node: usize, boot: u64, through: Option<WriteId> },
    /// Storage is idle.
    Tidy { node: usize, boot: u64 },
    /// Batches were read from disk.
    Cold { node: usize, boot: u64, range: LogRange, response: Response<LogRange>, reply: Reply },
    /// A process is started.
    Start { node: usize },
    /// A process that was about to stop ends.
    Exit { node: usize, boot: u64, in_order: bool },
    /// Nothing fits on a disk until now.
    Unfill { node: usize },
    /// Faults end.
    Quiet,
    /// Is the cluster well again?
    Probe,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// What a keyed draw is for.
#[derive(Clone, Copy)]
pub(crate) enum Draw {
    Message = 1,
    Wake,
    Sync,
    Start,
    Crash,
    Replica,
    Fault,
}

impl<'a, W: Workload> World<'a, W> {
    /// A cluster at time 0.
    pub(crate) fn new(plan: &'a Plan, seed: u64, workload: W, is_traced: bool) -> World<'a, W> {
        let (machines, nodes) = starting::machines(plan);
        let facts = Facts {
            now: 0,
            nodes,
            committed: Vec::new(),
            graves: BTreeMap::new(),
            acknowledged: Offset::ZERO,
            // One to a bootstrap server is given up sooner.
            fetch_patience: micros(plan.timeouts.request.min(plan.timeouts.fetch / 2)),
        };
        let mut world = World {
            plan,
            seed,
            workload,
            now: 0,
            queue: BinaryHeap::new(),
            last_due: 0,
            links: Links::new(machines.len()),
            machines,
            flights: BTreeMap::new(),
            last_fetch: BTreeMap::new(),
            facts,
            checkers: checkers::all(),
            counters: Counters::default(),
            trace: Trace { is_on: is_traced, ..Trace::default() },
            digest: Digest::default(),
            history: History::default(),
            failure: None,
            events: 0,
            proposals: 0,
            stepped: 0,
            quiet: None,
            is_done: false,
        };
        if plan.clock_rates.iter().any(|rate| *rate != 1_000_000) {
            world.count(Count::Drift);
        }
        for node in 0..world.machines.len() {
            let at = world.draw(Draw::Start, node, 0).below(50_000);
            world.machines[node].is_starting = true;
            world.at(at, Happening::Start { node });
        }
        for (index, (at, _)) in plan.schedule.iter().enumerate() {
            world.at(*at, Happening::Act(index));
        }
        world.at(plan.quiet_at, Happening::Quiet);
        world
    }

    /// Lets everything happen until the quiet phase is over or a promise is broken.
    pub(crate) fn run(&mut self) {
        while self.failure.is_none() && !self.is_done {
            let Some(Reverse(due)) = self.queue.pop() else { break };
            self.now = due.at;
            self.facts.now = due.at;
            self.events += 1;
            self.happen(due.what);
        }
        self.history.end = self.now;
        self.history.committed = self.facts.committed_end();
        self.digest.add(self.now);
        self.digest.add(self.events);
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Act(index) => self.act(self.plan.schedule[index].1),
            Happening::Wake { node, boot } => {
                if self.machines[node].is_up(boot) {
                    self.wake(node);
                }
            }
            Happening::Timer { node, boot, timer } => {
                if self.machines[node].is_up(boot) {
                    self.on_timer(node, timer);
                }
            }
            Happening::Request { to, frame, from } => self.on_request(to, frame, from),
            Happening::Answer { to, from, frame } => self.on_answer(to, from, frame),
            Happening::Commit { node, boot } => {
                if self.machines[node].is_up(boot) {
                    self.commit(node);
                }
            }
            Happening::Stored { node, boot, through } => {
                if self.machines[node].is_up(boot) {
                    self.on_stored(node, through);
                }
            }
            Happening::Tidy { node, boot } => {
                if self.machines[node].is_up(boot) {
                    self.tidy(node);
                }
            }
            Happening::Cold { node, boot, range, response, reply } => {
                if self.machines[node].is_up(boot) {
                    self.on_cold(node, range, response, reply);
                }
            }
            Happening::Start { node } => self.start(node),
            Happening::Exit { node, boot, in_order } => {
                if self.machines[node].is_up(boot) {
                    self.exit(node, in_order);
                }
            }
            Happening::Unfill { node } => self.machines[node].disk.fill(false),
            Happening::Quiet => self.begin_quiet(),
            Happening::Probe => self.probe(),
        }
    }

    fn at(&mut self, at: Micros, what: Happening) {
        self.last_due += 1;
        self.queue.push(Reverse(Due { at: at.max(self.now), number: self.last_due, what }));
    }

    fn after(&mut self, wait: Micros, what: Happening) {
        self.at(self.now + wait, what);
    }

    fn draw(&self, what: Draw, node: usize, n: u64) -> Random {
        keyed(self.seed, [what as u64, u64::try_from(node).unwrap_or(0), n, 0])
    }

    fn count(&mut self, count: Count) {
        self.counters.hit(count);
    }

    fn note(&mut self, node: usize, text: impl FnOnce() -> String) {
        self.trace.tell(self.now, node, || What::Note(text()));
    }

    /// Shows the checkers what happened, then takes it for a fact.
    fn observe(&mut self, seen: &Seen<'_>) {
        for checker in &mut self.checkers {
            if let Err(what) = checker.check(&self.facts, seen)
                && self.failure.is_none()
                && !self.plan.is_silent(checker.name())
            {
                let (checker, at, node) = (checker.name(), self.now, self.stepped);
                self.failure = Some(Failure { checker, what, at, node });
            }
        }
        self.facts.take(seen);
    }

    /// Something that the run cannot go on after, whether it may be told or not.
    pub(crate) fn fail(&mut self, checker: &'static str, what: String) {
        self.is_done = true;
        if self.failure.is_none() && !self.plan.is_silent(checker) {
            self.failure = Some(Failure { checker, what, at: self.now, node: self.stepped });
        }
    }

    /// How many voters are out for good.
    fn lost_voters(&self) -> usize {
        let voters = self.machines.iter().take(self.plan.voters).enumerate();
        voters
            .filter(|(index, machine)| {
                machine.is_lost
                    || machine.is_rotten
                    || machine.directory != crate::machine::directory_id(*index, 0)
            })
            .count()
    }
}

pub(crate) fn micros(duration: std::time::Duration) -> Micros {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
