//! Follower: fetches from the leader of its epoch.

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
    /// The leader said that its epoch is over, and when we may campaign.
    handed_over: bool,
    /// How often the leader's connection was reset since it last answered.
    resets: u32,
    /// When to campaign because the leader's host refuses connections; before the fetch deadline.
    hinted_at: Option<Instant>,
    /// How many rounds of pre-votes a refusal has led to in vain.
    hinted_rounds: u32,
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
            hinted_at: None,
            hinted_rounds: 0,
            was_idle: false,
        }
    }

    /// The leader answered a Fetch. An answer that was on its way when it resigned changes nothing.
    pub(crate) fn on_fetched(&mut self, fetch_deadline: Instant) {
        if !self.handed_over {
            self.has_fetched = true;
            self.fetch_deadline = fetch_deadline;
            self.resets = 0;
            self.hinted_at = None;
            self.hinted_rounds = 0;
        }
    }

    /// When to campaign, unless the leader answers before.
    pub(crate) fn campaign_at(&self) -> Instant {
        self.hinted_at.map_or(self.fetch_deadline, |at| at.min(self.fetch_deadline))
    }

    /// Whether a campaign now comes from a refused connection alone, and so with the right to return: the rounds of the kind
    /// so far.
    pub(crate) fn hinted_rounds(&self, now: Instant) -> Option<u32> {
        self.hinted_at
            .filter(|at| *at <= now && now < self.fetch_deadline)
            .map(|_| self.hinted_rounds)
    }

    /// The connection to a leader that had answered on it was reset: whether to try a new one at once. That one may still
    /// reach a listener that is about to be closed, and is then reset too.
    pub(crate) fn on_reset(&mut self) -> bool {
        self.resets = self.resets.saturating_add(1);
        self.has_fetched && self.resets <= MAX_RECONNECTS
    }

    /// The leader's host refuses connections: the leader is dead, as far as can be seen from here.
    pub(crate) fn on_refused(&mut self, campaign_at: Instant) {
        self.has_fetched = false;
        self.hinted_at = Some(campaign_at);
    }

    /// Whether a Fetch was answered, and no refusal has come since.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_fetched
    }

    /// Back from a hinted round that was not won, as if it had not been: only the next one comes later.
    pub(crate) fn on_hint_in_vain(
        &mut self,
        rounds: u32,
        fetch_deadline: Instant,
        campaign_at: Instant,
    ) {
        self.fetch_deadline = fetch_deadline;
        self.hinted_rounds = rounds;
        self.hinted_at = Some(campaign_at);
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

    /// The leader resigned, and lets us campaign at this time.
    pub(crate) fn on_handed_over(&mut self, campaign_at: Instant) {
        self.handed_over = true;
        self.fetch_deadline = campaign_at;
    }

    /// Whether a PreVote may be granted: the leader was never fetched from, is silent, or has resigned.
    ///
    /// Differs from Kafka, whose followers refuse after EndQuorumEpoch too, and so lose the first round of a
    /// hand-over (KAFKA-20895).
    pub(crate) fn can_grant_pre_vote(&self) -> bool {
        !self.has_fetched || self.handed_over
    }
}
