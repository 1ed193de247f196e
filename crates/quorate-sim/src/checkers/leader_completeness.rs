//! A new leader has every record that an earlier epoch's leader committed.

use quorate_core::io::Event;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct LeaderCompleteness;

impl Checker for LeaderCompleteness {
    fn name(&self) -> &'static str {
        "leader-completeness"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Event { node, event: Event::Role { role: "leader", epoch, .. } } = seen else {
            return Ok(());
        };
        // A candidate may win its old epoch late, when a newer one has committed more.
        let due = facts.committed.partition_point(|(_, by)| by < epoch);
        let Some(last) = due.checked_sub(1) else { return Ok(()) };
        let node = &facts.nodes[*node];
        let committed = &facts.committed[last].0;
        let has = node.view.log.get(last).is_some_and(|mine| mine.chain == committed.chain);
        ensure(has, || {
            format!(
                "n{} leads epoch {epoch} without the committed {}@{}",
                node.id, committed.base, committed.epoch
            )
        })
    }
}
