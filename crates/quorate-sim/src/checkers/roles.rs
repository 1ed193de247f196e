//! A role is what the rest of a replica's state says: who votes, for whom, and in whose name.

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct Roles;

impl Checker for Roles {
    fn name(&self) -> &'static str {
        "roles"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Woke { node, description, .. } = seen else { return Ok(()) };
        let node = &facts.nodes[*node];
        let me = node.id;
        let is_own_vote = description.voted.is_some_and(|voted| voted.id == me);
        let holds = match description.role {
            "leader" => description.is_voter && description.leader == Some(me),
            "resigned" => description.leader == Some(me),
            "candidate" => description.is_voter && is_own_vote && description.leader.is_none(),
            "prospective" => description.is_voter && description.leader != Some(me),
            "follower" => description.leader.is_some_and(|leader| leader != me),
            "unattached" => description.leader != Some(me),
            _ => false,
        };
        ensure(holds, || {
            format!(
                "n{me} is {} with leader {:?}, vote {:?}, voter {}",
                description.role, description.leader, description.voted, description.is_voter
            )
        })?;
        ensure(node.role == description.role && node.role_epoch == description.epoch, || {
            format!(
                "n{me} told of {} in epoch {} and is {} in {}",
                node.role, node.role_epoch, description.role, description.epoch
            )
        })?;
        ensure(description.log_end.offset == node.view.end(), || {
            format!("n{me} ends at {}, its writes at {}", description.log_end, node.view.end())
        })?;
        ensure(description.durable_end <= node.durable.end().max(node.view.end()), || {
            format!("n{me} takes {} for durable", description.durable_end)
        })
    }
}
