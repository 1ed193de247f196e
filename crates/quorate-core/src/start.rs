//! Which role a replica resumes, from what it had written (protocol reference 1.8).

use alloc::vec::Vec;

use crate::ids::Endpoints;
use crate::io::ElectionState;
use crate::outbox::Turn;
use crate::replica::Replica;
use crate::role::{Candidate, Follower, Role, Tally, Unattached};

impl Replica {
    /// Takes up the stored epoch, vote and leader. The first row that fits counts.
    pub(crate) fn resume(&mut self, turn: &mut Turn<'_>, stored: Option<ElectionState>) {
        let now = turn.now;
        let me = self.config.key();
        let log_epoch = self.log.last_epoch();
        let (epoch, leader, voted) = match stored {
            Some(state) if state.epoch >= log_epoch => (state.epoch, state.leader, state.voted),
            _ => (log_epoch, None, None),
        };
        self.epoch = epoch;
        self.voted = voted;
        let own_vote = voted.is_some_and(|voted| me.is_named_by(&voted));
        self.role = match leader {
            // It led this epoch, and what it wrote last may be lost: it must not lead it again.
            Some(leader) if leader == me.id => Role::Resigned(self.resigned(now, Vec::new())),
            // It led this epoch and wrote in it, although its leader state was lost. The barriers exclude it.
            None if own_vote && epoch > crate::Epoch(0) && log_epoch == epoch => {
                self.voted = None;
                Role::Resigned(self.resigned(now, Vec::new()))
            }
            // Differs from Kafka: with a leader known, the lost election is over.
            None if own_vote && self.is_voter() && self.config.campaigns => {
                Role::Candidate(Candidate {
                    tally: Tally::new(me.id, self.voters.voters()),
                    election_deadline: self.fresh_election_deadline(now),
                })
            }
            leader => {
                let endpoints = leader.map(|id| self.known_endpoints(id)).unwrap_or_default();
                match leader {
                    Some(leader) if !endpoints.is_empty() => Role::Follower(Follower::new(
                        leader,
                        endpoints,
                        now + self.config.fetch_timeout,
                    )),
                    leader => {
                        let deadline = self.is_voter().then(|| self.fresh_election_deadline(now));
                        Role::Unattached(Unattached { leader, election_deadline: deadline })
                    }
                }
            }
        };
        let event = crate::io::Event::Role { role: self.role.name(), epoch, reason: "started" };
        turn.output.events.push(event);
        self.note_leader(now);
        if matches!(self.role, Role::Candidate(_)) {
            self.begin_round(false);
        }
        if self.is_only_voter() {
            self.lead_alone(turn);
        }
    }

    /// The only voter needs nobody's vote.
    fn lead_alone(&mut self, turn: &mut Turn<'_>) {
        match &self.role {
            Role::Candidate(_) => return self.try_leadership(turn),
            Role::Resigned(_) => {
                if let Some(epoch) = self.epoch.next() {
                    self.become_unattached(turn, epoch, None, "the only voter");
                }
            }
            _ => {}
        }
        if self.can_campaign(turn.now) {
            self.become_prospective(turn, "the only voter");
        }
    }

    /// The endpoints of a replica in the voter set, if it is there.
    pub(crate) fn known_endpoints(&self, id: crate::NodeId) -> Endpoints {
        self.voters.voters().find(id).map(|voter| voter.endpoints.clone()).unwrap_or_default()
    }
}
