//! What a client knows to be committed is on the media of a majority when it is told so, and on the disk of at
//! least one voter that lives for ever after. The media are looked at: what storage says of them does not count.

use quorate_core::Offset;
use quorate_driver::Outcome;
use quorate_storage::StoreWrite;

use super::{Checker, ensure};
use crate::disk::SimFs;
use crate::facts::{Entry, Facts, NodeFacts, Seen};
use crate::machine::log_dir;

#[derive(Default)]
pub(crate) struct Durability {
    /// All below was looked for on the media.
    seen: Offset,
}

impl Checker for Durability {
    fn name(&self) -> &'static str {
        "durability"
    }

    fn check(&mut self, facts: &Facts, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Outcome { node, outcome: Outcome::Committed { offset, .. }, disks, .. } => {
                self.on_media(facts, &facts.nodes[*node], *offset, disks)
            }
            Seen::Crashed { .. }
            | Seen::Started { .. }
            | Seen::Persisted { write: StoreWrite::Truncate { .. }, .. } => on_a_disk(facts),
            _ => Ok(()),
        }
    }
}

impl Durability {
    fn on_media(
        &mut self,
        facts: &Facts,
        teller: &NodeFacts,
        offset: Offset,
        disks: &[Option<SimFs>],
    ) -> Result<(), String> {
        let index = facts.committed.partition_point(|(entry, _)| entry.end <= offset);
        let Some((entry, _)) = facts.committed.get(index).filter(|_| offset >= self.seen) else {
            return Ok(());
        };
        self.seen = entry.end;
        let voters = teller.voters();
        let holders = voters.ids().filter_map(|id| voters.key(id)).filter(|key| {
            let alive = facts.nodes.iter().position(|node| node.key.is_named_by(key));
            match alive.and_then(|node| disks.get(node)) {
                Some(Some(disk)) => has(disk, entry),
                // What went wrong later has kept its promise until then.
                Some(None) | None => facts.disk_of(key).is_some_and(|disk| {
                    disk.log.get(index).is_some_and(|mine| mine.chain == entry.chain)
                }),
            }
        });
        let holders = holders.count();
        ensure(holders >= voters.majority(), || {
            format!(
                "a client hears that {}@{} is committed, which {holders} of {} disks have synced",
                entry.base,
                entry.epoch,
                voters.len()
            )
        })
    }
}

fn has(disk: &SimFs, entry: &Entry) -> bool {
    disk.inner.any_on_media(&log_dir(), |name, content| {
        name.ends_with(".log") && batch_at(content, entry.base) == Some(&entry.bytes)
    })
}

/// The batch of a segment that begins at this offset: each begins with its offset and its length after both.
fn batch_at(mut segment: &[u8], base: Offset) -> Option<&[u8]> {
    loop {
        let (offset, rest) = segment.split_first_chunk::<8>()?;
        let (length, _) = rest.split_first_chunk::<4>()?;
        let length = 12 + usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (batch, rest) = segment.split_at_checked(length)?;
        if i64::from_be_bytes(*offset) >= base.0 {
            return (i64::from_be_bytes(*offset) == base.0).then_some(batch);
        }
        segment = rest;
    }
}

fn on_a_disk(facts: &Facts) -> Result<(), String> {
    let due = facts.committed.partition_point(|(entry, _)| entry.base < facts.acknowledged);
    let Some(last) = due.checked_sub(1) else { return Ok(()) };
    let committed = &facts.committed[last].0;
    let holders = facts.nodes.iter().filter(|node| {
        !node.is_lost
            && node.durable.log.get(last).is_some_and(|mine| mine.chain == committed.chain)
    });
    ensure(holders.count() > 0, || {
        format!("the acknowledged {}@{} is on no disk", committed.base, committed.epoch)
    })
}
