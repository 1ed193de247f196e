//! Reading batches one after another from a file, each checked.

use std::fmt;
use std::path::Path;

use bytes::Bytes;
use quorate_core::{Epoch, Offset};
use quorate_wire::batch::{Batch, BatchError, BatchHeader, HEADER_LEN, control_records};
use quorate_wire::control::ControlRecord;

use crate::error::StorageError;
use crate::fs::File;

/// A whole batch of a log or a checkpoint, whose CRC is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBatch {
    position: u64,
    batch: Batch,
}

impl LogBatch {
    /// The offset of its first record.
    pub fn base(&self) -> Offset {
        Offset(self.batch.base_offset())
    }

    /// The offset after its last record.
    pub fn end(&self) -> Offset {
        Offset(self.batch.end_offset())
    }

    /// The epoch of the leader that made it.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.batch.leader_epoch())
    }

    /// At which byte of its file it begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The batch itself.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Its encoding.
    pub fn bytes(&self) -> &Bytes {
        self.batch.bytes()
    }
}

/// Reads the batches of a file one after another.
pub(crate) struct Scan<'a, F> {
    file: &'a F,
    path: &'a Path,
    /// Where the next batch begins.
    position: u64,
    end: u64,
    /// What was read ahead, from `position` on.
    ahead: Bytes,
    chunk: usize,
}

/// How much is read at once.
const CHUNK: usize = 1 << 20;

impl<'a, F: File> Scan<'a, F> {
    /// Reads from one position, where a batch begins, to another, where one ends.
    pub(crate) fn new(file: &'a F, path: &'a Path, position: u64, end: u64) -> Scan<'a, F> {
        Scan { file, path, position, end, ahead: Bytes::new(), chunk: CHUNK }
    }

    /// Reads smaller pieces at once: what is wanted is about this large.
    pub(crate) fn in_pieces_of(mut self, bytes: usize) -> Scan<'a, F> {
        self.chunk = bytes.clamp(4096, CHUNK);
        self
    }

    /// Where the next batch begins.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next batch, `None` at the end. After an error the scan stays where it is.
    ///
    /// # Errors
    ///
    /// [`StorageError::Corrupt`] if there is no whole batch with the right CRC; those of the disk.
    pub(crate) fn next(&mut self) -> Result<Option<LogBatch>, StorageError> {
        self.parse_next(Batch::parse)
    }

    /// The next batch, whatever its CRC says.
    pub(crate) fn next_unchecked(&mut self) -> Result<Option<LogBatch>, StorageError> {
        self.parse_next(Batch::parse_unchecked)
    }

    fn parse_next(
        &mut self,
        parse: fn(&Bytes) -> Result<(Batch, Bytes), BatchError>,
    ) -> Result<Option<LogBatch>, StorageError> {
        if self.position >= self.end {
            return Ok(None);
        }
        if self.ahead.len() < HEADER_LEN {
            self.read_ahead(self.chunk)?;
        }
        let header = BatchHeader::parse(&self.ahead).map_err(|error| self.corrupt(&error))?;
        let len = header.total_len();
        if len > self.ahead.len() {
            let left = self.end - self.position;
            if len as u64 > left {
                let available = usize::try_from(left).unwrap_or(usize::MAX);
                return Err(self.corrupt(&BatchError::Incomplete { needed: len, available }));
            }
            self.read_ahead(len.max(self.chunk))?;
        }
        let (batch, rest) = parse(&self.ahead).map_err(|error| self.corrupt(&error))?;
        let position = self.position;
        self.position += batch.bytes().len() as u64;
        self.ahead = rest;
        Ok(Some(LogBatch { position, batch }))
    }

    /// After an error, beside a writer: reads anew what was no batch. Whether there is something else by now.
    pub(crate) fn has_changed(&mut self, end: u64) -> Result<bool, StorageError> {
        let was = std::mem::take(&mut self.ahead);
        let grew = end > self.end;
        self.end = self.end.max(end);
        self.read_ahead(was.len().max(HEADER_LEN))?;
        Ok(grew || self.ahead != was)
    }

    /// The control records of a batch of this file, with their offsets.
    ///
    /// # Errors
    ///
    /// [`StorageError::Corrupt`] if one does not decode, or its offset has no place in the batch: what it says would
    /// count from there on.
    pub(crate) fn control_records(
        &self,
        batch: &LogBatch,
    ) -> Result<Vec<(Offset, ControlRecord)>, StorageError> {
        let records =
            control_records(&batch.batch).map_err(|error| self.bad_records(batch, error))?;
        let mut next = batch.base().0;
        for (offset, _) in &records {
            if *offset < next || *offset >= batch.end().0 {
                return Err(self.bad_records(batch, "offsets do not ascend within the batch"));
            }
            next = *offset + 1;
        }
        Ok(records.into_iter().map(|(offset, record)| (Offset(offset), record)).collect())
    }

    /// The values of a data batch of this file.
    ///
    /// # Errors
    ///
    /// [`StorageError::Corrupt`] if a record does not decode, or has no value.
    pub(crate) fn values(&self, batch: &LogBatch) -> Result<Vec<Bytes>, StorageError> {
        let records = batch.batch.records().map_err(|error| self.bad_records(batch, error))?;
        records
            .map(|record| {
                let record = record.map_err(|error| self.bad_records(batch, error))?;
                match record.value {
                    Some(value) => Ok(batch.bytes().slice_ref(value)),
                    None => Err(self.bad_records(batch, "a record has no value")),
                }
            })
            .collect()
    }

    fn bad_records(&self, batch: &LogBatch, reason: impl ToString) -> StorageError {
        StorageError::corrupt(self.path, batch.position, reason)
    }

    fn corrupt(&self, error: &BatchError) -> StorageError {
        StorageError::corrupt(self.path, self.position, error)
    }

    fn read_ahead(&mut self, wanted: usize) -> Result<(), StorageError> {
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let mut buffer = vec![0; wanted.min(left)];
        let n = self
            .file
            .read_at(&mut buffer, self.position)
            .map_err(StorageError::io("read", self.path))?;
        buffer.truncate(n);
        self.ahead = Bytes::from(buffer);
        Ok(())
    }
}

/// Where the zeros begin that are the last bytes of this part of a file; `to` if there are none.
pub(crate) fn zeros_from<F: File>(
    file: &F,
    path: &Path,
    from: u64,
    to: u64,
) -> Result<u64, StorageError> {
    const PIECE: usize = 64 << 10;
    static ZEROS: [u8; PIECE] = [0; PIECE];
    let mut end = to;
    let mut buffer = vec![0; PIECE];
    while end > from {
        let wanted = usize::try_from(end - from).unwrap_or(usize::MAX).min(buffer.len());
        let piece = buffer.get_mut(..wanted).unwrap_or_default();
        let start = end - piece.len() as u64;
        let n = file.read_at(piece, start).map_err(StorageError::io("read", path))?;
        // Beyond what was read the file has become shorter, and has nothing.
        let read = piece.get(..n).unwrap_or_default();
        if Some(read) == ZEROS.get(..n) {
            end = start;
            continue;
        }
        if let Some(last) = read.iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(end)
}

impl<F> fmt::Debug for Scan<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scan of {} at {}", self.path.display(), self.position)
    }
}
