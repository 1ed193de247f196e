//! One run from its plan, to its end or its first failure.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::clock::Micros;
use crate::counters::Counters;
use crate::history::History;
use crate::plan::Plan;
use crate::script::Recording;
use crate::trace::Line;
use crate::workload::Workload;
use crate::world::{Failure, World};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The promise that was broken, if one was.
    pub failure: Option<Failure>,
    /// A digest of all that happened.
    pub digest: u64,
    /// How often what was provoked occurred.
    pub counters: Counters,
    /// The course of the run.
    pub history: History,
    /// How long it was, in virtual time.
    pub time: Micros,
    /// How many events it had.
    pub events: u64,
    pub(crate) lines: Vec<Line>,
    pub(crate) recordings: BTreeMap<usize, Recording>,
}

/// Runs a plan. The same plan, seed and workload give the same outcome.
pub fn run(plan: &Plan, seed: u64, workload: &impl Workload) -> Outcome {
    run_with(plan, seed, workload, false)
}

/// As [`run`]; also returns what happened, line by line.
pub fn run_traced(plan: &Plan, seed: u64, workload: &impl Workload) -> (Outcome, Vec<String>) {
    let outcome = run_with(plan, seed, workload, true);
    let lines = outcome.lines.iter().map(Line::text).collect();
    (outcome, lines)
}

/// As [`run`]; also returns what each replica was told since its last start, and what it said.
pub fn run_recorded(
    plan: &Plan,
    seed: u64,
    workload: &impl Workload,
) -> (Outcome, BTreeMap<usize, Recording>) {
    let mut outcome = run_with(plan, seed, workload, true);
    let recordings = std::mem::take(&mut outcome.recordings);
    (outcome, recordings)
}

pub(crate) fn run_with(
    plan: &Plan,
    seed: u64,
    workload: &impl Workload,
    is_traced: bool,
) -> Outcome {
    keep_panics_quiet();
    IS_RUNNING.set(true);
    let mut world = World::new(plan, seed, workload.clone(), is_traced);
    // A replica that finds a fault of its own stops with an assertion: a promise too.
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    IS_RUNNING.set(false);
    if ended.is_err() {
        let text = LAST_PANIC.with_borrow_mut(std::mem::take);
        world.fail("assertion", text);
    }
    Outcome {
        failure: world.failure.take(),
        digest: world.digest.value(),
        counters: world.counters,
        time: world.history.end,
        history: world.history,
        events: world.events,
        lines: world.trace.lines,
        recordings: world.trace.recordings,
    }
}

thread_local! {
    static IS_RUNNING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A panic in a run is a finding, which is told with its seed; others are shown as ever.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_RUNNING.get() {
                return usual(panic);
            }
            let payload = panic.payload();
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("a panic");
            let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
            let text = format!("{}: {text}", place.unwrap_or_default());
            LAST_PANIC.with_borrow_mut(|last| *last = text);
        }));
    });
}
