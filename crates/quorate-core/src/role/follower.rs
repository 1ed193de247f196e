//! Follower: fetches from the leader of its epoch.

use super::Early;
use crate::ids::{Endpoints, Instant, NodeId};

/// So many new connections are tried at once.
const MAX_RECONNECTS: u32 = 2;

/// Fetches from `leader` until it stays silent for the fetch timeout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Follower {
    pub(crate) leader: NodeId,
    /// Never empty.
    pub(crate) endpoints: Endpoints,
    pub(crate) fetch_deadline: Instant,
    /// A leader that we have fetched from is alive: we refuse PreVotes against it (KIP-996).
    has_fetched: bool,
    /// The leader said that its epoch is over.
    handed_over: bool,
    /// How often the leader's connection was reset since it last answered.
    resets: u32,
    /// When to campaign before the fetch deadline: the leader has handed over, or its host refuses connections.
    early_at: Option<Instant>,
    /// How many rounds of pre-votes that has led to in vain.
    early_rounds: u32,
    /// Its last answer came at once and brought nothing.
    pub(crate) was_idle: bool,
}

impl Follower {
    pub(crate) fn new(leader: NodeId, endpoints: Endpoints, fetch_deadline: Instant) -> Follower {
        Follower {
            leader,
            endpoints,
            fetch_deadline,
            has_fetched: false,
            handed_over: false,
            resets: 0,
            early_at: None,
            early_rounds: 0,
            was_idle: false,
        }
    }

    /// The leader answered a Fetch. An answer that was on its way when it resigned changes nothing.
    pub(crate) fn on_fetched(&mut self, fetch_deadline: Instant) {
        if !self.handed_over {
            self.has_fetched = true;
            self.fetch_deadline = fetch_deadline;
            self.resets = 0;
            self.early_at = None;
            self.early_rounds = 0;
        }
    }

    /// When to campaign, unless the leader answers before.
    pub(crate) fn campaign_at(&self) -> Instant {
        self.early_at.map_or(self.fetch_deadline, |at| at.min(self.fetch_deadline))
    }

    /// What a campaign that begins now returns to, if it begins before the fetch timeout.
    pub(crate) fn early(&self, now: Instant) -> Option<Early> {
        let is_early = self.early_at.is_some_and(|at| at <= now) && now < self.fetch_deadline;
        is_early.then(|| Early {
            fetch_deadline: self.fetch_deadline,
            rounds: self.early_rounds.saturating_add(1),
            handed_over: self.handed_over,
        })
    }

    /// The connection to a leader that had answered on it was reset: whether to try a new one at once. That one may still
    /// reach a listener that is about to be closed, and is then reset too.
    pub(crate) fn on_reset(&mut self) -> bool {
        self.resets = self.resets.saturating_add(1);
        self.has_fetched && self.resets <= MAX_RECONNECTS
    }

    /// Whether a refused connection is a hint, and after how many rounds in vain: the leader has answered before, and no
    /// campaign is due already.
    pub(crate) fn takes_refusal(&self) -> Option<u32> {
        let is_next = self.early_rounds > 0 && self.early_at.is_none();
        (self.has_fetched || is_next).then_some(self.early_rounds)
    }

    /// The leader's host refuses connections: the leader is dead, as far as can be seen from here.
    pub(crate) fn on_refused(&mut self, campaign_at: Instant) {
        self.has_fetched = false;
        self.early_at = Some(self.early_at.map_or(campaign_at, |at| at.min(campaign_at)));
    }

    /// Whether the leader may hold our Fetch. Not the first: until it is answered, nobody hears from us that this leader lives.
    ///
    /// Differs from Kafka, whose followers grant pre-votes against an idle leader for as long as it holds their first Fetch.
    pub(crate) fn lets_fetch_wait(&self) -> bool {
        self.has_fetched
    }

    /// Back from an early round that was not won, as if it had not been. One more begins at this time; without it, when the
    /// leader's host refuses a connection again, or at the fetch timeout.
    pub(crate) fn on_early_in_vain(&mut self, early: Early, campaign_at: Option<Instant>) {
        self.fetch_deadline = early.fetch_deadline;
        self.handed_over = early.handed_over;
        self.early_rounds = early.rounds;
        self.early_at = campaign_at;
    }

    /// When a leader that answered before counts as silent; none once it does.
    pub(crate) fn silent_at(&self) -> Option<Instant> {
        self.has_fetched.then_some(self.fetch_deadline)
    }

    /// The leader did not answer for the fetch timeout, and this replica cannot campaign itself: it lets others. Without
    /// this a quorum whose other voters are too few would never elect anybody.
    pub(crate) fn on_silent(&mut self) {
        self.has_fetched = false;
    }

    /// The leader resigned, and lets us campaign at this time; and again, if that is in vain, until the fetch deadline.
    /// Rounds that hints led to before count no more, but those of a hand-over that is told again do.
    pub(crate) fn on_handed_over(&mut self, campaign_at: Instant, fetch_deadline: Instant) {
        if !self.handed_over {
            self.early_rounds = 0;
        }
        self.handed_over = true;
        self.early_at = Some(campaign_at);
        self.fetch_deadline = fetch_deadline;
    }

    /// Whether a PreVote may be granted: the leader was never fetched from, is silent, or has resigned.
    ///
    /// Differs from Kafka, whose followers refuse after EndQuorumEpoch too, and so lose the first round of a
    /// hand-over (KAFKA-20895).
    pub(crate) fn can_grant_pre_vote(&self) -> bool {
        !self.has_fetched || self.handed_over
    }
}
