//! The log between core and storage: batches encoded once, their bytes kept in memory, answers filled with them.

use bytes::Bytes;
use quorate_core::Offset;
use quorate_core::io::{Batch, Content, Write, WriteId};
use quorate_core::message::{ErrorCode, FetchOutcome, LogRange, Response};
use quorate_rpc::records;
use quorate_storage::{EncodedBatch, StoreWrite, Tail, TailRead};
use quorate_wire::batch::BatchHeader;

/// The end of the log in memory, and how often the log was truncated.
#[derive(Debug)]
pub struct Log {
    tail: Tail,
    generation: u64,
}

/// An answer on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filled {
    /// It can leave, with these batches.
    Ready(Response<LogRange>, Vec<Bytes>),
    /// The batches of this range are on disk alone: read them and call [`Log::fill_cold`].
    Cold(LogRange, Response<LogRange>),
}

impl Log {
    /// A log that ends here and is durable. Of what becomes durable later, this many bytes stay in memory.
    pub fn new(log_end: Offset, tail_bytes: usize) -> Log {
        Log { tail: Tail::new(log_end, tail_bytes), generation: 0 }
    }

    /// The batches in memory.
    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// A write of the core as storage takes it; readers see it from here on. A batch is encoded with this time, in
    /// milliseconds since 1970.
    pub fn submit(&mut self, id: WriteId, write: Write, now_ms: i64) -> StoreWrite {
        match write {
            Write::ElectionState(state) => StoreWrite::ElectionState(state),
            Write::Truncate { to } => {
                self.tail.truncate(to);
                self.generation += 1;
                StoreWrite::Truncate { to }
            }
            Write::Append(batch) => {
                let batch = encode(&batch, now_ms);
                self.tail.append(id, batch.clone());
                StoreWrite::Append(batch)
            }
        }
    }

    /// Every write up to this one is durable.
    pub fn on_durable(&mut self, through: WriteId) {
        self.tail.durable(through);
    }

    /// Fills an answer, a Fetch with the batches of its range.
    pub fn fill(&self, response: Response<LogRange>) -> Filled {
        let range = match &response {
            Response::Fetch(fetch) => match fetch.outcome {
                FetchOutcome::Records(range) if range.from < range.to => range,
                _ => return Filled::Ready(response, Vec::new()),
            },
            _ => return Filled::Ready(response, Vec::new()),
        };
        if range.generation != self.generation {
            return Filled::Ready(moved_on(response), Vec::new());
        }
        let max_bytes = usize::try_from(range.max_bytes).unwrap_or(usize::MAX);
        match self.tail.read(range.from, range.to, max_bytes) {
            TailRead::Hot(records) => Filled::Ready(response, records),
            TailRead::Nothing => Filled::Ready(response, Vec::new()),
            TailRead::Cold => Filled::Cold(range, response),
        }
    }

    /// Fills an answer with the batches that were read for its range; none, if they could not be read.
    pub fn fill_cold(
        &self,
        range: LogRange,
        response: Response<LogRange>,
        records: Vec<Bytes>,
    ) -> (Response<LogRange>, Vec<Bytes>) {
        if range.generation == self.generation {
            (response, records)
        } else {
            (moved_on(response), Vec::new())
        }
    }
}

/// The batches of an answer cannot be read, or too much waits for the disk: an error, after which a fetcher of any
/// make waits before it asks again.
pub fn unreadable(response: Response<LogRange>) -> Response<LogRange> {
    match response {
        Response::Fetch(mut fetch) => {
            fetch.error = ErrorCode::UNKNOWN_SERVER_ERROR;
            fetch.high_watermark = None;
            if let FetchOutcome::Records(range) = &mut fetch.outcome {
                range.to = range.from;
            }
            Response::Fetch(fetch)
        }
        response => response,
    }
}

/// Encodes a batch, once; the same bytes go to the disk, into the tail and into Fetch answers.
fn encode(batch: &Batch, now_ms: i64) -> EncodedBatch {
    let bytes = records::encode(batch, now_ms).expect("the core makes batches that can be encoded");
    let max_timestamp = match &batch.content {
        Content::Encoded(bytes) => {
            BatchHeader::parse(bytes).map_or(now_ms, |header| header.max_timestamp)
        }
        Content::Data(_) | Content::Control(_) => now_ms,
    };
    EncodedBatch { base: batch.base, end: batch.end, epoch: batch.epoch, max_timestamp, bytes }
}

/// The log was truncated before the answer's batches were read: no header may name a leader that did not write
/// the bytes.
fn moved_on(response: Response<LogRange>) -> Response<LogRange> {
    match response {
        Response::Fetch(mut fetch) => {
            fetch.error = ErrorCode::NOT_LEADER_OR_FOLLOWER;
            fetch.high_watermark = None;
            Response::Fetch(fetch)
        }
        response => response,
    }
}
