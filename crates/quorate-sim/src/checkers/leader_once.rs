//! The leader of an epoch, once known to a replica, stays known: over restarts too, if it was durable.

use quorate_core::{Epoch, NodeId};

use super::{Checker, ensure};
use crate::facts::{Facts, Image, Seen};

pub(crate) struct LeaderOnce;

impl Checker for LeaderOnce {
    fn name(&self) -> &'static str {
        "leader-once"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let (node, description, known) = match seen {
            Seen::Started { node, found, description, .. } => {
                (node, description, [None, of(found)])
            }
            Seen::Woke { node, description, .. } => {
                let before = &facts.nodes[*node];
                let described = before.described.as_ref().map(|old| (old.epoch, old.leader));
                (node, description, [described, of(&before.view)])
            }
            _ => return Ok(()),
        };
        let before = &facts.nodes[*node];
        for (epoch, leader) in known.into_iter().flatten() {
            let forgotten =
                epoch == description.epoch && leader.is_some() && description.leader != leader;
            ensure(!forgotten, || {
                format!(
                    "n{} knew {leader:?} as leader of epoch {epoch} and says {:?}",
                    before.id, description.leader
                )
            })?;
        }
        Ok(())
    }
}

/// Who leads which epoch, as a directory has it.
fn of(image: &Image) -> Option<(Epoch, Option<NodeId>)> {
    image.election.as_ref().map(|state| (state.epoch, state.leader))
}
