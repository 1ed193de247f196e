//! What the network knows early, and what is made of it: a peer refused, reset, timed out, or cannot be sent a
//! message.
//!
//! A death that shows on the socket is a hint (protocol reference 10), if the leader has answered before: an endpoint that never did
//! may be somebody's lie. When the connection to the leader is reset, a new one is
//! tried at once; when that is refused, nothing listens where the leader was. Then this voter no longer vouches for the leader
//! (it would grant a PreVote), and campaigns after `δ / 4 + rank × δ` and some jitter, rank counted among the other
//! voters by id. A round that is not won within a few δ, or that the leader itself refuses, leads back to Follower with the
//! old fetch deadline. Another refused connection leads to one more, which waits twice as long. A live leader is safe: the
//! voters that fetch from it refuse, and one that knows no PreVote is not asked for its vote instead before the fetch
//! timeout.
//!
//! A successor to whom the leader has handed over may lose its round too: the others have not heard of it yet, or the old
//! leader has the longer log. It tries again after δ, and waits twice as long each time.
//!
//! Differs from Kafka, where every death takes the fetch timeout to be noticed.

use core::time::Duration;

use crate::config::Config;
use crate::ids::{Instant, NodeId};
use crate::message::Unreachable;
use crate::outbox::{RequestKind, Turn};
use crate::replica::Replica;
use crate::role::{Early, Role};

/// So many round trips are in a δ: two for a connection and its versions, one for the pre-vote, half a one for the vote.
const ROUND_TRIPS: u32 = 4;

/// An early round may take so many δ: the other voters' answers are a round trip away.
const ROUND_DELAYS: u32 = 5;

/// So many unreachable peers are remembered.
const MAX_UNREACHABLE: usize = 32;

/// From then on the wait between early rounds stays the same.
const MAX_DOUBLINGS: u32 = 5;

impl Replica {
    /// A request has no usable answer: the peer is left alone for a while.
    pub(crate) fn on_unreachable(
        &mut self,
        turn: &mut Turn<'_>,
        peer: NodeId,
        kind: RequestKind,
        why: Unreachable,
    ) {
        match self.unreachable.get_mut(&peer) {
            Some((last, _)) => *last = why,
            None => {
                // Leaders come from the network, so their number needs a bound.
                let oldest = self.unreachable.iter().min_by_key(|(_, (_, since))| *since);
                if let Some(oldest) = oldest.map(|(id, _)| *id)
                    && self.unreachable.len() >= MAX_UNREACHABLE
                {
                    self.unreachable.remove(&oldest);
                }
                self.unreachable.insert(peer, (why, turn.now));
            }
        }
        let is_tried_again =
            kind == RequestKind::Fetch && self.on_fetch_unreachable(turn.now, peer, why);
        if !is_tried_again {
            self.outbox.back_off(peer, turn.now + self.config.retry_backoff);
        }
        if kind == RequestKind::Vote {
            self.on_vote_unreachable(turn, peer, why);
        }
    }

    /// Takes the hint, if it is about the leader. Returns whether to ask the peer again at once.
    fn on_fetch_unreachable(&mut self, now: Instant, peer: NodeId, why: Unreachable) -> bool {
        let takes_hints = !self.config.hint_delay.is_zero() && self.is_voter();
        let rounds = match &mut self.role {
            Role::Follower(role) if takes_hints && role.leader == peer => match why {
                Unreachable::Reset => return role.on_reset(),
                Unreachable::Refused => role.takes_refusal(),
                _ => None,
            },
            _ => None,
        };
        let Some(rounds) = rounds else { return false };
        let campaign_at = now + self.hinted_wait(rounds, peer);
        if let Role::Follower(role) = &mut self.role {
            role.on_refused(campaign_at);
        }
        false
    }

    /// What a campaign that begins now returns to, if it begins before the fetch timeout.
    pub(crate) fn early(&self, now: Instant) -> Option<Early> {
        match &self.role {
            Role::Follower(role) => role.early(now),
            _ => None,
        }
    }

    /// When an early round ends that begins now. Who asks for pre-votes does not fetch: after a hint it stays short, and leaves
    /// a leader that lives half of the time until the fetch timeout. After a hand-over nobody is there to fetch from.
    pub(crate) fn early_round_deadline(&self, now: Instant, early: Early) -> Instant {
        let time = self.delay_unit() * ROUND_DELAYS;
        let left = early.fetch_deadline.since(now);
        now + if early.handed_over {
            left.min(time * doubled(early.rounds - 1))
        } else {
            time.min(left / 2)
        }
    }

    /// An early round was not won: as before it, but for the next one.
    pub(crate) fn return_from_early_round(&mut self, now: Instant, early: Early) {
        let campaign_at = early.handed_over.then(|| {
            let unit = self.delay_unit();
            now + unit * doubled(early.rounds - 1) + self.chance.up_to(unit / 2)
        });
        if let Role::Follower(role) = &mut self.role {
            role.on_early_in_vain(early, campaign_at);
        }
    }

    /// δ: the configured one, or what a nominee needs until the others have its vote request, where that takes longer: a
    /// new connection, a round of pre-votes, a write; and the same write again for good measure. Where hints are turned off
    /// hand-overs need one still.
    fn delay_unit(&self) -> Duration {
        let Config { hint_delay, retry_backoff, .. } = &self.config;
        let least = if hint_delay.is_zero() { retry_backoff } else { hint_delay };
        let measured = self.outbox.round_trip() * ROUND_TRIPS + self.outbox.write_time() * 2;
        measured.max(*least)
    }

    /// How long this voter waits after a hint, so that the voters try one after another.
    fn hinted_wait(&mut self, rounds: u32, leader: NodeId) -> Duration {
        let unit = self.delay_unit();
        let others = self.voters.voters().ids().filter(|id| *id != leader);
        let rank = others.take_while(|id| *id < self.config.node).count();
        let backoff = match rounds {
            0 => Duration::ZERO,
            rounds => unit * doubled(rounds),
        };
        let in_turn = unit * u32::try_from(rank).unwrap_or(u32::MAX);
        backoff + unit / 4 + in_turn + self.chance.up_to(unit / 4)
    }
}

/// 1, 2, 4 and so on.
fn doubled(times: u32) -> u32 {
    1 << times.min(MAX_DOUBLINGS)
}
