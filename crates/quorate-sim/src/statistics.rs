//! What many runs add up to.

use std::fmt::Write as _;
use std::time::Duration;

use crate::clock::{Micros, SECOND};
use crate::counters::Count;
use crate::run::Outcome;

/// Sums over runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// How many runs.
    pub runs: u64,
    /// Their virtual time.
    pub time: Micros,
    /// Their events.
    pub events: u64,
    /// How many records they committed.
    pub committed: u64,
    /// For each counter: how often, and in how many runs.
    pub counts: Vec<(u64, u64)>,
    /// A digest of all their digests, in no order.
    pub digest: u64,
}

impl Default for Statistics {
    fn default() -> Statistics {
        let counts = vec![(0, 0); Count::ALL.len()];
        Statistics { runs: 0, time: 0, events: 0, committed: 0, counts, digest: 0 }
    }
}

impl Statistics {
    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.time += outcome.time;
        self.events += outcome.events;
        self.committed += u64::try_from(outcome.history.committed.0).unwrap_or(0);
        self.digest = self.digest.wrapping_add(outcome.digest);
        for (count, sums) in Count::ALL.iter().zip(&mut self.counts) {
            let n = outcome.counters.get(*count);
            sums.0 += n;
            sums.1 += u64::from(n > 0);
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Statistics) {
        self.runs += other.runs;
        self.time += other.time;
        self.events += other.events;
        self.committed += other.committed;
        self.digest = self.digest.wrapping_add(other.digest);
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
    }

    /// The table of what occurred, and in which share of the runs.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for (count, (times, runs)) in Count::ALL.iter().zip(&self.counts) {
            let percent = percent(*runs, self.runs);
            let _ = writeln!(
                table,
                "  {:<40} {times:>10} times, in {percent:>6} % of seeds",
                count.name()
            );
        }
        table
    }

    /// What occurred in less than a hundredth of the runs; with fewer than a hundred runs, what never did.
    pub fn rare(&self) -> Vec<&'static str> {
        let counts = Count::ALL.iter().zip(&self.counts);
        counts
            .filter(|(_, (_, runs))| runs * 100 < self.runs)
            .map(|(count, _)| count.name())
            .collect()
    }

    /// Speed and size in a line.
    pub fn summary(&self, wall: Duration) -> String {
        let wall_us = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX).max(1);
        let a_second = |n: u64| n.saturating_mul(SECOND) / wall_us;
        format!(
            "{} seeds, {} seeds/s, {} virtual s per wall s, {} events, {} records committed, digest {:016x}",
            self.runs,
            tenths(self.runs.saturating_mul(10 * SECOND) / wall_us),
            a_second(self.time / SECOND),
            self.events,
            self.committed,
            self.digest
        )
    }
}

fn percent(part: u64, whole: u64) -> String {
    tenths(part * 1000 / whole.max(1))
}

fn tenths(n: u64) -> String {
    format!("{}.{}", n / 10, n % 10)
}
