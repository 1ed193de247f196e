//! What clients are told is what happens: committed exactly once at its offset, not appended never, unknown at
//! most once; a proposal commits whole; and nothing commits that nobody proposed.

use std::collections::BTreeMap;

use bytes::Bytes;
use quorate_core::Offset;
use quorate_core::io::Event;
use quorate_driver::Outcome;
use quorate_wire::batch::batches;

use super::{Checker, ensure};
use crate::facts::{Entry, Facts, Seen};

#[derive(Default)]
pub(crate) struct Outcomes {
    proposals: BTreeMap<u64, Proposal>,
    values: BTreeMap<Bytes, (u64, usize)>,
    /// How many committed batches were looked at.
    read: usize,
}

#[derive(Default)]
struct Proposal {
    records: usize,
    outcome: Option<Outcome>,
    committed_at: Option<Offset>,
}

impl Checker for Outcomes {
    fn name(&self) -> &'static str {
        "outcomes"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Proposed { proposal, values } => {
                let records = values.len();
                self.proposals.insert(*proposal, Proposal { records, ..Proposal::default() });
                for (i, value) in values.iter().enumerate() {
                    let before = self.values.insert(value.clone(), (*proposal, i));
                    ensure(before.is_none(), || format!("the value {value:?} comes twice"))?;
                }
                Ok(())
            }
            Seen::Event { node, event: Event::HighWatermark(known) } => {
                let log = &facts.nodes[*node].view;
                let below = log.count_below(*known);
                for entry in log.log.get(self.read..below).unwrap_or(&[]) {
                    self.read_entry(entry)?;
                }
                self.read = self.read.max(below);
                Ok(())
            }
            Seen::Outcome { proposal, outcome, .. } => self.on_outcome(*proposal, outcome),
            _ => Ok(()),
        }
    }
}

impl Outcomes {
    fn read_entry(&mut self, entry: &Entry) -> Result<(), String> {
        for batch in batches(entry.bytes.clone()) {
            let batch = batch.map_err(|error| format!("at {}: {error}", entry.base))?;
            if batch.is_control() {
                continue;
            }
            let mut open: Option<(u64, usize)> = None;
            let records = batch.records().map_err(|error| error.to_string())?;
            for record in records {
                let record = record.map_err(|error| error.to_string())?;
                let value = record.value.unwrap_or_default();
                if value.starts_with(PRELOADED) {
                    continue;
                }
                let offset = Offset(record.offset);
                let Some((id, i)) = self.values.get(value).copied() else {
                    return Err(format!("nobody proposed what is committed at {offset}"));
                };
                let whole = open.map_or(i == 0, |(before, last)| {
                    if i == 0 { self.is_last(before, last) } else { (before, last + 1) == (id, i) }
                });
                ensure(whole, || format!("a part of proposal {id} is committed at {offset}"))?;
                open = Some((id, i));
                if i == 0 {
                    self.commit(id, offset)?;
                }
            }
            if let Some((id, last)) = open {
                ensure(self.is_last(id, last), || format!("proposal {id} is committed in part"))?;
            }
        }
        Ok(())
    }

    fn is_last(&self, id: u64, i: usize) -> bool {
        self.proposals.get(&id).is_some_and(|proposal| proposal.records == i + 1)
    }

    fn commit(&mut self, id: u64, offset: Offset) -> Result<(), String> {
        let Some(proposal) = self.proposals.get_mut(&id) else { return Ok(()) };
        if let Some(before) = proposal.committed_at {
            return Err(format!("proposal {id} is committed at {before} and at {offset}"));
        }
        proposal.committed_at = Some(offset);
        match &proposal.outcome {
            Some(Outcome::NotAppended(why)) => {
                Err(format!("proposal {id} is committed at {offset} after its client heard: {why}"))
            }
            Some(Outcome::OutcomeUnknown { offset: told, .. }) if told.0 >= 0 => {
                ensure(*told == offset, || {
                    format!("proposal {id} is committed at {offset}, its client heard of {told}")
                })
            }
            _ => Ok(()),
        }
    }

    fn on_outcome(&mut self, id: u64, outcome: &Outcome) -> Result<(), String> {
        let Some(proposal) = self.proposals.get_mut(&id) else { return Ok(()) };
        if let Some(before) = &proposal.outcome {
            return Err(format!("proposal {id} ends twice: {before:?}, {outcome:?}"));
        }
        proposal.outcome = Some(outcome.clone());
        let at = proposal.committed_at;
        let holds = match outcome {
            Outcome::Committed { offset, .. } => at == Some(*offset),
            Outcome::NotAppended(_) => at.is_none(),
            Outcome::OutcomeUnknown { offset, .. } => {
                offset.0 < 0 || at.is_none_or(|at| at == *offset)
            }
        };
        ensure(holds, || format!("proposal {id} ends with {outcome:?}, committed at {at:?}"))
    }
}

/// What records begin with that were in the logs before the run.
pub(crate) const PRELOADED: &[u8] = b"before ";
