//! Proposals between the caller and their outcome.

use std::collections::{BTreeMap, VecDeque};

use quorate_core::io::ProposalId;
use quorate_core::{Epoch, Offset};

use crate::outcome::{NotAppended, Outcome};

/// Proposals that the core has taken: those in its open batch by id, those in the log by offset. `S` is who is to
/// be told of the outcome; each comes back with it exactly once.
#[derive(Debug)]
pub struct Proposals<S> {
    last_id: u64,
    open: BTreeMap<ProposalId, S>,
    /// Ascending by offset.
    appended: VecDeque<Appended<S>>,
}

#[derive(Debug)]
struct Appended<S> {
    base: Offset,
    end: Offset,
    epoch: Epoch,
    who: S,
}

impl<S> Default for Proposals<S> {
    fn default() -> Proposals<S> {
        Proposals { last_id: 0, open: BTreeMap::new(), appended: VecDeque::new() }
    }
}

impl<S> Proposals<S> {
    /// Names a proposal for the core.
    pub fn add(&mut self, who: S) -> ProposalId {
        self.last_id += 1;
        let id = ProposalId(self.last_id);
        self.open.insert(id, who);
        id
    }

    /// It is in the log.
    pub fn on_appended(&mut self, id: ProposalId, base: Offset, end: Offset, epoch: Epoch) {
        if let Some(who) = self.open.remove(&id) {
            self.appended.push_back(Appended { base, end, epoch, who });
        }
    }

    /// It is not in the log, nor will be.
    pub fn on_not_appended(&mut self, id: ProposalId, reason: NotAppended) -> Option<(S, Outcome)> {
        let who = self.open.remove(&id)?;
        Some((who, Outcome::NotAppended(reason)))
    }

    /// All below is committed.
    pub fn on_committed(&mut self, high_watermark: Offset) -> Vec<(S, Outcome)> {
        let mut committed = Vec::new();
        while let Some(first) = self.appended.pop_front_if(|first| first.end <= high_watermark) {
            let Appended { base, epoch, who, .. } = first;
            committed.push((who, Outcome::Committed { offset: base, epoch }));
        }
        committed
    }

    /// This node leads no more: what it appended may commit or not.
    pub fn on_leadership_lost(&mut self) -> Vec<(S, Outcome)> {
        let appended = self.appended.drain(..);
        appended
            .map(|Appended { base, epoch, who, .. }| {
                (who, Outcome::OutcomeUnknown { offset: base, epoch })
            })
            .collect()
    }

    /// The node stops.
    pub fn on_stopped(&mut self) -> Vec<(S, Outcome)> {
        let mut ended = self.on_leadership_lost();
        let open = std::mem::take(&mut self.open);
        ended.extend(
            open.into_values().map(|who| (who, Outcome::NotAppended(NotAppended::Stopped))),
        );
        ended
    }
}
