//! What the core knows of the log: start, end, durable end, and where each epoch begins.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::ids::{Epoch, Offset, OffsetAndEpoch};
use crate::io::WriteId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    start: Offset,
    end: Offset,
    /// Each epoch of the log with its first offset, ascending in both.
    epochs: Vec<(Epoch, Offset)>,
    durable_end: Offset,
    /// Appends that are not durable yet, and up to where the log is durable once they are.
    unflushed: VecDeque<(WriteId, Offset)>,
    generation: u64,
}

/// Without the numbers of the unflushed appends, which stand in the order in which they were written.
impl Hash for Log {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Log { start, end, epochs, durable_end, unflushed, generation } = self;
        (start, end, epochs, durable_end, generation).hash(state);
        unflushed.len().hash(state);
        unflushed.iter().for_each(|(_, end)| end.hash(state));
    }
}

impl Log {
    pub(crate) fn new(start: Offset, end: Offset, epochs: Vec<(Epoch, Offset)>) -> Log {
        Log { start, end, epochs, durable_end: end, unflushed: VecDeque::new(), generation: 0 }
    }

    pub(crate) fn start(&self) -> Offset {
        self.start
    }

    pub(crate) fn end(&self) -> Offset {
        self.end
    }

    pub(crate) fn durable_end(&self) -> Offset {
        self.durable_end
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn has_unflushed_appends(&self) -> bool {
        !self.unflushed.is_empty()
    }

    /// The epoch of the last record, 0 if there is none.
    pub(crate) fn last_epoch(&self) -> Epoch {
        self.epochs.last().map_or(Epoch(0), |(epoch, _)| *epoch)
    }

    pub(crate) fn end_and_epoch(&self) -> OffsetAndEpoch {
        OffsetAndEpoch::new(self.end, self.last_epoch())
    }

    /// The largest epoch not above the asked one, and where it ends. An epoch below all that are known
    /// ends where the first known one begins; one above all ends at the log end.
    pub(crate) fn end_of_epoch(&self, asked: Epoch) -> OffsetAndEpoch {
        let after = self.epochs.partition_point(|(epoch, _)| *epoch <= asked);
        let end = self.epochs.get(after).map_or(self.end, |(_, first)| *first);
        match after.checked_sub(1).and_then(|i| self.epochs.get(i)) {
            Some((epoch, _)) => OffsetAndEpoch::new(end, *epoch),
            None => OffsetAndEpoch::new(end, asked.min(self.last_epoch())),
        }
    }

    pub(crate) fn append(&mut self, write: WriteId, epoch: Epoch, base: Offset, end: Offset) {
        assert!(
            base == self.end && end > base,
            "a batch {base}..{end} must start at the log end {}",
            self.end
        );
        assert!(epoch >= self.last_epoch(), "epochs never decrease along the log");
        if epoch > self.last_epoch() {
            self.epochs.push((epoch, base));
        }
        self.end = end;
        self.unflushed.push_back((write, end));
    }

    pub(crate) fn truncate(&mut self, to: Offset) {
        assert!(
            self.start <= to && to < self.end,
            "truncation to {to} of {}..{}",
            self.start,
            self.end
        );
        self.end = to;
        self.epochs.retain(|(_, first)| *first < to);
        self.durable_end = self.durable_end.min(to);
        // What is written but not durable counts only as far as it stays in the log.
        for (_, end) in &mut self.unflushed {
            *end = (*end).min(to);
        }
        self.generation += 1;
    }

    /// All writes up to this one are on stable media.
    pub(crate) fn on_durable(&mut self, through: WriteId) {
        while let Some((write, end)) = self.unflushed.front().copied() {
            if write > through {
                break;
            }
            self.durable_end = end;
            self.unflushed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn log() -> Log {
        Log::new(
            Offset(0),
            Offset(20),
            vec![(Epoch(1), Offset(0)), (Epoch(3), Offset(5)), (Epoch(4), Offset(12))],
        )
    }

    #[test]
    fn end_of_epoch_names_the_largest_epoch_not_above_the_asked_one() {
        let cases = [(0, 0, 0), (1, 5, 1), (2, 5, 1), (3, 12, 3), (4, 20, 4), (9, 20, 4)];
        for (asked, end, epoch) in cases {
            assert_eq!(
                log().end_of_epoch(Epoch(asked)),
                OffsetAndEpoch::new(Offset(end), Epoch(epoch)),
                "asked {asked}"
            );
        }
        let empty = Log::new(Offset(0), Offset(0), vec![]);
        assert_eq!(empty.end_of_epoch(Epoch(2)), OffsetAndEpoch::default());
    }

    #[test]
    fn a_late_flush_of_truncated_records_does_not_count() {
        let mut log = log();
        log.append(WriteId(1), Epoch(4), Offset(20), Offset(30));
        log.truncate(Offset(8));
        log.append(WriteId(3), Epoch(5), Offset(8), Offset(9));
        assert_eq!(log.durable_end(), Offset(8));
        log.on_durable(WriteId(1));
        assert_eq!(log.durable_end(), Offset(8));
        log.on_durable(WriteId(3));
        assert_eq!(log.durable_end(), Offset(9));
        assert_eq!(log.end_and_epoch(), OffsetAndEpoch::new(Offset(9), Epoch(5)));
        assert_eq!(log.generation(), 1);
    }
}
