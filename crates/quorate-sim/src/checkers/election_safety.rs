//! An epoch has one leader: in every replica's mind, on every disk and in every message, for ever.

use std::collections::BTreeMap;

use quorate_core::io::Message;
use quorate_core::message::{CurrentLeader, Request, Response};
use quorate_core::{Epoch, NodeId};
use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

#[derive(Default)]
pub(crate) struct ElectionSafety {
    leaders: BTreeMap<Epoch, NodeId>,
}

impl Checker for ElectionSafety {
    fn name(&self) -> &'static str {
        "election-safety"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Submitted { node, write: StoreWrite::ElectionState(state), .. } => {
                self.note(facts, *node, state.epoch, state.leader)
            }
            Seen::Woke { node, description, .. } => {
                self.note(facts, *node, description.epoch, description.leader)
            }
            Seen::Sent { node, message, .. } => {
                let (epoch, leader) = named(message);
                self.note(facts, *node, epoch, leader)
            }
            _ => Ok(()),
        }
    }
}

impl ElectionSafety {
    fn note(
        &mut self,
        facts: &Facts,
        node: usize,
        epoch: Epoch,
        leader: Option<NodeId>,
    ) -> Result<(), String> {
        let Some(leader) = leader else { return Ok(()) };
        let first = *self.leaders.entry(epoch).or_insert(leader);
        let id = facts.nodes[node].id;
        ensure(first == leader, || {
            format!("n{id} names n{leader} as leader of epoch {epoch}, which n{first} leads")
        })
    }
}

fn named(message: &Message) -> (Epoch, Option<NodeId>) {
    let told = |current: &CurrentLeader| (current.epoch, current.leader);
    match message {
        Message::Request { request, .. } => match request {
            Request::BeginQuorumEpoch(request) => (request.epoch, Some(request.leader)),
            Request::EndQuorumEpoch(request) => (request.epoch, Some(request.leader)),
            _ => (Epoch(0), None),
        },
        Message::Response { response, .. } => match response {
            Response::Vote(response) => told(&response.current),
            Response::Fetch(response) => told(&response.current),
            Response::FetchSnapshot(response) => told(&response.current),
            Response::BeginQuorumEpoch(response) | Response::EndQuorumEpoch(response) => {
                told(&response.current)
            }
            _ => (Epoch(0), None),
        },
    }
}
