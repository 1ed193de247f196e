//! Cuts a run that fails down to a short one: drops disturbances, proposals, faults of network and disk, and
//! time, as long as the same checker speaks.

use std::time::{Duration, Instant};

use crate::plan::{Action, Disk, Generation, Network, Plan};
use crate::run::{Outcome, run_with};
use crate::scenarios::Scenario;
use crate::workload::Workload;
use crate::world::Failure;

/// How long shrinking may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The shortest plan that was found, and how many runs that took.
pub(crate) fn shrink(
    scenario: &Scenario,
    plan: Plan,
    seed: u64,
    failure: &Failure,
    workload: &impl Workload,
) -> (Plan, usize) {
    let mut shrinker = Shrinker {
        scenario,
        plan,
        seed,
        checker: failure.checker,
        workload,
        runs: 0,
        until: Instant::now() + PATIENCE,
    };
    shrinker.cut_time();
    loop {
        let before = size(&shrinker.plan);
        shrinker.drop_entries();
        shrinker.simplify();
        shrinker.cut_time();
        if size(&shrinker.plan) == before || shrinker.is_late() {
            return (shrinker.plan, shrinker.runs);
        }
    }
}

fn size(plan: &Plan) -> (usize, u64, usize) {
    (plan.schedule.len(), plan.quiet_at, plan.nodes())
}

/// A simplification of a plan.
type Step = Box<dyn Fn(&mut Plan)>;

struct Shrinker<'a, W> {
    scenario: &'a Scenario,
    plan: Plan,
    seed: u64,
    checker: &'static str,
    workload: &'a W,
    runs: usize,
    until: Instant,
}

impl<W: Workload> Shrinker<'_, W> {
    fn is_late(&self) -> bool {
        Instant::now() > self.until
    }

    /// Takes this plan if it fails in the same way.
    fn try_plan(&mut self, plan: Plan) -> Option<Outcome> {
        if self.is_late() {
            return None;
        }
        self.runs += 1;
        let outcome = run_with(&plan, self.seed, self.workload, false);
        let fails = match &outcome.failure {
            Some(failure) => failure.checker == self.checker,
            None => {
                self.checker == "scenario"
                    && (self.scenario.expect)(&plan, &outcome.history).is_err()
            }
        };
        if !fails {
            return None;
        }
        self.plan = plan;
        Some(outcome)
    }

    /// Nothing after the failure matters.
    fn cut_time(&mut self) {
        if let Some(outcome) = self.try_plan(self.plan.clone()) {
            let end = outcome.failure.map_or(outcome.time, |failure| failure.at);
            let mut plan = self.plan.clone();
            if end < plan.quiet_at {
                plan.schedule.retain(|(at, _)| *at <= end);
                self.try_plan(plan);
            } else {
                for part in [4, 2] {
                    let mut plan = self.plan.clone();
                    plan.quiet_at = plan.quiet_at * (part - 1) / part;
                    let quiet_at = plan.quiet_at;
                    plan.schedule.retain(|(at, _)| *at <= quiet_at);
                    self.try_plan(plan);
                }
            }
        }
    }

    /// Delta debugging over the schedule: larger pieces first.
    fn drop_entries(&mut self) {
        let mut piece = self.plan.schedule.len().div_ceil(2);
        while piece > 0 && !self.is_late() {
            let mut from = 0;
            while from < self.plan.schedule.len() && !self.is_late() {
                let mut plan = self.plan.clone();
                let to = (from + piece).min(plan.schedule.len());
                plan.schedule.drain(from..to);
                if self.try_plan(plan).is_none() {
                    from += piece;
                }
            }
            piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
        }
    }

    fn simplify(&mut self) {
        let mut steps: Vec<Step> = vec![
            Box::new(|plan| {
                plan.network = Network { latency: plan.network.latency, ..Network::good() }
            }),
            Box::new(|plan| plan.network.lost = 0),
            Box::new(|plan| plan.network.late = 0),
            Box::new(|plan| plan.network.doubled = 0),
            Box::new(|plan| plan.network.reset = 0),
            Box::new(|plan| plan.network.latency = Network::good().latency),
            Box::new(|plan| plan.disk = Disk::good()),
            Box::new(|plan| plan.disk.slow = 0),
            Box::new(|plan| plan.wake = (20, 100)),
            Box::new(|plan| plan.clock_rates.fill(1_000_000)),
            Box::new(|plan| plan.generations.fill(Generation::Newest)),
            Box::new(|plan| plan.hints.fill(true)),
            Box::new(|plan| {
                for (_, action) in &mut plan.schedule {
                    if let Action::Propose { records, size, .. } = action {
                        (*records, *size) = (1, 0);
                    }
                }
            }),
        ];
        for _ in 0..self.plan.observers {
            steps.push(Box::new(|plan| {
                plan.observers = plan.observers.saturating_sub(1);
                plan.generations.truncate(plan.voters + plan.observers);
                plan.hints.truncate(plan.voters + plan.observers);
            }));
        }
        for step in steps {
            let mut plan = self.plan.clone();
            step(&mut plan);
            self.try_plan(plan);
        }
    }
}
