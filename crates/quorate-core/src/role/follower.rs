//! Follower: fetches from the leader of its epoch.

use crate::ids::{Endpoints, Instant, NodeId};

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
}

impl Follower {
    pub(crate) fn new(leader: NodeId, endpoints: Endpoints, fetch_deadline: Instant) -> Follower {
        Follower { leader, endpoints, fetch_deadline, has_fetched: false, handed_over: false }
    }

    /// The leader answered a Fetch. An answer that was on its way when it resigned changes nothing.
    pub(crate) fn on_fetched(&mut self, fetch_deadline: Instant) {
        if !self.handed_over {
            self.has_fetched = true;
            self.fetch_deadline = fetch_deadline;
        }
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
