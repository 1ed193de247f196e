//! Vote: pre-votes and votes (KIP-595, KIP-853, KIP-996).

use alloc::collections::BTreeMap;

use super::{Handled, Refusal};
use crate::ids::NodeId;
use crate::io::{Event, RequestId};
use crate::message::{
    ElectionRound, ErrorCode, Request, Response, Unreachable, Via, VoteRequest, VoteResponse,
    VoterAnswer,
};
use crate::outbox::Turn;
use crate::replica::Replica;
use crate::role::Role;

impl Replica {
    /// A nominee asks every voter that has not answered.
    pub(super) fn send_votes(&mut self, turn: &mut Turn<'_>) {
        let (tally, pre_vote) = match &self.role {
            Role::Prospective(role) => (&role.tally, true),
            Role::Candidate(role) if role.tally.is_lost() => return,
            Role::Candidate(role) => (&role.tally, false),
            _ => return,
        };
        let ready: alloc::vec::Vec<NodeId> =
            tally.unanswered().filter(|id| self.outbox.is_ready(*id)).collect();
        for id in ready {
            let Some(to) = self.voter_destination(id) else {
                continue;
            };
            let request = VoteRequest {
                voter: self.voters.voters().key(id),
                replica: self.config.key(),
                epoch: self.epoch,
                log_end: self.log.end_and_epoch(),
                pre_vote,
            };
            self.outbox.request(turn, to, Request::Vote(request), self.config.request_timeout);
        }
    }

    /// Answers a Vote request.
    pub(crate) fn on_vote_request(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        via: &Via,
        request: VoteRequest,
    ) {
        match self.check_vote(&request) {
            Ok(()) => {}
            Err(Refusal::Partition(error)) => return self.answer_vote(turn, id, via, error, false),
            Err(Refusal::Odd(what)) => {
                self.odd(turn, Some(request.replica.id), what);
                return self.outbox.answer(
                    turn,
                    id,
                    Response::TopLevel(ErrorCode::INVALID_REQUEST),
                );
            }
        }
        if request.epoch > self.epoch {
            self.become_unattached(turn, request.epoch, None, "a vote of a higher epoch");
        }
        if !self.is_addressed(request.voter) {
            return self.answer_vote(turn, id, via, ErrorCode::INVALID_VOTER_KEY, false);
        }
        let granted = self.can_grant(&request);
        if granted && !request.pre_vote {
            self.record_vote(turn, &request);
        }
        // The vote binds us even if we crash, so the answer waits for it to be durable.
        self.answer_vote(turn, id, via, ErrorCode::NONE, granted);
    }

    fn check_vote(&self, request: &VoteRequest) -> Result<(), Refusal> {
        let end = request.log_end;
        // A standard vote is for a new epoch, which no record has yet.
        let is_epoch_possible =
            if request.pre_vote { end.epoch <= request.epoch } else { end.epoch < request.epoch };
        if end.offset.0 < 0 || end.epoch.0 < 0 || !is_epoch_possible {
            return Err(Refusal::Partition(ErrorCode::INVALID_REQUEST));
        }
        self.check_epoch_and_sender(request.replica.id, request.epoch)
    }

    /// The matrix of protocol reference 2.3, for a request of our own epoch.
    fn can_grant(&self, request: &VoteRequest) -> bool {
        if !self.takes_part() {
            return false;
        }
        let up_to_date = request.log_end >= self.log.end_and_epoch();
        if request.pre_vote {
            return match &self.role {
                Role::Leader(_) => false,
                Role::Follower(role) => up_to_date && role.can_grant_pre_vote(),
                _ => up_to_date,
            };
        }
        match &self.role {
            Role::Unattached(_) | Role::Prospective(_) => match self.voted {
                Some(voted) => request.replica.is_named_by(&voted),
                None => self.leader().is_none() && up_to_date,
            },
            _ => false,
        }
    }

