//! A Fetch acknowledges all below its offset: it leaves only when that is on stable media.

use quorate_core::io::Message;
use quorate_core::message::Request;

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct FlushBeforePromise;

impl Checker for FlushBeforePromise {
    fn name(&self) -> &'static str {
        "flush-before-promise"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Sent { node, message, .. } = seen else { return Ok(()) };
        let Message::Request { request: Request::Fetch(fetch), .. } = message else {
            return Ok(());
        };
        let node = &facts.nodes[*node];
        let durable = (node.durable.end(), node.durable.last_epoch());
        let asked = (fetch.offset, fetch.last_fetched_epoch);
        // What it fetches after is a place in the log that is durable.
        ensure(asked == durable, || {
            format!(
                "n{} fetches at {}@{}, durable is {}@{}",
                node.id, asked.0, asked.1, durable.0, durable.1
            )
        })
    }
}
