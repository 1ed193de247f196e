//! A state machine sees what is committed: all of it, in order, once, and nothing else.

use std::collections::BTreeMap;

use quorate_wire::batch::BatchHeader;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

#[derive(Default)]
pub(crate) struct InOrderOnce {
    /// How many committed batches each state machine is past.
    next: BTreeMap<usize, usize>,
}

impl Checker for InOrderOnce {
    fn name(&self) -> &'static str {
        "state-machine"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Started { node, .. } => {
                self.next.remove(node);
                Ok(())
            }
            Seen::Applied { node, batch } => {
                let next = self.next.entry(*node).or_default();
                // Control records are not for it.
                while facts.committed.get(*next).is_some_and(|(entry, _)| {
                    BatchHeader::parse(&entry.bytes).is_ok_and(|header| header.is_control())
                }) {
                    *next += 1;
                }
                let due = facts.committed.get(*next).map(|(entry, _)| entry);
                let holds = due.is_some_and(|due| {
                    due.base == batch.base_offset()
                        && due.end == batch.end_offset()
                        && due.epoch == batch.epoch()
                });
                ensure(holds, || {
                    format!(
                        "n{} applies {}..{}@{}, due is {:?}",
                        facts.nodes[*node].id,
                        batch.base_offset(),
                        batch.end_offset(),
                        batch.epoch(),
                        due.map(|due| (due.base, due.end, due.epoch))
                    )
                })?;
                *next += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
