//! What each role does when its deadline passes, and which deadline is next.

use crate::ids::Instant;
use crate::io::{Event, Timeout};
use crate::message::Unreachable;
use crate::outbox::Turn;
use crate::replica::{Replica, Shutdown};
use crate::role::Role;

impl Replica {
    /// Acts on all that is due. A tick also cuts the open batch.
    pub(crate) fn expire(&mut self, turn: &mut Turn<'_>, is_tick: bool) {
        for (peer, kind) in self.outbox.expire(turn.now) {
            self.on_unreachable(turn, peer, kind, Unreachable::TimedOut);
        }
        if is_tick && self.linger_deadline(turn.now).is_some_and(|at| at <= turn.now) {
            self.cut_open_batch(turn);
        }
        self.expire_parked(turn);
        // One timeout may lead to another that is due at once: Resigned, Unattached, Prospective.
        for _ in 0..4 {
            if !self.expire_role(turn) {
                break;
            }
        }
    }

    fn expire_role(&mut self, turn: &mut Turn<'_>) -> bool {
        let now = turn.now;
        if self.storage_failed() {
            return false;
        }
        if matches!(self.role, Role::Leader(_)) && self.stuck_deadline().is_some_and(|at| at <= now)
        {
            self.become_resigned(turn, "its oldest write is stuck");
            return true;
        }
        let is_shutting_down = self.is_shutting_down();
        match &self.role {
            Role::Unattached(role) => {
                let is_due = role.election_deadline.is_some_and(|at| at <= now);
                if is_due && !is_shutting_down && self.can_campaign(now) {
                    self.become_prospective(turn, "election timeout");
                    return true;
                }
            }
            Role::Follower(role) => {
                if role.campaign_at() <= now && !is_shutting_down && self.can_campaign(now) {
                    let reason = match role.early(now) {
                        Some(early) if early.handed_over => "the leader has handed over",
                        Some(_) => "the leader refuses connections",
                        None => "fetch timeout",
                    };
                    self.become_prospective(turn, reason);
                    return true;
                }
                let is_silent = role.silent_at().is_some_and(|at| at <= now);
                let stays = is_silent && !self.can_campaign(now) && self.is_voter();
                if let Role::Follower(role) = &mut self.role
                    && stays
                {
                    role.on_silent();
                }
            }
            Role::Prospective(role) => {
                if role.election_deadline <= now {
                    self.give_up_pre_vote(turn, "pre-vote timeout");
                    return true;
                }
            }
            // One that shuts down goes on asking for votes: if it wins it can end its epoch in good order.
            Role::Candidate(role) => {
                if !is_shutting_down && role.election_deadline <= now {
                    let can_campaign = self.can_campaign(now);
                    self.after_candidacy(turn, can_campaign);
                    return true;
                }
            }
            Role::Leader(_) if is_shutting_down && !self.is_only_voter() => {
                self.become_resigned(turn, "shutting down");
                return true;
            }
            Role::Leader(role) => {
                if self.checks_quorum() && role.check_quorum_deadline <= now {
                    self.become_resigned(turn, "no majority fetches");
                    return true;
                }
            }
            Role::Resigned(role) => {
                if role.election_deadline <= now
                    && !is_shutting_down
                    && let Some(epoch) = self.epoch.next()
                {
                    self.become_unattached(turn, epoch, None, "resignation is over");
                    return true;
                }
            }
        }
        false
    }

    /// A pre-vote without success: back to the leader that is known, or on without one.
    pub(crate) fn give_up_pre_vote(&mut self, turn: &mut Turn<'_>, reason: &'static str) {
        let Role::Prospective(role) = &self.role else {
            return;
        };
        let early = role.early;
        match role.leader {
            Some(leader) if !role.endpoints.is_empty() => {
                let endpoints = role.endpoints.clone();
                self.become_follower(turn, self.epoch, leader, endpoints, reason);
                if let Some(early) = early {
                    self.return_from_early_round(turn.now, early);
                }
            }
            leader => self.become_unattached(turn, self.epoch, leader, reason),
        }
    }

