//! Proposals between the caller and their outcome.

use std::collections::{HashMap, VecDeque};

use quorate_core::io::ProposalId;
use quorate_core::{Epoch, Offset};
use tokio::sync::oneshot;

use crate::handle::{NotAppended, Outcome};

/// Proposals that the core has taken: those in its open batch by id, those in the log by offset.
#[derive(Default)]
pub(crate) struct Proposals {
    last_id: u64,
    open: HashMap<ProposalId, oneshot::Sender<Outcome>>,
    /// Ascending by offset.
    appended: VecDeque<Appended>,
}

struct Appended {
    base: Offset,
    end: Offset,
    epoch: Epoch,
    outcome: oneshot::Sender<Outcome>,
}

impl Proposals {
    pub(crate) fn add(&mut self, outcome: oneshot::Sender<Outcome>) -> ProposalId {
        self.last_id += 1;
        let id = ProposalId(self.last_id);
        self.open.insert(id, outcome);
        id
    }

    pub(crate) fn on_appended(&mut self, id: ProposalId, base: Offset, end: Offset, epoch: Epoch) {
        if let Some(outcome) = self.open.remove(&id) {
            self.appended.push_back(Appended { base, end, epoch, outcome });
        }
    }

    pub(crate) fn on_not_appended(&mut self, id: ProposalId, reason: NotAppended) {
        if let Some(outcome) = self.open.remove(&id) {
            let _ = outcome.send(Outcome::NotAppended(reason));
        }
    }

    /// All below is committed.
    pub(crate) fn on_committed(&mut self, high_watermark: Offset) {
        while self.appended.front().is_some_and(|first| first.end <= high_watermark) {
            if let Some(Appended { base, epoch, outcome, .. }) = self.appended.pop_front() {
                let _ = outcome.send(Outcome::Committed { offset: base, epoch });
            }
        }
    }

    /// This node leads no more: what it appended may commit or not.
    pub(crate) fn on_leadership_lost(&mut self) {
        for Appended { base, epoch, outcome, .. } in self.appended.drain(..) {
            let _ = outcome.send(Outcome::OutcomeUnknown { offset: base, epoch });
        }
    }

    /// The node stops.
    pub(crate) fn on_stopped(&mut self) {
        self.on_leadership_lost();
        for (_, outcome) in self.open.drain() {
            let _ = outcome.send(Outcome::NotAppended(NotAppended::Stopped));
        }
    }
}
