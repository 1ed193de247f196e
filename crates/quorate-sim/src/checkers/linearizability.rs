//! Offsets are the order of the history, so it is linearizable if they respect real time: what was acknowledged
//! before another was proposed comes before it.

use std::collections::BTreeMap;

use quorate_core::Offset;
use quorate_driver::Outcome;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

#[derive(Default)]
pub(crate) struct Linearizability {
    /// The largest offset that was acknowledged when a proposal was made.
    before: BTreeMap<u64, Offset>,
    acknowledged: Option<Offset>,
}

impl Checker for Linearizability {
    fn name(&self) -> &'static str {
        "linearizability"
    }

    fn check(&mut self, _: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Proposed { proposal, .. } => {
                if let Some(acknowledged) = self.acknowledged {
                    self.before.insert(*proposal, acknowledged);
                }
                Ok(())
            }
            Seen::Outcome { proposal, outcome, .. } => {
                let offset = match outcome {
                    Outcome::Committed { offset, .. } => *offset,
                    Outcome::OutcomeUnknown { offset, .. } if offset.0 >= 0 => *offset,
                    _ => return Ok(()),
                };
                if let Outcome::OutcomeUnknown { .. } = outcome {
                    // It may never commit, and stand where another does.
                    return Ok(());
                }
                let before = self.before.get(proposal).copied();
                ensure(before.is_none_or(|before| offset > before), || {
                    format!(
                        "proposal {proposal} is at {offset}, but {before:?} was acknowledged before \
                         it was made"
                    )
                })?;
                self.acknowledged = self.acknowledged.max(Some(offset));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
