//! An epoch never goes back, on disk or in mind, and both are the same once a write is asked for.

use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct EpochMonotonic;

impl Checker for EpochMonotonic {
    fn name(&self) -> &'static str {
        "epoch-monotonic"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Submitted { node, write: StoreWrite::ElectionState(state), .. } => {
                let before = &facts.nodes[*node];
                let old = before.view.election_epoch();
                ensure(state.epoch >= old, || {
                    format!("n{} goes back from epoch {old} to {}", before.id, state.epoch)
                })
            }
            Seen::Started { node, found, description, .. } => {
                let id = facts.nodes[*node].id;
                let (stored, epoch) = (found.election_epoch(), description.epoch);
                ensure(epoch >= stored, || {
                    format!("n{id} starts in epoch {epoch}, its disk has {stored}")
                })
            }
            Seen::Woke { node, description, .. } => {
                let before = &facts.nodes[*node];
                let (stored, epoch) = (before.view.election_epoch(), description.epoch);
                ensure(stored == epoch, || {
                    format!("n{} is in epoch {epoch} and has written {stored}", before.id)
                })
            }
            _ => Ok(()),
        }
    }
}
