//! Offsets are the order of the history, so it is linearizable if they respect real time: what was acknowledged
//! before another was proposed comes before it, and whoever is told that it leads knows of all that leaders before
//! it have acknowledged: its state machine may answer.

use std::collections::BTreeMap;

use quorate_core::io::Event;
use quorate_core::{Epoch, Offset};
use quorate_driver::Outcome;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

#[derive(Default)]
pub(crate) struct Linearizability {
    /// The largest offset that was acknowledged when a proposal was made.
    before: BTreeMap<u64, Offset>,
    /// The largest offset that was acknowledged in each epoch.
    acknowledged: BTreeMap<Epoch, Offset>,
}

impl Checker for Linearizability {
    fn name(&self) -> &'static str {
        "linearizability"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Proposed { proposal, .. } => {
                if let Some(acknowledged) = self.acknowledged.values().max() {
                    self.before.insert(*proposal, *acknowledged);
                }
                Ok(())
            }
            Seen::Outcome { proposal, outcome, .. } => {
                // One of unknown outcome may never commit, and stand where another does.
                let Outcome::Committed { offset, epoch } = outcome else { return Ok(()) };
                let before = self.before.get(proposal).copied();
                ensure(before.is_none_or(|before| *offset > before), || {
                    format!(
                        "proposal {proposal} is at {offset}, but {before:?} was acknowledged before \
                         it was made"
                    )
                })?;
                let known = self.acknowledged.entry(*epoch).or_default();
                *known = (*known).max(*offset);
                Ok(())
            }
            Seen::Event { node, event: Event::Leader { epoch, leader: Some(leader) } }
                if *leader == facts.nodes[*node].id =>
            {
                let known = facts.nodes[*node].high_watermark;
                let earlier = self.acknowledged.range(..*epoch).map(|(_, offset)| *offset).max();
                ensure(earlier.is_none_or(|earlier| earlier < known), || {
                    format!(
                        "n{leader} is told that it leads epoch {epoch} and knows what is committed below \
                         {known}; {earlier:?} was acknowledged in an earlier one"
                    )
                })
            }
            _ => Ok(()),
        }
    }
}
