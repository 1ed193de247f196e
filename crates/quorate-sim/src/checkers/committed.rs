//! What is committed never changes, whoever tells of it, and a leader tells of it first.

use quorate_core::io::Event;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct Committed;

impl Checker for Committed {
    fn name(&self) -> &'static str {
        "committed"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Event { node, event } = seen else { return Ok(()) };
        let node = &facts.nodes[*node];
        match event {
            Event::HighWatermark(known) => {
                let log = &node.view;
                ensure(*known <= log.end(), || {
                    format!("n{} commits to {known}, its log ends at {}", node.id, log.end())
                })?;
                ensure(node.is_leader() || *known <= facts.committed_end(), || {
                    format!("n{} commits to {known} as a follower, before any leader did", node.id)
                })?;
                let common = log.count_below(*known).min(facts.committed.len());
                let Some(last) = common.checked_sub(1) else { return Ok(()) };
                let same = facts.committed[last].0.chain == log.log[last].chain;
                ensure(same, || {
                    format!("n{} has another committed record at {}", node.id, log.log[last].base)
                })
            }
            Event::IntegrityFault(fault) => Err(format!("n{}: {fault}", node.id)),
            _ => Ok(()),
        }
    }
}
