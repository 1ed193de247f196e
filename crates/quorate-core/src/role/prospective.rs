//! Prospective: asks for pre-votes (KIP-996). Shares the tally with Candidate.

use alloc::collections::BTreeMap;

use crate::ids::{Endpoints, Instant, NodeId};
use crate::voters::VoterSet;

/// Asks who would vote for it, and keeps what it knows of the leader meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Prospective {
    /// The last known leader of the epoch.
    pub(crate) leader: Option<NodeId>,
    /// That leader's endpoints, if they are known.
    pub(crate) endpoints: Endpoints,
    pub(crate) tally: Tally,
    pub(crate) election_deadline: Instant,
    /// What this round returns to, if it began before the fetch timeout.
    pub(crate) early: Option<Early>,
}

/// What a round of pre-votes returns to that a hint or a hand-over has led to, and not the fetch timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Early {
    /// When the leader would have counted as silent.
    pub(crate) fetch_deadline: Instant,
    /// How many such rounds there have been, this one included.
    pub(crate) rounds: u32,
    /// The leader said that its epoch is over; else it refused connections, and may live.
    pub(crate) handed_over: bool,
}

impl Prospective {
    /// The leader resigned while we ask for pre-votes: if they are not won, another round comes soon, however many a hint
    /// has led to before.
    pub(crate) fn on_handed_over(&mut self, fetch_deadline: Instant) {
        let rounds = self.early.filter(|early| early.handed_over).map_or(1, |early| early.rounds);
        self.early = Some(Early { fetch_deadline, rounds, handed_over: true });
    }

    /// Whether a hint alone has led to this round: the leader may live.
    pub(crate) fn is_hinted(&self) -> bool {
        self.early.is_some_and(|early| !early.handed_over)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.tally.is_lost()
    }
}

/// The votes of one round, over the voters at its begin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tally(BTreeMap<NodeId, Option<bool>>);

impl Tally {
    /// A fresh round, in which this nominee votes for itself.
    pub(crate) fn new(me: NodeId, voters: &VoterSet) -> Tally {
        Tally(voters.ids().map(|id| (id, (id == me).then_some(true))).collect())
    }

    /// Counts an answer. One from a node that is no voter of this round is nobody's vote.
    pub(crate) fn record(&mut self, voter: NodeId, granted: bool) {
        if let Some(vote) = self.0.get_mut(&voter) {
            *vote = Some(granted);
        }
    }

    fn majority(&self) -> usize {
        self.0.len() / 2 + 1
    }

    pub(crate) fn is_won(&self) -> bool {
        self.granted().count() >= self.majority()
    }

    /// Whether no majority is possible any more.
    pub(crate) fn is_lost(&self) -> bool {
        let possible = self.0.values().filter(|vote| **vote != Some(false)).count();
        possible < self.majority()
    }

    pub(crate) fn granted(&self) -> impl Iterator<Item = NodeId> {
        self.0.iter().filter(|(_, vote)| **vote == Some(true)).map(|(id, _)| *id)
    }

    pub(crate) fn unanswered(&self) -> impl Iterator<Item = NodeId> {
        self.0.iter().filter(|(_, vote)| vote.is_none()).map(|(id, _)| *id)
    }
}
