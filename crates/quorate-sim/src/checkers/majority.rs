//! What a leader calls committed is on the disks of a majority of its voters, as it is in its own log.

use quorate_core::io::Event;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct Majority;

impl Checker for Majority {
    fn name(&self) -> &'static str {
        "majority"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Event { node, event: Event::HighWatermark(known) } = seen else {
            return Ok(());
        };
        let leader = &facts.nodes[*node];
        if !leader.is_leader() {
            return Ok(());
        }
        let below = leader.view.count_below(*known);
        let voters = leader.voters();
        let holders = voters
            .ids()
            .filter_map(|id| voters.key(id))
            .filter(|key| {
                facts.disk_of(key).is_some_and(|disk| disk.has_prefix(&leader.view.log, below))
            })
            .count();
        ensure(holders >= voters.majority(), || {
            format!(
                "n{} commits to {known} in epoch {}, which {holders} of {} disks have",
                leader.id,
                leader.role_epoch,
                voters.len()
            )
        })
    }
}
