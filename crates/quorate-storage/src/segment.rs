//! One segment: a `.log` file of batches, and its sparse index in memory.
//!
//! The index serves cold reads; its content goes to `.index` and `.timeindex` when the segment is rolled
//! or closed, for Kafka's tools. Nobody trusts those files: Kafka too rebuilds them at each start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_core::Offset;

use crate::error::StorageError;
use crate::fs::{FileSystem, OpenHow};

/// What the log notes of a batch that it wrote or read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchPlace {
    pub(crate) end: Offset,
    pub(crate) max_timestamp: i64,
    pub(crate) position: u64,
    pub(crate) len: u64,
}

/// A segment as the commit thread and the readers know it.
#[derive(Debug)]
pub(crate) struct Segment<F: FileSystem> {
    pub(crate) base: Offset,
    pub(crate) end: Offset,
    /// Where its last batch ends in the `.log` file; what is beyond it does not count.
    pub(crate) size: u64,
    /// The length of the `.log` file; zeros from `size` on.
    pub(crate) file_len: u64,
    pub(crate) file: Arc<F::File>,
    /// Roll after this many milliseconds of record time, counted from here.
    pub(crate) first_timestamp: Option<i64>,
    /// For some batches, ascending: the last offset, and the position at which the batch starts.
    offsets: Vec<(Offset, u64)>,
    /// The largest timestamp so far, and the last offset of its batch; ascending in both.
    times: Vec<(i64, Offset)>,
    max_timestamp: Option<(i64, Offset)>,
    bytes_since_entry: u64,
}

/// Kafka's `index.interval.bytes`, which cannot be configured for this log.
const INDEX_INTERVAL_BYTES: u64 = 4096;

impl<F: FileSystem> Segment<F> {
    pub(crate) fn new(base: Offset, file: F::File) -> Segment<F> {
        Segment {
            base,
            end: base,
            size: 0,
            file_len: 0,
            file: Arc::new(file),
            first_timestamp: None,
            offsets: Vec::new(),
            times: Vec::new(),
            max_timestamp: None,
            bytes_since_entry: 0,
        }
    }

    /// Creates the files of an empty segment. They are durable once the directory is synced.
    pub(crate) fn create(fs: &F, dir: &Path, base: Offset) -> Result<Segment<F>, StorageError> {
        // Kafka handles a damaged segment wrongly if its index file is missing, so that comes first.
        for suffix in [INDEX, TIME_INDEX] {
            let path = path(dir, base, suffix);
            fs.open(&path, OpenHow::Truncate).map_err(StorageError::io("create", &path))?;
        }
        let path = path(dir, base, LOG);
        let file = fs.open(&path, OpenHow::Truncate).map_err(StorageError::io("create", &path))?;
        Ok(Segment::new(base, file))
    }

    /// Notes a batch at the end of the segment.
    pub(crate) fn add(&mut self, batch: BatchPlace) {
        let last = Offset(batch.end.0 - 1);
        self.first_timestamp.get_or_insert(batch.max_timestamp);
        if self.max_timestamp.is_none_or(|(max, _)| batch.max_timestamp > max) {
            self.max_timestamp = Some((batch.max_timestamp, last));
        }
        if self.bytes_since_entry > INDEX_INTERVAL_BYTES {
            self.offsets.push((last, batch.position));
            if let Some(max) = self.max_timestamp
                && self.times.last().is_none_or(|entry| max.0 > entry.0)
            {
                self.times.push(max);
            }
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += batch.len;
        self.size = batch.position + batch.len;
        self.file_len = self.file_len.max(self.size);
        self.end = batch.end;
    }

    /// Forgets everything from this batch boundary on.
    pub(crate) fn truncate(&mut self, to: Offset, position: u64) {
        self.end = to;
        (self.size, self.file_len) = (position, position);
        self.offsets.retain(|(last, _)| *last < to);
        self.times.retain(|(_, last)| *last < to);
        self.max_timestamp = self.times.last().copied();
        self.bytes_since_entry = position - self.offsets.last().map_or(0, |(_, at)| *at);
        if position == 0 {
            self.first_timestamp = None;
        }
    }

    /// A position at or before the batch that holds this offset, from which batches can be read.
    pub(crate) fn position_before(&self, offset: Offset) -> u64 {
        self.entry_before(offset).map_or(0, |(_, position)| position)
    }

    /// The last offset of the batch at that position, and the position; none at the start of the segment.
    pub(crate) fn entry_before(&self, offset: Offset) -> Option<(Offset, u64)> {
        let after = self.offsets.partition_point(|(last, _)| *last <= offset);
        after.checked_sub(1).and_then(|i| self.offsets.get(i)).copied()
    }

    /// The content of the `.index` file: of each entry, relative offset and position.
    pub(crate) fn index_content(&self) -> Vec<u8> {
        let entries = self.offsets.iter().filter_map(|(last, position)| {
            Some((i32::try_from(last.0 - self.base.0).ok()?, i32::try_from(*position).ok()?))
        });
        entries.flat_map(|(last, at)| [last.to_be_bytes(), at.to_be_bytes()]).flatten().collect()
    }

    /// The content of the `.timeindex` file: of each entry, timestamp and relative offset.
    pub(crate) fn time_index_content(&self) -> Vec<u8> {
        let last = self.max_timestamp.filter(|max| self.times.last() != Some(max));
        let mut content = Vec::new();
        for (timestamp, offset) in self.times.iter().copied().chain(last) {
            if let Ok(relative) = i32::try_from(offset.0 - self.base.0) {
                content.extend(timestamp.to_be_bytes());
                content.extend(relative.to_be_bytes());
            }
        }
        content
    }
}

pub(crate) const LOG: &str = "log";
pub(crate) const INDEX: &str = "index";
pub(crate) const TIME_INDEX: &str = "timeindex";
pub(crate) const PRODUCER_SNAPSHOT: &str = "snapshot";

/// `00000000000000000042.log` and its like.
pub(crate) fn path(dir: &Path, base: Offset, suffix: &str) -> PathBuf {
    dir.join(format!("{:020}.{suffix}", base.0))
}

/// The base offset and the suffix of a segment file's name.
pub(crate) fn parse_name(name: &str) -> Option<(Offset, &str)> {
    let (digits, suffix) = name.split_once('.')?;
    if digits.len() != 20 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some((Offset(digits.parse().ok()?), suffix))
}
