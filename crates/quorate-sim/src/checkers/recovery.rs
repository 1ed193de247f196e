//! What recovery finds is what was durable, and of the writes after it a part that their order allows: the
//! barriers hold, and torn writes are seen.

use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::facts::{Entry, Facts, Image, Seen};

pub(crate) struct Recovery;

impl Checker for Recovery {
    fn name(&self) -> &'static str {
        "recovery"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Started { node, found, .. } = seen else { return Ok(()) };
        let before = &facts.nodes[*node];
        let mut image = before.durable.clone();
        if is_state(&image, before.pending.front().map(|(_, write)| write), found) {
            return Ok(());
        }
        let mut writes = before.pending.iter().map(|(_, write)| write).peekable();
        while let Some(write) = writes.next() {
            image.apply(write);
            if is_state(&image, writes.peek().copied(), found) {
                return Ok(());
            }
        }
        let pending: Vec<String> = before.pending.iter().map(|(_, write)| brief(write)).collect();
        ensure(false, || {
            format!(
                "n{} recovers {} where {} was durable and {pending:?} under way",
                before.id,
                tell(found),
                tell(&before.durable)
            )
        })
    }
}

/// Whether a disk may be found like this when these writes are done and the next was begun.
fn is_state(image: &Image, next: Option<&StoreWrite>, found: &Image) -> bool {
    if image.election != found.election {
        return false;
    }
    let last = |log: &[Entry]| log.last().map(|entry| entry.chain);
    if last(&image.log) == last(&found.log) {
        return true;
    }
    // A truncation removes segments before it cuts one.
    match next {
        Some(StoreWrite::Truncate { to }) => {
            found.end() >= *to && image.has_prefix(&found.log, found.log.len())
        }
        _ => false,
    }
}

fn tell(image: &Image) -> String {
    format!("{:?} with a log to {}@{}", image.election, image.end(), image.last_epoch())
}

fn brief(write: &StoreWrite) -> String {
    match write {
        StoreWrite::ElectionState(state) => format!("epoch {} {:?}", state.epoch, state.leader),
        StoreWrite::Append(batch) => {
            format!("append {}..{}@{}", batch.base, batch.end, batch.epoch)
        }
        StoreWrite::Truncate { to } => format!("truncate {to}"),
    }
}
