//! One run from its plan, to its end or its first failure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::clock::Micros;
use crate::counters::Counters;
use crate::history::History;
use crate::plan::Plan;
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
}

/// Runs a plan. The same plan, seed and workload give the same outcome.
pub fn run(plan: &Plan, seed: u64, workload: &impl Workload) -> Outcome {
    run_with(plan, seed, workload, false)
}

pub(crate) fn run_with(
    plan: &Plan,
    seed: u64,
    workload: &impl Workload,
    is_traced: bool,
) -> Outcome {
    let mut world = World::new(plan, seed, workload.clone(), is_traced);
    // A replica that finds a fault of its own stops with an assertion: a promise too.
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    if let Err(panic) = ended {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        world.fail("panic", text.unwrap_or_else(|| "a panic".to_owned()));
    }
    Outcome {
        failure: world.failure.take(),
        digest: world.digest.value(),
        counters: world.counters,
        time: world.history.end,
        history: world.history,
        events: world.events,
        lines: world.trace.lines,
    }
}
