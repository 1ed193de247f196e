//! Clients: they propose to whoever believes to lead, and keep account of what they are told.

use bytes::Bytes;
use quorate_driver::Outcome;

use super::World;
use crate::clock::Micros;
use crate::counters::Count;
use crate::facts::Seen;
use crate::machine::Inbound;
use crate::workload::Workload;

impl<W: Workload> World<'_, W> {
    /// Proposes to one of the nodes that believe to lead; now and then to one that did. Whether there was one.
    pub(super) fn propose(&mut self, pick: u64, records: u64, size: u64) -> Option<u64> {
        let is_stale = pick.is_multiple_of(16);
        let tokens: Vec<_> = self
            .machines
            .iter()
            .enumerate()
            .filter_map(|(node, machine)| {
                let process = machine.process.as_ref()?;
                let token = if is_stale { &process.old_token } else { &process.token };
                Some((node, token.clone()?))
            })
            .collect();
        let pick = usize::try_from(pick / 16).unwrap_or(0);
        let (node, token) = tokens.get(pick.checked_rem(tokens.len())?)?.clone();
        self.proposals += 1;
        let proposal = self.proposals;
        let size = usize::try_from(size).unwrap_or(0);
        let values: Vec<Bytes> =
            (0..records).map(|i| self.workload.command(proposal * 64 + i, size)).collect();
        self.note(node, || {
            format!("a client proposes {proposal}: {records} records in epoch {}", token.epoch())
        });
        if !self.history.proposed.is_empty() {
            self.count(Count::Concurrent);
        }
        self.observe(&Seen::Proposed { proposal, values: &values });
        self.history.proposed.insert(proposal, self.now);
        self.receive(node, Inbound::Propose { proposal, token, values });
        Some(proposal)
    }

    pub(super) fn on_outcome(&mut self, node: usize, proposal: u64, outcome: &Outcome) {
        let since: Option<Micros> = self.history.proposed.remove(&proposal);
        if let (Some(since), Outcome::Committed { .. }) = (since, outcome) {
            self.history.acknowledged.push((since, self.now, node));
        }
        if let Some(quiet) = &mut self.quiet {
            quiet.on_outcome(proposal, outcome);
        }
    }
}
