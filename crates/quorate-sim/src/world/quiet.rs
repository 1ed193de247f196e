//! The quiet phase: faults end, everybody is back, and within a bounded time the cluster must have a leader,
//! commit, and hold equal logs; then it must come to rest (protocol reference 8.2).

use quorate_core::Offset;
use quorate_driver::Outcome;

use super::{Happening, World};
use crate::clock::{MS, Micros};
use crate::plan::IDLE;
use crate::workload::Workload;

/// How far the quiet phase has come.
#[derive(Debug)]
pub(super) struct Quiet {
    /// The last proposal of the phase, and the end of what it committed.
    proposal: Option<u64>,
    committed: Option<Offset>,
    /// When the cluster was found well, how often roles had changed and events happened by then.
    well: Option<(Micros, usize, u64)>,
}

impl Quiet {
    pub(super) fn on_outcome(&mut self, proposal: u64, outcome: &Outcome) {
        if self.proposal != Some(proposal) {
            return;
        }
        match outcome {
            Outcome::Committed { offset, .. } => self.committed = Some(offset.plus(1)),
            // Another try.
            Outcome::NotAppended(_) | Outcome::OutcomeUnknown { .. } => self.proposal = None,
        }
    }
}

const PROBE: Micros = 50 * MS;

/// More events than this, for each node and second at rest, are no rest: a fetch and its answer, ten timers.
const MAX_IDLE_EVENTS: u64 = 600;

impl<W: Workload> World<'_, W> {
    pub(super) fn begin_quiet(&mut self) {
        self.note(0, || "the quiet phase begins".to_owned());
        self.quiet = Some(Quiet { proposal: None, committed: None, well: None });
        self.links.heal();
        for node in 0..self.machines.len() {
            let machine = &mut self.machines[node];
            machine.paused_until = self.now;
            machine.refuses_until = self.now;
            machine.doom = None;
            machine.disk.heal();
            let boot = machine.boot;
            if machine.stuck_until > self.now {
                machine.stuck_until = self.now;
                self.at(self.now, Happening::Commit { node, boot });
            }
            self.at(self.now, Happening::Wake { node, boot });
            if self.machines[node].is_rotten && self.machines[node].process.is_some() {
                // Somebody reads what it says of its disk, and looks whether it starts again.
                self.end_process(node, false, None);
            }
            self.machines[node].is_starting = false;
            if self.machines[node].process.is_none() {
                self.start_in(node, 1 + u64::try_from(node).unwrap_or(0) * MS);
            }
        }
        self.after(PROBE, Happening::Probe);
    }

    /// Looks whether the cluster is well.
    pub(super) fn probe(&mut self) {
        let Some(quiet) = &self.quiet else { return };
        if let Some((since, roles, events)) = quiet.well {
            if self.history.roles.len() != roles {
                // A message that was long under way may still do that; but not for ever.
                if self.now > self.plan.deadline() {
                    let last = self.history.roles.last();
                    return self.fail("liveness", format!("a role changes at rest: {last:?}"));
                }
                if let Some(quiet) = &mut self.quiet {
                    quiet.well = None;
                }
                return self.after(PROBE, Happening::Probe);
            }
            if self.now < since + IDLE {
                return self.after(PROBE, Happening::Probe);
            }
            let nodes = u64::try_from(self.machines.len()).unwrap_or(1);
            let per_second = (self.events - events) * 1_000_000 / (self.now - since) / nodes;
            if per_second > MAX_IDLE_EVENTS {
                return self.fail("busy-loop", format!("{per_second} events a second at rest"));
            }
            self.is_done = true;
            return;
        }
        let state = self.unwell();
        match state {
            None => {
                let well = (self.now, self.history.roles.len(), self.events);
                if let Some(quiet) = &mut self.quiet {
                    quiet.well = Some(well);
                }
            }
            Some(why) if self.now > self.plan.deadline() => {
                let views = self.views();
                return self.fail("liveness", format!("{why} after the quiet phase: {views}"));
            }
            Some(_) => {}
        }
        self.after(PROBE, Happening::Probe);
    }

    /// Whether this is an observer that has heard of an epoch from a voter whose disk was lost since, and no other
    /// voter has got there: leaders of older epochs are none for it, and KRaft has no way back.
    fn is_stranded(&self, node: usize) -> bool {
        let epoch = |node: usize| self.facts.nodes[node].durable.election_epoch();
        let mut voters = (0..self.plan.voters).filter(|voter| !self.machines[*voter].is_lost);
        node >= self.plan.voters
            && self.lost_voters() > 0
            && voters.all(|voter| epoch(voter) < epoch(node))
    }

    /// Why the cluster is not well yet; proposes if it is well but for that.
    fn unwell(&mut self) -> Option<String> {
        let Some(leader) = self.facts.leader() else { return Some("nobody leads".to_owned()) };
        let (id, epoch) = (self.facts.nodes[leader].id, self.facts.nodes[leader].role_epoch);
        let running: Vec<usize> = (0..self.machines.len())
            .filter(|node| !self.machines[*node].is_lost && !self.is_stranded(*node))
            .collect();
        for node in &running {
            let facts = &self.facts.nodes[*node];
            let follows = facts.is_up
                && facts
                    .described
                    .as_ref()
                    .is_some_and(|view| view.epoch == epoch && view.leader == Some(id));
            if !follows {
                return Some(format!("n{} does not follow n{id}", node + 1));
            }
        }
        let quiet = self.quiet.as_ref()?;
        if quiet.proposal.is_none() {
            let token = self.machines[leader].process.as_ref().and_then(|p| p.token.clone());
            if token.is_some() {
                // 1 picks no stale token; there is one leader.
                let proposal = self.propose(1, 1, 10);
                if let Some(quiet) = &mut self.quiet {
                    quiet.proposal = proposal;
                }
            }
            return Some("nothing is committed".to_owned());
        }
        let Some(committed) = quiet.committed else {
            return Some("nothing is committed".to_owned());
        };
        let end = self.facts.nodes[leader].view.end();
        let mut digests = Vec::new();
        for node in &running {
            let facts = &self.facts.nodes[*node];
            let is_level = end >= committed
                && facts.durable.end() == end
                && facts.view.end() == end
                && facts.high_watermark == end
                && facts
                    .durable
                    .has_prefix(&self.facts.nodes[leader].durable.log, facts.durable.log.len());
            if !is_level {
                return Some(format!(
                    "n{} has {} to {}, committed {}, not {end}",
                    node + 1,
                    facts.durable.end(),
                    facts.view.end(),
                    facts.high_watermark
                ));
            }
            let process = self.machines[*node].process.as_ref()?;
            digests.push(self.workload.digest(&process.state_machine));
        }
        let first = digests.first().copied();
        if digests.iter().any(|digest| Some(*digest) != first) {
            self.fail("state-machine", "state machines that applied the same differ".to_owned());
        }
        None
    }

    fn views(&self) -> String {
        let views = self.facts.nodes.iter().map(|node| match &node.described {
            Some(view) if node.is_up => format!(
                "n{}: {} in {} of {:?}, end {}, committed {:?}",
                node.id, view.role, view.epoch, view.leader, view.log_end, view.high_watermark
            ),
            _ => format!("n{}: down", node.id),
        });
        views.collect::<Vec<_>>().join("; ")
    }
}
