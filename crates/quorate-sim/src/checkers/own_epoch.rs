//! A leader's high watermark lies above the first record of its own epoch (Raft §5.4.2).

use quorate_core::io::Event;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct OwnEpoch;

impl Checker for OwnEpoch {
    fn name(&self) -> &'static str {
        "own-epoch"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let (index, known) = match seen {
            Seen::Event { node, event: Event::HighWatermark(known) } => (*node, *known),
            Seen::Woke { node, description, .. } if description.role == "leader" => {
                let Some(known) = description.high_watermark else { return Ok(()) };
                (*node, known)
            }
            _ => return Ok(()),
        };
        let node = &facts.nodes[index];
        if !node.is_leader() {
            return Ok(());
        }
        let start = node.view.log.iter().find(|entry| entry.epoch == node.role_epoch);
        ensure(start.is_some_and(|start| known > start.base), || {
            let start = start.map(|start| start.base);
            format!(
                "n{} commits to {known} as leader of epoch {}, which begins at {start:?}",
                node.id, node.role_epoch
            )
        })
    }
}
