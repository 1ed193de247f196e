//! A replica's directory as a value: what is on stable media, and what a crash may leave of the rest.
//!
//! The rules are storage's table of write barriers: writes are done in order, an election state and a
//! truncation are durable before any later write touches a file, and every append before them is synced first.
//! Of appends in a row any part may survive; recovery keeps those that leave no gap.

use quorate_core::config::Recovered;
use quorate_core::io::ElectionState;
use quorate_core::message::ControlRecord;
use quorate_core::{Epoch, Offset};

use crate::batches::{BatchId, Batches};

/// What is on stable media.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Disk {
    pub(crate) election: Option<ElectionState>,
    pub(crate) log: Vec<BatchId>,
}

/// A write that a replica asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DiskWrite {
    ElectionState(ElectionState),
    Append(BatchId),
    Truncate(Offset),
}

impl DiskWrite {
    /// Whether the write is ordered against all before and after it.
    fn is_barrier(&self) -> bool {
        match self {
            DiskWrite::ElectionState(_) | DiskWrite::Truncate(_) => true,
            DiskWrite::Append(_) => false,
        }
    }
}

impl Disk {
    /// Does a write on top of all before it.
    pub(crate) fn apply(&mut self, write: &DiskWrite, batches: &Batches) {
        match write {
            DiskWrite::ElectionState(state) => self.election = Some(state.clone()),
            DiskWrite::Truncate(to) => self.log.retain(|id| batches.get(*id).end <= *to),
            DiskWrite::Append(id) => {
                let batch = batches.get(*id);
                if batch.base > batches.end(&self.log) {
                    // A gap: recovery finds zeros there and cuts.
                    return;
                }
                // Where a truncation did not survive, the new bytes stand over old ones, and what stood after these
                // is still there.
                let old = self.log.iter().copied();
                let tail = old.filter(|old| batches.get(*old).base >= batch.end);
                let tail: Vec<BatchId> = tail.collect();
                self.log.retain(|old| batches.get(*old).end <= batch.base);
                self.log.push(*id);
                self.log.extend(tail);
            }
        }
    }

    /// Every directory that a crash may leave when these writes were asked for and not yet durable. The first is
    /// the one on which none of them survived.
    pub(crate) fn after_crash(&self, pending: &[DiskWrite], batches: &Batches) -> Vec<Disk> {
        let mut found: Vec<Disk> = Vec::new();
        let count = u32::try_from(pending.len()).expect("few writes are pending");
        for subset in 0..1u32.checked_shl(count).expect("few writes are pending") {
            let survives = |i: usize| subset & (1 << i) != 0;
            // A write that survived says that whatever is ordered before it survived too.
            let is_possible = (0..pending.len()).all(|later| {
                !survives(later)
                    || (0..later).all(|earlier| {
                        survives(earlier)
                            || !(pending[earlier].is_barrier() || pending[later].is_barrier())
                    })
            });
            if !is_possible {
                continue;
            }
            let mut disk = self.clone();
            for (_, write) in pending.iter().enumerate().filter(|(i, _)| survives(*i)) {
                disk.apply(write, batches);
            }
            if !found.contains(&disk) {
                found.push(disk);
            }
        }
        found
    }

    /// What storage finds at the next start.
    pub(crate) fn recovered(&self, bootstrap: Vec<ControlRecord>, batches: &Batches) -> Recovered {
        let mut epochs: Vec<(Epoch, Offset)> = Vec::new();
        for batch in self.log.iter().map(|id| batches.get(*id)) {
            if epochs.last().is_none_or(|(epoch, _)| *epoch < batch.epoch) {
                epochs.push((batch.epoch, batch.base));
            }
        }
        let control = self.log.iter().flat_map(|id| batches.get(*id).control.clone());
        Recovered {
            election: self.election.clone(),
            log_start: Offset::ZERO,
            log_end: batches.end(&self.log),
            epochs,
            bootstrap,
            control: control.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::io::{Batch, Content};

    use super::*;

    fn election(epoch: i32) -> ElectionState {
        ElectionState {
            epoch: Epoch(epoch),
            leader: None,
            voted: None,
            kraft_version: quorate_core::message::KRaftVersion(1),
            voters: vec![],
        }
    }

    fn append(batches: &mut Batches, base: i64, epoch: i32) -> BatchId {
        let (base, end) = (Offset(base), Offset(base + 1));
        let content = Content::Data(vec![format!("{base}@{epoch}").into()]);
        batches.intern(Batch { base, end, epoch: Epoch(epoch), encoded_len: 1, content })
    }

    #[test]
    fn a_crash_keeps_a_prefix_of_what_barriers_order() {
        let mut batches = Batches::default();
        let (a, b, c) =
            (append(&mut batches, 0, 1), append(&mut batches, 1, 1), append(&mut batches, 1, 2));
        let disk = Disk { election: Some(election(1)), log: vec![a] };
        let pending = [
            DiskWrite::Append(b),
            DiskWrite::ElectionState(election(2)),
            DiskWrite::Truncate(Offset(1)),
            DiskWrite::Append(c),
        ];
        let found = disk.after_crash(&pending, &batches);
        let seen: Vec<(i32, &[BatchId])> = found
            .iter()
            .map(|disk| (disk.election.as_ref().map_or(0, |state| state.epoch.0), &disk.log[..]))
            .collect();
        let expected: [(i32, &[BatchId]); 5] =
            [(1, &[a]), (1, &[a, b]), (2, &[a, b]), (2, &[a]), (2, &[a, c])];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_gap_between_appends_is_cut() {
        let mut batches = Batches::default();
        let (a, b) = (append(&mut batches, 0, 1), append(&mut batches, 1, 1));
        let pending = [DiskWrite::Append(a), DiskWrite::Append(b)];
        let found = Disk::default().after_crash(&pending, &batches);
        let logs: Vec<&[BatchId]> = found.iter().map(|disk| &disk.log[..]).collect();
        let expected: [&[BatchId]; 3] = [&[], &[a], &[a, b]];
        assert_eq!(logs, expected);
    }
}
