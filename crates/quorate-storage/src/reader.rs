//! Cold reads: batches that only the disk has, read beside the commit thread.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use quorate_core::Offset;
use quorate_wire::batch::BatchHeader;

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::log::{Log, Shared};
use crate::scan::Scan;
use crate::segment;

/// Reads the log of an open store. Blocks on the disk, so it belongs on a thread of its own.
#[derive(Debug)]
pub struct LogReader<F: FileSystem> {
    shared: Arc<Shared<F>>,
    dir: PathBuf,
}

impl<F: FileSystem> Clone for LogReader<F> {
    fn clone(&self) -> LogReader<F> {
        LogReader { shared: self.shared.clone(), dir: self.dir.clone() }
    }
}

impl<F: FileSystem> LogReader<F> {
    pub(crate) fn new(log: &Log<F>) -> LogReader<F> {
        LogReader { shared: log.shared().clone(), dir: log.dir().to_owned() }
    }

    /// Reads whole batches from the one that holds `from` on, below `to`: at least one if it is written,
    /// and no more than `max_bytes` beyond the first. Batches come from one segment, so there may be
    /// more after them. Nothing comes back if the log was truncated meanwhile: whoever asked has
    /// an old generation of the log anyway.
    ///
    /// # Errors
    ///
    /// Those of the disk; and [`StorageError::Corrupt`] if a batch is not what it was when it was written.
    pub fn read(
        &self,
        from: Offset,
        to: Offset,
        max_bytes: usize,
    ) -> Result<Vec<Bytes>, StorageError> {
        let (file, path, position, size, generation) = {
            let segments = self.shared.read();
            let Some(segment) = segments.list.get(segments.holding(from)) else {
                return Ok(Vec::new());
            };
            if from < segment.base || from >= segment.end {
                return Ok(Vec::new());
            }
            let path = segment::path(&self.dir, segment.base, segment::LOG);
            let position = segment.position_before(from);
            (segment.file.clone(), path, position, segment.size, segments.generation)
        };
        let mut scan =
            Scan::new(&*file, &path, position, size).in_pieces_of(max_bytes.saturating_add(8192));
        let result = collect(&mut scan, from, to, max_bytes);
        if self.shared.read().generation != generation {
            return Ok(Vec::new());
        }
        result
    }
}

impl<F: FileSystem> LogReader<F> {
    /// Whether the log can be cut here: a batch begins at this offset, or the log ends there.
    ///
    /// # Errors
    ///
    /// As [`read`](LogReader::read).
    pub fn is_boundary(&self, offset: Offset) -> Result<bool, StorageError> {
        let end = self.shared.read().list.last().map(|segment| segment.end);
        if Some(offset) == end {
            return Ok(true);
        }
        let found = self.read(offset, Offset(i64::MAX), 0)?;
        let first = found.first().and_then(|bytes| BatchHeader::parse(bytes).ok());
        Ok(first.is_some_and(|header| header.base_offset == offset.0))
    }
}

fn collect<F: crate::fs::File>(
    scan: &mut Scan<'_, F>,
    from: Offset,
    to: Offset,
    max_bytes: usize,
) -> Result<Vec<Bytes>, StorageError> {
    let mut batches = Vec::new();
    let mut bytes = 0;
    loop {
        let batch = match scan.next() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            // It comes again when it is the first to be read.
            Err(_) if !batches.is_empty() => break,
            Err(error) => return Err(error),
        };
        if batch.end() <= from {
            continue;
        }
        bytes += batch.bytes().len();
        if batch.end() > to || (!batches.is_empty() && bytes > max_bytes) {
            break;
        }
        batches.push(batch.bytes().clone());
        if batch.end() == to {
            break;
        }
    }
    Ok(batches)
}
