//! A high watermark never goes back: a replica's while it runs, and that of the newest epoch's leader below any
//! that an earlier one showed.

use quorate_core::io::Event;
use quorate_core::{Epoch, Offset};

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

#[derive(Default)]
pub(crate) struct HighWatermark {
    newest: Epoch,
    shown: Offset,
}

impl Checker for HighWatermark {
    fn name(&self) -> &'static str {
        "high-watermark"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Event { node, event: Event::HighWatermark(known) } => {
                let before = &facts.nodes[*node];
                ensure(*known > before.high_watermark, || {
                    format!("n{}: {known} after {}", before.id, before.high_watermark)
                })
            }
            Seen::Woke { node, description, .. } => {
                let before = &facts.nodes[*node];
                if let Some(old) = &before.described
                    && old.epoch == description.epoch
                    && old.role == description.role
                    && let Some(known) = old.high_watermark
                {
                    ensure(description.high_watermark.is_some_and(|now| now >= known), || {
                        format!("n{}: {:?} after {known}", before.id, description.high_watermark)
                    })?;
                }
                if description.role != "leader" || description.epoch < self.newest {
                    return Ok(());
                }
                self.newest = description.epoch;
                let Some(known) = description.high_watermark else { return Ok(()) };
                let shown = self.shown;
                ensure(known >= shown, || {
                    format!("leader n{}: {known}, {shown} was shown before", before.id)
                })?;
                self.shown = known;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
