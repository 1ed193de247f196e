//! BeginQuorumEpoch: a leader's heartbeat to voters that do not fetch (KIP-595, KIP-853).

use alloc::vec::Vec;

use super::{Handled, Refusal};
use crate::ids::NodeId;
use crate::io::RequestId;
use crate::message::{
    BeginQuorumEpochRequest, ErrorCode, QuorumEpochResponse, Request, Response, Via,
};
use crate::outbox::Turn;
use crate::replica::Replica;
use crate::role::Role;

impl Replica {
    /// Every half fetch timeout, to each voter that has not fetched for as long.
    pub(super) fn send_begin_quorum_epochs(&mut self, turn: &mut Turn<'_>) {
        let period = self.config.fetch_timeout / 2;
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        if leader.begin_quorum_deadline > turn.now {
            return;
        }
        leader.begin_quorum_deadline = turn.now + period;
        let silent: Vec<NodeId> = leader.silent_voters(turn.now, period).collect();
        for id in silent {
            if !self.outbox.is_ready(id) {
                continue;
            }
            let Some(to) = self.voter_destination(id) else {
                continue;
            };
            let request = BeginQuorumEpochRequest {
                voter: self.voters.voters().key(id),
                leader: self.config.node,
                epoch: self.epoch,
                endpoints: self.config.endpoints.clone(),
            };
            self.outbox.request(
                turn,
                to,
                Request::BeginQuorumEpoch(request),
                self.config.request_timeout,
            );
        }
    }

    /// Answers a leader that announces itself.
    pub(crate) fn on_begin_quorum_epoch(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        via: &Via,
        request: BeginQuorumEpochRequest,
    ) {
        let learnt = self.check_epoch_and_sender(request.leader, request.epoch).and_then(|()| {
            self.learn_leader(
                turn,
                request.epoch,
                request.leader,
                &request.endpoints,
                "the leader announced itself",
            )
        });
        let error = match learnt {
            // The leader is known by now, whomever it meant.
            Ok(()) if !self.is_addressed(request.voter) => ErrorCode::INVALID_VOTER_KEY,
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
        let response = QuorumEpochResponse { error, current: self.current_leader(via) };
        self.outbox.answer(turn, id, Response::BeginQuorumEpoch(response));
    }

    pub(super) fn on_begin_quorum_epoch_response(
        &mut self,
        turn: &mut Turn<'_>,
        from: NodeId,
        response: &QuorumEpochResponse,
    ) -> Handled {
        match self.check_response(turn, from, response.error, &response.current) {
            Handled::GoOn if response.error == ErrorCode::NONE => Handled::Done,
            Handled::GoOn => Handled::BackOff,
            handled => handled,
        }
    }
}
