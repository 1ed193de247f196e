//! Nobody wakes up with nothing due, and nobody talks without end.

use std::collections::BTreeMap;

use quorate_core::io::Timeout;

use super::{Checker, ensure};
use crate::clock::{Micros, SECOND};
use crate::facts::{Facts, Seen};

#[derive(Default)]
pub(crate) struct BusyLoop {
    /// The second, and what was done in it.
    counts: BTreeMap<usize, (Micros, usize)>,
    idle: BTreeMap<usize, usize>,
}

/// More messages a second than this are a loop, whatever the load of a run.
const MAX_MESSAGES: usize = 6000;

/// So many times in a row may a node wake up without input or output: once for a clock that jumped, and once for
/// a timer that was moved.
const MAX_IDLE: usize = 20;

impl Checker for BusyLoop {
    fn name(&self) -> &'static str {
        "busy-loop"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Woke { node, now, deadline, inputs, messages, .. } = seen else { return Ok(()) };
        let id = facts.nodes[*node].id;
        ensure(deadline.is_none_or(|(at, why)| at > *now || why == Timeout::Linger), || {
            format!("n{id} is due again at once: {deadline:?} at {now}")
        })?;
        let second = facts.now / SECOND;
        let count = self.counts.entry(*node).or_default();
        if count.0 != second {
            *count = (second, 0);
        }
        count.1 += messages;
        ensure(count.1 <= MAX_MESSAGES, || {
            format!("n{id} sends {} messages within a second", count.1)
        })?;
        let idle = self.idle.entry(*node).or_default();
        *idle = if *inputs == 0 && *messages == 0 { *idle + 1 } else { 0 };
        ensure(*idle <= MAX_IDLE, || format!("n{id} wakes up {MAX_IDLE} times for nothing"))
    }
}
