//! EndQuorumEpoch: a leader gives up its epoch and names its successors (KIP-595, KIP-853).

use alloc::vec::Vec;
use core::time::Duration;

use super::{Handled, Refusal};
use crate::ids::{NodeId, ReplicaKey};
use crate::io::RequestId;
use crate::message::{
    EndQuorumEpochRequest, ErrorCode, QuorumEpochResponse, Request, Response, Via,
};
use crate::outbox::Turn;
use crate::replica::Replica;
use crate::role::Role;

impl Replica {
    /// To every voter, until each has answered.
    pub(super) fn send_end_quorum_epochs(&mut self, turn: &mut Turn<'_>) {
        let Role::Resigned(role) = &self.role else {
            return;
        };
        let ready: Vec<NodeId> =
            role.unacknowledged.iter().copied().filter(|id| self.outbox.is_ready(*id)).collect();
        let preferred_candidates = role.preferred.clone();
        for id in ready {
            let Some(to) = self.voter_destination(id) else {
                continue;
            };
            let request = EndQuorumEpochRequest {
                leader: self.config.node,
                epoch: self.epoch,
                preferred_candidates: preferred_candidates.clone(),
                // Differs from Kafka, which leaves them empty: a receiver that does not know the leader needs them.
                endpoints: self.config.endpoints.clone(),
            };
            self.outbox.request(
                turn,
                to,
                Request::EndQuorumEpoch(request),
                self.config.request_timeout,
            );
        }
    }

    /// Answers a leader that resigns; its own follower campaigns when its turn comes.
    pub(crate) fn on_end_quorum_epoch(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        via: &Via,
        request: EndQuorumEpochRequest,
    ) {
        let learnt = self.check_epoch_and_sender(request.leader, request.epoch).and_then(|()| {
            self.learn_leader(
                turn,
                request.epoch,
                request.leader,
                &request.endpoints,
                "a leader resigns",
            )
        });
        let error = match learnt {
            Ok(()) => ErrorCode::NONE,
            Err(Refusal::Partition(error)) => error,
            Err(Refusal::Odd(what)) => {
                self.odd(turn, Some(request.leader), what);
                return self.outbox.answer(
                    turn,
                    id,
                    Response::TopLevel(ErrorCode::INVALID_REQUEST),
                );
            }
        };
        if error == ErrorCode::NONE {
            let wait = succession_delay(
                &request.preferred_candidates,
                self.config.key(),
                self.config.election_backoff_max,
            );
            let campaign_at = turn.now + wait;
            let fetch_deadline = campaign_at + self.config.fetch_timeout;
            match &mut self.role {
                Role::Follower(role) if role.leader == request.leader => {
                    role.on_handed_over(campaign_at, fetch_deadline);
                }
                Role::Prospective(role) if role.leader == Some(request.leader) => {
                    role.on_handed_over(fetch_deadline);
                }
                _ => {}
            }
        }
        let response = QuorumEpochResponse { error, current: self.current_leader(via) };
        self.outbox.answer(turn, id, Response::EndQuorumEpoch(response));
    }

    pub(super) fn on_end_quorum_epoch_response(
        &mut self,
        turn: &mut Turn<'_>,
        from: NodeId,
        response: &QuorumEpochResponse,
    ) -> Handled {
        match self.check_response(turn, from, response.error, &response.current) {
            Handled::GoOn if response.error == ErrorCode::NONE => {
                if let Role::Resigned(role) = &mut self.role {
                    role.unacknowledged.remove(&from);
                }
                Handled::Done
            }
            Handled::GoOn => Handled::BackOff,
            handled => handled,
        }
    }
}

/// How long a voter waits before it campaigns: nothing for the first, ever longer for those after it, the
/// maximum for whoever is not on a list that has names (protocol reference 2.8).
fn succession_delay(preferred: &[ReplicaKey], me: ReplicaKey, max: Duration) -> Duration {
    if preferred.is_empty() {
        return Duration::ZERO;
    }
    match preferred.iter().position(|candidate| me.is_named_by(candidate)) {
        Some(0) => Duration::ZERO,
        Some(position) => {
            let halvings = u32::try_from(preferred.len() - position).unwrap_or(u32::MAX);
            let shrink = 1u32.checked_shl(halvings.min(31)).unwrap_or(u32::MAX);
            // Whole milliseconds, as Kafka shifts integers.
            Duration::from_millis(u64::try_from((max / shrink).as_millis()).unwrap_or(u64::MAX))
                .min(max)
        }
        None => max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successors_wait_by_their_place() {
        let max = Duration::from_millis(1000);
        let delays = |n: i32| -> Vec<u128> {
            let list: Vec<ReplicaKey> =
                (0..n).map(|id| ReplicaKey::new(NodeId(id), None)).collect();
            list.iter().map(|key| succession_delay(&list, *key, max).as_millis()).collect()
        };
        assert_eq!(delays(2), [0, 500]);
        assert_eq!(delays(3), [0, 250, 500]);
        assert_eq!(delays(4), [0, 125, 250, 500]);
        let list = [ReplicaKey::new(NodeId(1), None)];
        assert_eq!(succession_delay(&list, ReplicaKey::new(NodeId(9), None), max), max);
        assert_eq!(succession_delay(&[], ReplicaKey::new(NodeId(9), None), max), Duration::ZERO);
    }
}
