//! What a client knows to be committed is on the disk of at least one voter that lives, always.

use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct Durability;

impl Checker for Durability {
    fn name(&self) -> &'static str {
        "durability"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let is_risky = matches!(
            seen,
            Seen::Crashed { .. }
                | Seen::Started { .. }
                | Seen::Outcome { .. }
                | Seen::Persisted { write: StoreWrite::Truncate { .. }, .. }
        );
        if !is_risky {
            return Ok(());
        }
        let due = facts.committed.partition_point(|(entry, _)| entry.base < facts.acknowledged);
        let Some(last) = due.checked_sub(1) else { return Ok(()) };
        let committed = &facts.committed[last].0;
        let holders = facts.nodes.iter().filter(|node| {
            !node.is_lost
                && node.durable.log.get(last).is_some_and(|mine| mine.chain == committed.chain)
        });
        ensure(holders.count() > 0, || {
            format!("the acknowledged {}@{} is on no disk", committed.base, committed.epoch)
        })
    }
}
