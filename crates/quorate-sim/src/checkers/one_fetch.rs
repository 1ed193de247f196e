//! A replica has one Fetch under way: two could append the same offsets twice.

use std::collections::BTreeMap;

use quorate_core::io::{CorrelationId, Event, Message};
use quorate_core::message::Request;

use super::{Checker, ensure};
use crate::clock::Micros;
use crate::facts::{Facts, Seen};

#[derive(Default)]
pub(crate) struct OneFetch {
    under_way: BTreeMap<usize, (CorrelationId, Micros)>,
}

impl Checker for OneFetch {
    fn name(&self) -> &'static str {
        "one-fetch"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Sent { node, message: Message::Request { id, request, .. }, .. } => {
                let Request::Fetch(_) = request else { return Ok(()) };
                // By its own clock: an answer that is late is given up.
                let now = facts.nodes[*node].local;
                let before = self.under_way.insert(*node, (*id, now));
                let patience = facts.fetch_patience;
                let is_second =
                    before.is_some_and(|(_, since)| now < since.saturating_add(patience));
                ensure(!is_second, || {
                    format!("n{} fetches again while it waits for an answer", facts.nodes[*node].id)
                })
            }
            Seen::Ended { node, id } => {
                if self.under_way.get(node).is_some_and(|(waiting, _)| waiting == id) {
                    self.under_way.remove(node);
                }
                Ok(())
            }
            // Another role has forgotten what it asked.
            Seen::Event { node, event: Event::Role { .. } }
            | Seen::Crashed { node }
            | Seen::Started { node, .. } => {
                self.under_way.remove(node);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