    fn record_vote(&mut self, turn: &mut Turn<'_>, request: &VoteRequest) {
        if self.voted.is_some() {
            return;
        }
        self.voted = Some(request.replica);
        let deadline = self.fresh_election_deadline(turn.now);
        let is_voter = self.is_voter();
        match &mut self.role {
            Role::Unattached(role) => role.election_deadline = is_voter.then_some(deadline),
            Role::Prospective(role) => {
                role.election_deadline = deadline;
                role.tally = crate::role::Tally::new(self.config.node, self.voters.voters());
                self.outbox.forget_requests();
            }
            _ => unreachable!("a {} grants no vote", self.role.name()),
        }
        self.persist_election(turn);
    }

    fn answer_vote(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        via: &Via,
        error: ErrorCode,
        granted: bool,
    ) {
        let response = VoteResponse { error, current: self.current_leader(via), granted };
        self.outbox.answer(turn, id, Response::Vote(response));
    }

    pub(super) fn on_vote_response(
        &mut self,
        turn: &mut Turn<'_>,
        from: NodeId,
        response: VoteResponse,
    ) -> Handled {
        if !response.granted {
            self.note_answer(
                from,
                VoterAnswer::Refused {
                    error: response.error,
                    epoch: response.current.epoch,
                    leader: response.current.leader,
                },
            );
        }
        match self.check_response(turn, from, response.error, &response.current) {
            Handled::GoOn => {}
            handled => return handled,
        }
        if response.error != ErrorCode::NONE {
            return Handled::BackOff;
        }
        match &mut self.role {
            Role::Prospective(role) => role.tally.record(from, response.granted),
            Role::Candidate(role) => role.tally.record(from, response.granted),
            // The answer itself moved us to the leader of this epoch.
            _ => return Handled::Done,
        }
        if response.granted {
            self.note_answer(from, VoterAnswer::Granted);
        }
        match &self.role {
            Role::Prospective(role) if role.is_lost() => {
                self.give_up_pre_vote(turn, "lost the pre-vote")
            }
            // The death that a hint told of is none.
            Role::Prospective(role)
                if role.is_hinted() && role.leader == Some(from) && !response.granted =>
            {
                self.give_up_pre_vote(turn, "the leader lives")
            }
            Role::Candidate(role) if role.tally.is_lost() => self.end_round(turn, Some(false)),
            _ => {
                self.try_candidacy(turn);
                self.try_leadership(turn);
            }
        }
        Handled::Done
    }

    /// A voter could not be asked. One that has no PreVote makes the nominee a candidate at once: it would never
    /// get an answer (KIP-996). Not for a mere hint, since without pre-votes nothing would protect a leader that lives.
    pub(crate) fn on_vote_unreachable(
        &mut self,
        turn: &mut Turn<'_>,
        from: NodeId,
        why: Unreachable,
    ) {
        self.note_answer(from, VoterAnswer::Unreachable(why));
        let has_no_pre_vote = matches!(
            why,
            Unreachable::UnsupportedVersion | Unreachable::TopLevel(ErrorCode::UNSUPPORTED_VERSION)
        );
        if has_no_pre_vote
            && matches!(&self.role, Role::Prospective(role) if !role.is_hinted())
            && self.can_campaign(turn.now)
        {
            self.become_candidate(turn, "a voter has no pre-vote");
        }
    }

    /// Starts the account of a round: why is there no leader?
    pub(crate) fn begin_round(&mut self, pre_vote: bool) {
        let others = self.voters.voters().ids().filter(|id| *id != self.config.node);
        self.last_round = Some(ElectionRound {
            epoch: self.epoch,
            pre_vote,
            log_end: self.log.end_and_epoch(),
            won: None,
            answers: others.map(|id| (id, VoterAnswer::None)).collect::<BTreeMap<_, _>>(),
        });
    }

    fn note_answer(&mut self, from: NodeId, said: VoterAnswer) {
        if let Some(round) = &mut self.last_round
            && round.won.is_none()
            && let Some(answer) = round.answers.get_mut(&from)
        {
            *answer = said;
        }
    }

    /// Closes the account of a round, if one is open.
    pub(crate) fn end_round(&mut self, turn: &mut Turn<'_>, won: Option<bool>) {
        if let Some(round) = &mut self.last_round
            && round.won.is_none()
        {
            round.won = won;
            turn.output.events.push(Event::Round(round.clone()));
        }
    }
}
