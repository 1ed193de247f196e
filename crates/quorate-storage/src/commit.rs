//! The commit loop, without thread or clock: what is written and synced when.
//!
//! The table of write barriers at the top of this crate is implemented here and in `log.rs`, nowhere else.

use std::collections::VecDeque;
use std::path::PathBuf;

use bytes::Bytes;
use quorate_core::io::{ElectionState, WriteId};
use quorate_core::{Epoch, Offset};

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::log::Log;
use crate::quorum_state;

/// A write as storage does it: the core's `Write`, with every batch encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreWrite {
    /// Replace the quorum-state file.
    ElectionState(ElectionState),
    /// Append this batch at the log end.
    Append(EncodedBatch),
    /// Cut the log so that it ends here, which must be between two batches.
    Truncate {
        /// The new log end.
        to: Offset,
    },
}

impl StoreWrite {
    /// How many bytes it takes in memory while it waits, about.
    pub fn bytes(&self) -> usize {
        match self {
            StoreWrite::Append(batch) => batch.bytes.len(),
            StoreWrite::ElectionState(_) | StoreWrite::Truncate { .. } => 256,
        }
    }
}

/// A batch and what the log must know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedBatch {
    /// The offset of its first record.
    pub base: Offset,
    /// The offset after its last record.
    pub end: Offset,
    /// The epoch of the leader that made it.
    pub epoch: Epoch,
    /// Its largest timestamp, in milliseconds since 1970.
    pub max_timestamp: i64,
    /// Its encoding.
    pub bytes: Bytes,
}

/// Does writes in order. After an error it is closed for good.
#[derive(Debug)]
pub struct Committer<F: FileSystem> {
    fs: F,
    log_dir: PathBuf,
    log: Log<F>,
    failed: Option<StorageError>,
}

/// One group's worth of appends; a sync in between does no harm, a batch list without end does.
const MAX_GROUP_BYTES: usize = 32 << 20;

impl<F: FileSystem> Committer<F> {
    pub(crate) fn new(fs: F, log_dir: PathBuf, log: Log<F>) -> Committer<F> {
        Committer { fs, log_dir, log, failed: None }
    }

    pub(crate) fn log(&self) -> &Log<F> {
        &self.log
    }

    /// Takes the first writes that may share a sync, all appends in a row or one other write, and does
    /// them. Returns the last of them once it and all before it are on stable media. An empty queue
    /// is a mistake of the caller.
    ///
    /// # Errors
    ///
    /// The first error closes the committer: it comes back from every later call, and nothing more is
    /// written. A sync is never tried again, since the second one may succeed without the data.
    pub fn run(
        &mut self,
        queue: &mut VecDeque<(WriteId, StoreWrite)>,
    ) -> Result<WriteId, StorageError> {
        self.unless_failed(|this| this.do_first(queue))
    }

    /// Writes what may lag behind: the index files of rolled segments and `leader-epoch-checkpoint`.
    /// Call it when there is nothing else to do.
    ///
    /// # Errors
    ///
    /// As [`run`](Committer::run).
    pub fn tidy(&mut self) -> Result<(), StorageError> {
        self.unless_failed(|this| this.log.tidy())
    }

    /// Whether [`tidy`](Committer::tidy) has something to do.
    pub fn is_untidy(&self) -> bool {
        self.failed.is_none() && self.log.is_untidy()
    }

    /// Leaves the directory as Kafka does when it stops: with complete index files.
    ///
    /// # Errors
    ///
    /// As [`run`](Committer::run).
    pub fn close(&mut self) -> Result<(), StorageError> {
        self.unless_failed(|this| this.log.close())
    }

    fn unless_failed<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = work(self);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    fn do_first(
        &mut self,
        queue: &mut VecDeque<(WriteId, StoreWrite)>,
    ) -> Result<WriteId, StorageError> {
        let (mut last, first) = queue.pop_front().expect("there is a write to do");
        match first {
            StoreWrite::ElectionState(state) => {
                quorum_state::write(&self.fs, &self.log_dir, &state)?;
            }
            StoreWrite::Truncate { to } => self.log.truncate(to)?,
            StoreWrite::Append(batch) => {
                let mut bytes = batch.bytes.len();
                let mut group = vec![batch];
                while bytes < MAX_GROUP_BYTES
                    && let Some((id, StoreWrite::Append(batch))) =
                        queue.pop_front_if(|(_, write)| matches!(write, StoreWrite::Append(_)))
                {
                    bytes += batch.bytes.len();
                    last = id;
                    group.push(batch);
                }
                self.log.append(&group)?;
            }
        }
        Ok(last)
    }
}
