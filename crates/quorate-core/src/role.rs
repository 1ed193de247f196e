//! The six roles, and the only functions that move a replica from one to another.
//!
//! | From | To | When |
//! |---|---|---|
//! | any | Unattached | a higher epoch without a leader; a lost pre-vote without one; a Resigned whose time is over (epoch + 1) |
//! | any but Leader of the same epoch | Follower | the leader of the epoch is learnt, or learnt with more endpoints; a lost pre-vote with a leader |
//! | Unattached, Follower, Candidate | Prospective | the election or fetch timeout, for voters (KIP-996); a hand-over, or a hint of the leader's death |
//! | Prospective | Candidate | a majority would grant, or a peer cannot say (epoch + 1) |
//! | Candidate | Leader | a majority granted |
//! | Leader | Resigned | check-quorum, a wish, a stuck or broken disk, shutdown |
//!
//! Each move forgets the requests in flight. The election state is written if epoch, leader or vote changed;
//! moves to Prospective and Resigned change none of them.

mod candidate;
mod follower;
mod leader;
mod prospective;
mod resigned;
mod unattached;

pub(crate) use candidate::Candidate;
pub(crate) use follower::Follower;
pub(crate) use leader::{Leader, Parked};
pub(crate) use prospective::{Early, Prospective, Tally};
pub(crate) use resigned::Resigned;
pub(crate) use unattached::Unattached;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use crate::ids::{Endpoints, Epoch, Instant, NodeId, ReplicaKey};
use crate::io::{Event, NotAppended};
use crate::outbox::Turn;
use crate::replica::Replica;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Unattached(Unattached),
    Prospective(Prospective),
    Candidate(Candidate),
    Leader(Box<Leader>),
    Follower(Follower),
    Resigned(Resigned),
}

impl Role {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Role::Unattached(_) => "unattached",
            Role::Prospective(_) => "prospective",
            Role::Candidate(_) => "candidate",
            Role::Leader(_) => "leader",
            Role::Follower(_) => "follower",
            Role::Resigned(_) => "resigned",
        }
    }

    /// The leader of the epoch, as far as this role knows it; `me` for the roles that are it.
    pub(crate) fn leader(&self, me: NodeId) -> Option<NodeId> {
        match self {
            Role::Unattached(role) => role.leader,
            Role::Prospective(role) => role.leader,
            Role::Candidate(_) => None,
            Role::Leader(_) | Role::Resigned(_) => Some(me),
            Role::Follower(role) => Some(role.leader),
        }
    }
}

impl Replica {
    /// Moves to an epoch whose leader is unknown, or known by id alone.
    pub(crate) fn become_unattached(
        &mut self,
        turn: &mut Turn<'_>,
        epoch: Epoch,
        leader: Option<NodeId>,
        reason: &'static str,
    ) {
        let election_deadline = self.unattached_deadline(turn.now);
        self.enter_epoch(epoch);
        let role = Unattached { leader, election_deadline };
        self.enter(turn, Role::Unattached(role), reason);
    }

    /// When an Unattached replica campaigns: as long as before if it waited already, else a fresh time.
    fn unattached_deadline(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_voter() {
            return None;
        }
        let waiting = match &self.role {
            Role::Unattached(role) => role.election_deadline,
            Role::Candidate(role) => Some(role.election_deadline),
            Role::Resigned(role) => Some(role.election_deadline),
            // An early round is much shorter than an election timeout.
            Role::Prospective(role) => {
                (!role.is_lost() && role.early.is_none()).then_some(role.election_deadline)
            }
            Role::Leader(_) | Role::Follower(_) => None,
        };
        Some(waiting.unwrap_or_else(|| self.fresh_election_deadline(now)))
    }

    pub(crate) fn fresh_election_deadline(&mut self, now: Instant) -> Instant {
        now + self.chance.spread(self.config.election_timeout)
    }

    /// Follows the leader of an epoch, which is not this replica.
    pub(crate) fn become_follower(
        &mut self,
        turn: &mut Turn<'_>,
        epoch: Epoch,
        leader: NodeId,
        endpoints: Endpoints,
        reason: &'static str,
    ) {
        assert!(leader != self.config.node, "a replica does not follow itself");
        assert!(!endpoints.is_empty(), "a leader is followed at its endpoints");
        let known = self.leader();
        assert!(
            epoch > self.epoch || known.is_none_or(|known| known == leader),
            "epoch {epoch} has the leader {known:?} already, not {leader}"
        );
        self.enter_epoch(epoch);
        let role = Follower::new(leader, endpoints, turn.now + self.config.fetch_timeout);
        self.enter(turn, Role::Follower(role), reason);
    }

