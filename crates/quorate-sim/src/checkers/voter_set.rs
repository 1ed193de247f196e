//! The voter set that counts is the latest in the log, committed or not, on every replica.

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct EffectiveVoters;

impl Checker for EffectiveVoters {
    fn name(&self) -> &'static str {
        "voter-set"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Woke { node, description, .. } = seen else { return Ok(()) };
        let node = &facts.nodes[*node];
        let latest = node.voters();
        ensure(description.voters == *latest, || {
            format!("n{} uses {}, its log has {latest}", node.id, description.voters)
        })?;
        let anonymous = description.kraft_version.is_reconfigurable()
            && latest.iter().any(|(_, voter)| voter.directory.is_none());
        ensure(!anonymous, || format!("n{}: a voter without directory id in {latest}", node.id))
    }
}
