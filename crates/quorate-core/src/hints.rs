//! What the network knows early, and what is made of it: a peer refused, reset, timed out, or cannot be sent a
//! message.

use crate::ids::NodeId;
use crate::message::Unreachable;
use crate::outbox::{RequestKind, Turn};
use crate::replica::Replica;

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
                self.unreachable.insert(peer, (why, turn.now));
            }
        }
        self.outbox.back_off(peer, turn.now + self.config.retry_backoff);
        if kind == RequestKind::Vote {
            self.on_vote_unreachable(turn, peer, why);
        }
    }
}
