//! The leader of an epoch, once known to a replica, stays known: over restarts too, if it was durable.

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct LeaderOnce;

impl Checker for LeaderOnce {
    fn name(&self) -> &'static str {
        "leader-once"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Woke { node, description, .. } = seen else { return Ok(()) };
        let before = &facts.nodes[*node];
        let described = before.described.as_ref().map(|old| (old.epoch, old.leader));
        let written = before.view.election.as_ref().map(|state| (state.epoch, state.leader));
        for (epoch, leader) in described.into_iter().chain(written) {
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
