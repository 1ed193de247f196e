//! What leaves tells of an epoch, a vote or a leader only once it is durable here.

use quorate_core::Epoch;
use quorate_core::io::Message;
use quorate_core::message::{Request, Response};

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct PersistBeforeAct;

impl Checker for PersistBeforeAct {
    fn name(&self) -> &'static str {
        "persist-before-act"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Sent { node, message, asked } = seen else { return Ok(()) };
        let node = &facts.nodes[*node];
        let id = node.id;
        let epoch = node.durable.election_epoch();
        let leader = node.durable.election.as_ref().and_then(|state| state.leader);
        let voted = node.durable.election.as_ref().and_then(|state| state.voted);
        let told = match message {
            Message::Request { request, .. } => match request {
                Request::Vote(vote) if !vote.pre_vote => {
                    let is_own = voted.is_some_and(|voted| voted.id == id);
                    ensure(vote.epoch != epoch || is_own, || {
                        format!("n{id} asks for votes in epoch {epoch} before its own is durable")
                    })?;
                    vote.epoch
                }
                Request::Vote(vote) => vote.epoch,
                Request::BeginQuorumEpoch(begin) => {
                    ensure(begin.epoch != epoch || leader == Some(id), || {
                        format!("n{id} says that it leads epoch {epoch} before that is durable")
                    })?;
                    begin.epoch
                }
                Request::EndQuorumEpoch(end) => end.epoch,
                Request::Fetch(fetch) => fetch.epoch,
                _ => Epoch(0),
            },
            Message::Response { response, .. } => match response {
                Response::Vote(vote) => {
                    if let Some(Request::Vote(asked)) = asked
                        && vote.granted
                        && !asked.pre_vote
                    {
                        let is_durable =
                            voted.is_some_and(|voted| asked.replica.is_named_by(&voted));
                        // A later epoch excuses: nobody votes in the old one any more.
                        ensure(is_durable || epoch > asked.epoch, || {
                            format!(
                                "n{id} grants {} its vote in epoch {} before that is durable",
                                asked.replica, asked.epoch
                            )
                        })?;
                    }
                    vote.current.epoch
                }
                Response::Fetch(fetch) => {
                    let has_records = matches!(
                        &fetch.outcome,
                        quorate_core::message::FetchOutcome::Records(range) if range.from < range.to
                    );
                    ensure(
                        !has_records || epoch > fetch.current.epoch || leader == Some(id),
                        || format!("n{id} serves records before its leadership is durable"),
                    )?;
                    fetch.current.epoch
                }
                Response::FetchSnapshot(answer) => answer.current.epoch,
                Response::BeginQuorumEpoch(answer) | Response::EndQuorumEpoch(answer) => {
                    answer.current.epoch
                }
                _ => Epoch(0),
            },
        };
        ensure(told <= epoch, || format!("n{id} tells of epoch {told}, durable is {epoch}"))
    }
}
