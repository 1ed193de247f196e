//! The end of the log in memory, owned by the driver.
//!
//! Holds the very bytes that went to the disk: everything that is not durable yet, so that nobody reads
//! what is still on its way, and the most recent batches beyond that.

use std::collections::VecDeque;

use bytes::Bytes;
use quorate_core::Offset;
use quorate_core::io::WriteId;

use crate::commit::EncodedBatch;

/// The most recent batches of the log.
#[derive(Debug)]
pub struct Tail {
    batches: VecDeque<(WriteId, EncodedBatch)>,
    /// Where the log ends.
    end: Offset,
    bytes: usize,
    /// How many bytes of durable batches stay.
    keep_bytes: usize,
    durable: WriteId,
}

/// What [`Tail::read`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TailRead {
    /// These whole batches, at least one.
    Hot(Vec<Bytes>),
    /// The batches are on disk alone.
    Cold,
    /// The log has nothing in this range.
    Nothing,
}

impl Tail {
    /// The tail of a log that ends here and is durable. Of what becomes durable later, this many bytes
    /// stay.
    pub fn new(log_end: Offset, keep_bytes: usize) -> Tail {
        Tail {
            batches: VecDeque::new(),
            end: log_end,
            bytes: 0,
            keep_bytes,
            durable: WriteId::default(),
        }
    }

    /// Adds the batch of a write that was submitted. Its base must be the log end.
    pub fn append(&mut self, write: WriteId, batch: EncodedBatch) {
        assert_eq!(batch.base, self.end, "a batch is appended at the log end");
        self.end = batch.end;
        self.bytes += batch.bytes.len();
        self.batches.push_back((write, batch));
        self.shrink();
    }

    /// Forgets what is at or above the new log end, which must be between two batches.
    pub fn truncate(&mut self, to: Offset) {
        while let Some((_, last)) = self.batches.back()
            && last.end > to
        {
            self.bytes -= last.bytes.len();
            self.batches.pop_back();
        }
        self.end = self.end.min(to);
    }

    /// Every write up to this one is durable: old batches may go.
    pub fn durable(&mut self, through: WriteId) {
        self.durable = self.durable.max(through);
        self.shrink();
    }

    /// Reads whole batches from the one that holds `from` on, below `to`: at least one, and no more than
    /// `max_bytes` beyond the first.
    pub fn read(&self, from: Offset, to: Offset, max_bytes: usize) -> TailRead {
        let to = to.min(self.end);
        if from >= to {
            return TailRead::Nothing;
        }
        let first = self.batches.partition_point(|(_, batch)| batch.end <= from);
        let mut bytes = 0;
        let mut hot = Vec::new();
        for (_, batch) in self.batches.range(first..) {
            if hot.is_empty() && batch.base > from {
                return TailRead::Cold;
            }
            bytes += batch.bytes.len();
            if batch.end > to || (!hot.is_empty() && bytes > max_bytes) {
                break;
            }
            hot.push(batch.bytes.clone());
        }
        // The first batch was there, so an empty answer means that it ends beyond `to`.
        match (hot.is_empty(), first < self.batches.len()) {
            (false, _) => TailRead::Hot(hot),
            (true, true) => TailRead::Nothing,
            (true, false) => TailRead::Cold,
        }
    }

    /// Whether the log can be cut here: a batch begins at this offset, or the log ends there. `None` if it is too
    /// far back for this memory.
    pub fn is_boundary(&self, offset: Offset) -> Option<bool> {
        if offset == self.end {
            return Some(true);
        }
        let first = self.batches.partition_point(|(_, batch)| batch.end <= offset);
        let (_, batch) = self.batches.get(first)?;
        (batch.base <= offset).then_some(batch.base == offset)
    }

    /// How many bytes of batches it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn shrink(&mut self) {
        while let Some((write, first)) = self.batches.front()
            && *write <= self.durable
            && self.bytes - first.bytes.len() >= self.keep_bytes
        {
            self.bytes -= first.bytes.len();
            self.batches.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Epoch;

    use super::*;

    fn batch(base: i64, end: i64, len: usize) -> EncodedBatch {
        EncodedBatch {
            base: Offset(base),
            end: Offset(end),
            epoch: Epoch(1),
            max_timestamp: 0,
            bytes: Bytes::from(vec![0; len]),
        }
    }

    fn hot(tail: &Tail, from: i64, to: i64, max: usize) -> Vec<usize> {
        match tail.read(Offset(from), Offset(to), max) {
            TailRead::Hot(batches) => batches.iter().map(Bytes::len).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keeps_what_is_not_durable_and_some_of_the_rest() {
        let mut tail = Tail::new(Offset(10), 100);
        for i in 0..5u32 {
            let base = 10 + 2 * i64::from(i);
            tail.append(WriteId(u64::from(i) + 1), batch(base, base + 2, 60));
        }
        assert_eq!(tail.bytes(), 300, "nothing is durable");
        tail.durable(WriteId(1));
        assert_eq!(tail.bytes(), 240);
        tail.durable(WriteId(5));
        assert_eq!(tail.bytes(), 120, "a hundred bytes stay");
        assert_eq!(tail.read(Offset(15), Offset(20), 1000), TailRead::Cold);
        assert_eq!(hot(&tail, 16, 20, 1000), [60, 60]);
    }

    #[test]
    fn reads_whole_batches_at_least_one() {
        let mut tail = Tail::new(Offset(0), 1000);
        tail.append(WriteId(1), batch(0, 4, 10));
        tail.append(WriteId(2), batch(4, 5, 20));
        tail.append(WriteId(3), batch(5, 9, 30));
        assert_eq!(hot(&tail, 0, 9, 1), [10]);
        assert_eq!(hot(&tail, 0, 9, 30), [10, 20]);
        assert_eq!(hot(&tail, 3, 9, 1000), [10, 20, 30], "from inside a batch: the whole batch");
        assert_eq!(hot(&tail, 0, 5, 1000), [10, 20], "nothing beyond `to`");
        let boundary = |offset| tail.is_boundary(Offset(offset));
        assert_eq!(
            [boundary(0), boundary(2), boundary(4), boundary(8)],
            [Some(true), Some(false), Some(true), Some(false)]
        );
        assert_eq!(
            [boundary(9), Tail::new(Offset(9), 0).is_boundary(Offset(4))],
            [Some(true), None]
        );
        assert_eq!(tail.read(Offset(9), Offset(20), 1000), TailRead::Nothing);
    }

    #[test]
    fn forgets_what_was_truncated() {
        let mut tail = Tail::new(Offset(0), 1000);
        tail.append(WriteId(1), batch(0, 4, 10));
        tail.append(WriteId(2), batch(4, 5, 20));
        tail.truncate(Offset(4));
        assert_eq!(tail.read(Offset(4), Offset(9), 1000), TailRead::Nothing);
        tail.append(WriteId(4), batch(4, 6, 30));
        assert_eq!(hot(&tail, 0, 9, 1000), [10, 30]);
        assert_eq!(tail.bytes(), 40);
    }

    #[test]
    fn a_truncation_below_the_tail_leaves_the_rest_to_the_disk() {
        let mut tail = Tail::new(Offset(10), 1000);
        tail.append(WriteId(1), batch(10, 11, 10));
        tail.truncate(Offset(6));
        tail.append(WriteId(3), batch(6, 8, 20));
        assert_eq!(tail.read(Offset(3), Offset(8), 1000), TailRead::Cold);
        assert_eq!(hot(&tail, 6, 8, 1000), [20]);
    }
}
