//! The index of epochs is just what the log has: after recovery, in what a fetcher says of its log and in what
//! a leader answers.

use quorate_core::io::Message;
use quorate_core::message::{FetchOutcome, Request, Response};

use super::{Checker, ensure};
use crate::facts::{Facts, Seen};

pub(crate) struct EpochIndex;

impl Checker for EpochIndex {
    fn name(&self) -> &'static str {
        "epoch-index"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Started { node, recovered, found, .. } => {
                let epochs = found.epochs();
                ensure(recovered.epochs == epochs && recovered.log_end == found.end(), || {
                    format!(
                        "n{} recovers epochs {:?} of a log with {epochs:?}",
                        facts.nodes[*node].id, recovered.epochs
                    )
                })
            }
            Seen::Woke { node, description, .. } => {
                let node = &facts.nodes[*node];
                ensure(description.log_end.epoch == node.view.last_epoch(), || {
                    format!("n{} ends at {}", node.id, description.log_end)
                })
            }
            Seen::Sent {
                node,
                message: Message::Response { response: Response::Fetch(answer), .. },
                asked: Some(Request::Fetch(asked)),
            } => {
                let node = &facts.nodes[*node];
                let FetchOutcome::Diverging(end) = answer.outcome else { return Ok(()) };
                if !node.is_leader() || node.role_epoch != answer.current.epoch {
                    return Ok(());
                }
                let Some((epoch, offset)) = node.view.end_of_epoch(asked.last_fetched_epoch) else {
                    return Ok(());
                };
                // Its own epoch may have grown since.
                let holds = end.epoch == epoch
                    && (end.offset == offset || epoch == node.role_epoch && end.offset < offset);
                ensure(holds, || {
                    format!("n{} answers diverging {end}, its log has {offset}@{epoch}", node.id)
                })
            }
            _ => Ok(()),
        }
    }
}
