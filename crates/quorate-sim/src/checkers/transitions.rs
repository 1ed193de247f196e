//! Replicas move between roles only as the table in the core's `role.rs` says (protocol reference 2.4).

use quorate_core::io::Event;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct Transitions;

impl Checker for Transitions {
    fn name(&self) -> &'static str {
        "transitions"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Event { node, event: Event::Role { role, epoch, reason } } = seen else {
            return Ok(());
        };
        let before = &facts.nodes[*node];
        // Its first role: `Started` has checked it.
        if *reason == "started" {
            return Ok(());
        }
        let (from, old) = (before.role, before.role_epoch);
        let next = old.0 + 1 == epoch.0;
        let holds = match (from, *role) {
            (_, "unattached" | "follower") if *epoch > old => true,
            ("prospective", "unattached" | "follower") => *epoch == old,
            ("unattached" | "candidate" | "follower", "follower") => *epoch == old,
            ("unattached" | "follower" | "candidate", "prospective") => *epoch == old,
            ("prospective", "candidate") => next,
            ("candidate", "leader") => *epoch == old,
            ("leader", "resigned") => *epoch == old,
            _ => false,
        };
        ensure(holds, || {
            format!("n{} goes from {from} of {old} to {role} of {epoch}: {reason}", before.id)
        })
    }
}
