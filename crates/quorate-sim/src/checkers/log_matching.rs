//! One offset and epoch is one record after one history, in every log there ever was; epochs never decrease
//! along a log; and all records of an epoch come from its one leader.

use std::collections::BTreeMap;

use quorate_core::{Epoch, Offset};
use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::facts::{Entry, Facts, Seen};

#[derive(Default)]
pub(crate) struct LogMatching {
    seen: BTreeMap<(Offset, Epoch), (Offset, u64)>,
    authors: BTreeMap<Epoch, usize>,
}

impl Checker for LogMatching {
    fn name(&self) -> &'static str {
        "log-matching"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Started { node, found, .. } => {
                for entry in &found.log {
                    self.entry(facts, *node, entry, false)?;
                }
                Ok(())
            }
            Seen::Submitted { node, write: StoreWrite::Append(batch), .. } => {
                let view = &facts.nodes[*node].view;
                let id = facts.nodes[*node].id;
                ensure(batch.base == view.end(), || {
                    format!("n{id} appends {} at its log end {}", batch.base, view.end())
                })?;
                ensure(batch.epoch >= view.last_epoch() && batch.epoch.0 >= 1, || {
                    format!("n{id} appends epoch {} after {}", batch.epoch, view.last_epoch())
                })?;
                self.entry(facts, *node, &view.next(batch), true)
            }
            _ => Ok(()),
        }
    }
}

impl LogMatching {
    fn entry(
        &mut self,
        facts: &Facts,
        node: usize,
        entry: &Entry,
        is_new: bool,
    ) -> Result<(), String> {
        let id = facts.nodes[node].id;
        let at = (entry.base, entry.epoch);
        if let Some((end, chain)) = self.seen.get(&at) {
            return ensure((*end, *chain) == (entry.end, entry.chain), || {
                format!("n{id} has another history at {}@{}", entry.base, entry.epoch)
            });
        }
        self.seen.insert(at, (entry.end, entry.chain));
        if !is_new {
            return Ok(());
        }
        let author = *self.authors.entry(entry.epoch).or_insert(node);
        ensure(author == node, || {
            format!(
                "n{id} makes {}@{}, but n{} wrote in that epoch",
                entry.base, entry.epoch, facts.nodes[author].id
            )
        })
    }
}
