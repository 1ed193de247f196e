//! One offset and epoch is one record after one history, on every disk and in every answer there ever was;
//! epochs never decrease along a log; and all records of an epoch come from its one leader.

use std::collections::BTreeMap;

use quorate_core::io::Message;
use quorate_core::message::{FetchOutcome, Response};
use quorate_core::{Epoch, Offset};
use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::facts::{Entry, Facts, NodeFacts, Seen};

#[derive(Default)]
pub(crate) struct LogMatching {
    seen: BTreeMap<(Offset, Epoch), (Offset, u64)>,
    authors: BTreeMap<Epoch, usize>,
}

impl Checker for LogMatching {
    fn name(&self) -> &'static str {
        "log-matching"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Started { node, found, .. } => {
                found.log.iter().try_for_each(|entry| self.entry(&facts.nodes[*node], entry))
            }
            Seen::Submitted { node, write: StoreWrite::Append(batch), .. } => {
                let author = *node;
                let node = &facts.nodes[author];
                let (id, view) = (node.id, &node.view);
                ensure(batch.base == view.end(), || {
                    format!("n{id} appends {} at its log end {}", batch.base, view.end())
                })?;
                ensure(batch.epoch >= view.last_epoch() && batch.epoch.0 >= 1, || {
                    format!("n{id} appends epoch {} after {}", batch.epoch, view.last_epoch())
                })?;
                if !node.is_leader() {
                    return Ok(());
                }
                let first = *self.authors.entry(batch.epoch).or_insert(author);
                ensure(first == author, || {
                    let first = facts.nodes[first].id;
                    format!("n{id} makes {}@{}, an epoch of n{first}", batch.base, batch.epoch)
                })
            }
            // What was only asked for and never was on a disk nor in an answer may be made anew.
            Seen::Persisted { node, write: StoreWrite::Append(batch) } => {
                let node = &facts.nodes[*node];
                self.entry(node, &node.durable.next(batch))
            }
            Seen::Sent {
                node,
                message: Message::Response { response: Response::Fetch(answer), .. },
                ..
            } => {
                let FetchOutcome::Records(range) = answer.outcome else { return Ok(()) };
                let node = &facts.nodes[*node];
                let first = node.view.count_below(range.from);
                let served = node.view.log.iter().skip(first);
                served
                    .take_while(|entry| entry.end <= range.to)
                    .take(32)
                    .try_for_each(|entry| self.entry(node, entry))
            }
            _ => Ok(()),
        }
    }
}

impl LogMatching {
    fn entry(&mut self, node: &NodeFacts, entry: &Entry) -> Result<(), String> {
        let is = (entry.end, entry.chain);
        let first = *self.seen.entry((entry.base, entry.epoch)).or_insert(is);
        ensure(first == is, || {
            format!("n{} has another history at {}@{}", node.id, entry.base, entry.epoch)
        })
    }
}
