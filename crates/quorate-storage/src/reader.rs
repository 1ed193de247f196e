//! Cold reads: batches that only the disk has, read beside the commit thread.
//!
//! A batch's CRC covers neither its offset nor its epoch: both are compared with what the log knows of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use quorate_core::{Epoch, Offset};
use quorate_wire::batch::BatchHeader;

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::log::{Log, Shared};
use crate::scan::{LogBatch, Scan};
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
        let (file, path, position, size, generation, places) = {
            let segments = self.shared.read();
            let Some(segment) = segments.list.get(segments.holding(from)) else {
                return Ok(Vec::new());
            };
            if from < segment.base || from >= segment.end {
                return Ok(Vec::new());
            }
            let path = segment::path(&self.dir, segment.base, segment::LOG);
            let entry = segment.entry_before(from);
            let position = entry.map_or(0, |(_, position)| position);
            let first = segments.epochs.partition_point(|(_, start)| *start <= segment.base);
            let places = Places {
                epochs: segments.epochs.iter().skip(first.saturating_sub(1)).copied().collect(),
                next: entry.is_none().then_some(segment.base),
                first_end: entry.map(|(last, _)| last.plus(1)),
            };
            (segment.file.clone(), path, position, segment.size, segments.generation, places)
        };
        let mut scan =
            Scan::new(&*file, &path, position, size).in_pieces_of(max_bytes.saturating_add(8192));
        let result = collect(&mut scan, &path, places, from, to, max_bytes);
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

/// Where batches belong.
struct Places {
    /// Each epoch with its first offset, ascending.
    epochs: Vec<(Epoch, Offset)>,
    /// Where the next batch begins, or else where it ends.
    next: Option<Offset>,
    first_end: Option<Offset>,
}

impl Places {
    /// Whether a batch is where it belongs.
    fn check(&mut self, batch: &LogBatch) -> Result<(), String> {
        let (base, end, epoch) = (batch.base(), batch.end(), batch.epoch());
        if let Some(next) = self.next
            && base != next
        {
            return Err(format!("the batch begins at offset {base}, not {next}"));
        }
        if let Some(due) = self.first_end.take()
            && end != due
        {
            return Err(format!("the batch ends at offset {end}, not {due}"));
        }
        self.next = Some(end);
        let due = self.epochs.iter().rfind(|(_, start)| *start <= base);
        match due {
            Some((due, _)) if *due != epoch => {
                Err(format!("the batch is of epoch {epoch}, the log has epoch {due} there"))
            }
            _ => Ok(()),
        }
    }
}

fn collect<F: crate::fs::File>(
    scan: &mut Scan<'_, F>,
    path: &Path,
    mut places: Places,
    from: Offset,
    to: Offset,
    max_bytes: usize,
) -> Result<Vec<Bytes>, StorageError> {
    let mut batches = Vec::new();
    let mut bytes = 0;
    loop {
        let next = scan.next().and_then(|next| match next {
            Some(batch) => match places.check(&batch) {
                Ok(()) => Ok(Some(batch)),
                Err(reason) => Err(StorageError::corrupt(path, batch.position(), reason)),
            },
            None => Ok(None),
        });
        let batch = match next {
            Ok(Some(batch)) => batch,
            Ok(None) if batches.is_empty() => {
                let reason = format!("offset {from} is not there");
                return Err(StorageError::corrupt(path, scan.position(), reason));
            }
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