    /// Asks whether an election could be won, before the epoch is raised (KIP-996).
    pub(crate) fn become_prospective(&mut self, turn: &mut Turn<'_>, reason: &'static str) {
        assert!(self.is_voter(), "only voters campaign");
        let (leader, endpoints) = match &self.role {
            Role::Unattached(role) => (role.leader, Endpoints::new()),
            Role::Follower(role) => (Some(role.leader), role.endpoints.clone()),
            Role::Candidate(_) => (None, Endpoints::new()),
            Role::Prospective(_) | Role::Leader(_) | Role::Resigned(_) => {
                unreachable!("{} does not become prospective", self.role.name())
            }
        };
        let early = self.early(turn.now);
        let election_deadline = match early {
            Some(early) => self.early_round_deadline(turn.now, early),
            None => self.fresh_election_deadline(turn.now),
        };
        let tally = Tally::new(self.config.node, self.voters.voters());
        let role = Prospective { leader, endpoints, tally, election_deadline, early };
        self.enter(turn, Role::Prospective(role), reason);
        self.begin_round(true);
        self.try_candidacy(turn);
    }

    /// A Prospective whose pre-vote is won raises the epoch and votes for itself.
    pub(crate) fn try_candidacy(&mut self, turn: &mut Turn<'_>) {
        if let Role::Prospective(role) = &self.role
            && role.tally.is_won()
        {
            self.become_candidate(turn, "won the pre-vote");
        }
    }

    pub(crate) fn become_candidate(&mut self, turn: &mut Turn<'_>, reason: &'static str) {
        assert!(matches!(self.role, Role::Prospective(_)), "a pre-vote comes first");
        assert!(self.is_voter(), "only voters campaign");
        let epoch = self.epoch.next().expect("only campaigns while an epoch is left");
        self.end_round(turn, Some(true));
        self.enter_epoch(epoch);
        self.voted = Some(self.config.key());
        let election_deadline = self.fresh_election_deadline(turn.now);
        let tally = Tally::new(self.config.node, self.voters.voters());
        self.enter(turn, Role::Candidate(Candidate { tally, election_deadline }), reason);
        self.begin_round(false);
        self.try_leadership(turn);
    }

    /// A Candidate with a majority of votes leads.
    pub(crate) fn try_leadership(&mut self, turn: &mut Turn<'_>) {
        let Role::Candidate(role) = &self.role else {
            return;
        };
        if !role.tally.is_won() {
            return;
        }
        assert!(self.is_voter(), "only voters lead");
        let granting: Vec<NodeId> = role.tally.granted().collect();
        self.end_round(turn, Some(true));
        self.voted = None;
        self.high_watermark = None;
        let leader = Leader::new(
            turn.now,
            self.log.end(),
            self.config.key(),
            self.voters.voters(),
            self.config.check_quorum_timeout(),
        );
        self.enter(turn, Role::Leader(Box::new(leader)), "won the election");
        self.append_start_of_epoch(turn, granting);
    }

    /// A leader gives up its epoch; nobody leads the rest of it.
    pub(crate) fn become_resigned(&mut self, turn: &mut Turn<'_>, reason: &'static str) {
        let Role::Leader(leader) = &self.role else {
            unreachable!("{} does not resign", self.role.name())
        };
        let preferred = leader.successors(self.config.node, self.voters.voters());
        let role = self.resigned(turn.now, preferred);
        self.high_watermark = None;
        self.enter(turn, Role::Resigned(role), reason);
    }

    /// A Resigned that tells every other voter, and lets these succeed it, best first.
    pub(crate) fn resigned(&mut self, now: Instant, preferred: Vec<ReplicaKey>) -> Resigned {
        let me = self.config.node;
        Resigned {
            preferred,
            unacknowledged: self.voters.voters().ids().filter(|id| *id != me).collect(),
            election_deadline: self.fresh_election_deadline(now),
        }
    }

    /// A vote belongs to its epoch.
    fn enter_epoch(&mut self, epoch: Epoch) {
        assert!(epoch >= self.epoch, "epochs never go back");
        if epoch > self.epoch {
            self.epoch = epoch;
            self.voted = None;
        }
    }

    /// The one place where the role changes.
    fn enter(&mut self, turn: &mut Turn<'_>, role: Role, reason: &'static str) {
        if matches!(self.role, Role::Prospective(_) | Role::Candidate(_)) {
            self.end_round(turn, Some(false));
        }
        let left = mem::replace(&mut self.role, role);
        self.outbox.forget_requests();
        turn.output.events.push(Event::Role { role: self.role.name(), epoch: self.epoch, reason });
        self.note_leader(turn.now);
        // Before any answer that tells of the new epoch: it waits for this write.
        if !matches!(self.role, Role::Prospective(_) | Role::Resigned(_)) {
            self.persist_election(turn);
        }
        if let Role::Leader(leader) = left {
            self.leave_leader(turn, *leader);
        }
    }

    /// Whoever leaves Leader answers everybody at once.
    ///
    /// Differs from Kafka, where a leader that becomes Unattached leaves Fetches hanging.
    fn leave_leader(&mut self, turn: &mut Turn<'_>, leader: Leader) {
        for parked in leader.parked {
            self.refuse_fetch(turn, &parked);
        }
        let reason = NotAppended::NotLeader { epoch: self.epoch, leader: self.other_leader() };
        for (id, _) in leader.open.proposals {
            turn.output.events.push(Event::NotAppended { id, reason: reason.clone() });
        }
    }
}