    fn after_candidacy(&mut self, turn: &mut Turn<'_>, can_campaign: bool) {
        if can_campaign {
            self.become_prospective(turn, "election timeout");
        } else if let Role::Candidate(role) = &mut self.role {
            // Looks again later, and goes on as a voter meanwhile.
            role.election_deadline = turn.now + self.config.election_timeout;
        }
    }

    /// Whether the leader must hear from others to go on leading.
    ///
    /// Differs from Kafka, which looks at the size of the voter set alone: a leader that is not in it must hear
    /// from its voters, however few they are.
    fn checks_quorum(&self) -> bool {
        !self.is_only_voter()
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutdown != Shutdown::NotWanted
    }

    pub(crate) fn on_shutdown(&mut self, turn: &mut Turn<'_>) {
        if self.is_shutting_down() {
            return;
        }
        self.shutdown = Shutdown::Wanted { deadline: turn.now + self.config.shutdown_timeout };
    }

    /// A shutdown is complete once nobody waits for this node: another leads, or it was never needed
    /// (protocol reference 2.11).
    pub(crate) fn check_shutdown(&mut self, turn: &mut Turn<'_>) {
        let Shutdown::Wanted { deadline } = self.shutdown else {
            return;
        };
        let complete = deadline <= turn.now
            || !self.takes_part()
            || !self.is_voter()
            || self.is_only_voter()
            || self.other_leader().is_some();
        if complete {
            self.shutdown = Shutdown::Complete;
            turn.output.events.push(Event::ShutDown);
        }
    }

    /// The next time at which something is due, and what.
    pub(crate) fn deadline(&self, now: Instant) -> Option<(Instant, Timeout)> {
        let is_leader = matches!(self.role, Role::Leader(_));
        // A stuck write keeps a voter from campaigning; when it is done, `Durable` wakes it.
        let campaign = |at: Instant, why: Timeout| self.can_campaign(now).then_some((at, why));
        let role = match &self.role {
            _ if self.storage_failed() => None,
            Role::Unattached(_) | Role::Candidate(_) if self.is_shutting_down() => None,
            Role::Unattached(role) => {
                role.election_deadline.and_then(|at| campaign(at, Timeout::Election))
            }
            Role::Follower(_) if self.is_shutting_down() => None,
            Role::Follower(role) if self.can_campaign(now) => {
                Some((role.campaign_at(), Timeout::Fetch))
            }
            Role::Follower(role) if self.is_voter() => {
                role.silent_at().map(|at| (at, Timeout::Fetch))
            }
            Role::Follower(_) => None,
            Role::Prospective(role) => Some((role.election_deadline, Timeout::Election)),
            Role::Candidate(role) => Some((role.election_deadline, Timeout::Election)),
            Role::Leader(role) if self.checks_quorum() => {
                Some((role.check_quorum_deadline, Timeout::CheckQuorum))
            }
            Role::Leader(_) => None,
            Role::Resigned(role) => (!self.is_shutting_down() && self.epoch.next().is_some())
                .then_some((role.election_deadline, Timeout::Election)),
        };
        let paced = self.may_fetch_at.filter(|at| now < *at);
        let begin_quorum = match &self.role {
            Role::Leader(role) if self.voters.voters().len() > 1 => {
                Some((role.begin_quorum_deadline, Timeout::BeginQuorumEpoch))
            }
            _ => None,
        };
        let shutdown = match self.shutdown {
            Shutdown::Wanted { deadline } => Some((deadline, Timeout::Shutdown)),
            Shutdown::NotWanted | Shutdown::Complete => None,
        };
        let stuck = is_leader.then(|| self.stuck_deadline()).flatten();
        [
            role,
            begin_quorum,
            shutdown,
            stuck.map(|at| (at, Timeout::StuckWrite)),
            self.parked_deadline().map(|at| (at, Timeout::ParkedFetch)),
            self.linger_deadline(now).map(|at| (at, Timeout::Linger)),
            self.outbox.deadline(),
            paced.map(|at| (at, Timeout::Backoff)),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
