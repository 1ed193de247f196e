//! Checkpoint files: what a formatter or a snapshot writes, read whole.
//!
//! Batches in a row: control records first, data records, a footer last (KIP-630). Offsets count from 0
//! through the file and have nothing to do with the log's.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use quorate_core::{Offset, OffsetAndEpoch};
use quorate_wire::batch::control_records;
use quorate_wire::control::ControlRecord;

use crate::error::StorageError;
use crate::fs::{File, FileSystem, OpenHow};
use crate::scan::{LogBatch, Scan};
use crate::small_file;
use crate::store::BOOTSTRAP_FILE;

/// The content of a checkpoint.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Checkpoint {
    /// Its control records, header and footer too.
    pub control: Vec<ControlRecord>,
    /// The values of its data records.
    pub data: Vec<Bytes>,
}

/// The end offset and epoch of the checkpoint that a formatter writes.
pub const BOOTSTRAP: OffsetAndEpoch =
    OffsetAndEpoch { offset: Offset(0), epoch: quorate_core::Epoch(0) };

/// `00000000000000000042-0000000003.checkpoint` for `42@3`.
pub fn file_name(id: OffsetAndEpoch) -> String {
    format!("{:020}-{:010}.checkpoint", id.offset.0, id.epoch.0)
}

/// The id in the name of a checkpoint; `None` for any other name.
pub fn parse_file_name(name: &str) -> Option<OffsetAndEpoch> {
    let (offset, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
    let digits = |text: &str, n| text.len() == n && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(offset, 20) || !digits(epoch, 10) {
        return None;
    }
    let offset = Offset(offset.parse().ok()?);
    Some(OffsetAndEpoch::new(offset, quorate_core::Epoch(epoch.parse().ok()?)))
}

/// Writes the `bootstrap.checkpoint` of Kafka 4.0 to 4.3 into a log directory, durably.
///
/// # Errors
///
/// Those of the disk.
pub fn write_bootstrap<F: FileSystem>(
    fs: &F,
    dir: &Path,
    batches: &[Bytes],
) -> Result<(), StorageError> {
    small_file::replace(fs, &dir.join(BOOTSTRAP_FILE), &batches.concat())
}

/// Reads a checkpoint, also the `bootstrap.checkpoint` of Kafka 4.0 to 4.3; `None` if there is none.
///
/// # Errors
///
/// A batch that does not read or has no place there, with its position.
pub fn read<F: FileSystem>(fs: &F, path: &Path) -> Result<Option<Checkpoint>, StorageError> {
    let file = match fs.open(path, OpenHow::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::io("open", path)(error)),
    };
    let size = file.size().map_err(StorageError::io("read", path))?;
    let mut scan = Scan::new(&file, path, 0, size);
    let mut checkpoint = Checkpoint::default();
    let mut order = Order::default();
    while let Some(batch) = scan.next()? {
        let refuse = |reason| StorageError::corrupt(path, batch.position(), reason);
        let control = order.add(&batch).map_err(refuse)?;
        if !batch.batch().is_control() {
            checkpoint.data.extend(scan.values(&batch)?);
        }
        checkpoint.control.extend(control);
    }
    order.end().map_err(|reason| StorageError::corrupt(path, size, reason))?;
    Ok(Some(checkpoint))
}

/// What batches make a checkpoint: offsets from 0 on, the header first, the footer last.
///
/// Differs from Kafka, which reads one without a footer: the first voters may be missing from a part.
#[derive(Debug, Default)]
pub(crate) struct Order {
    end: Offset,
    /// The last batch's last record, if that is a control batch.
    last: Option<ControlRecord>,
    has_begun: bool,
}

impl Order {
    /// Takes the next batch and gives its control records, or says what is wrong with it.
    pub(crate) fn add(&mut self, batch: &LogBatch) -> Result<Vec<ControlRecord>, String> {
        if batch.base() != self.end {
            return Err(format!("the batch begins at offset {}, not {}", batch.base(), self.end));
        }
        batch.batch().raft_check().map_err(|error| error.to_string())?;
        let control = control_records(batch.batch()).map_err(|error| error.to_string())?;
        let control: Vec<ControlRecord> = control.into_iter().map(|(_, record)| record).collect();
        if !self.has_begun && !matches!(control.first(), Some(ControlRecord::SnapshotHeader(_))) {
            return Err("the first record is no snapshot header".to_owned());
        }
        self.has_begun = true;
        self.end = batch.end();
        self.last = control.last().cloned();
        Ok(control)
    }

    /// Whether the batches so far are all, or what is missing.
    pub(crate) fn end(&self) -> Result<(), String> {
        match self.last {
            Some(ControlRecord::SnapshotFooter(_)) => Ok(()),
            _ => Err("the file ends without a snapshot footer".to_owned()),
        }
    }
}

/// Writes a checkpoint durably into a log directory: beside, synced, made read-only, renamed. The
/// batches are a control batch that begins with the header, data batches, and one with the footer.
///
/// # Errors
///
/// Those of the disk.
pub fn write<F: FileSystem>(
    fs: &F,
    log_dir: &Path,
    id: OffsetAndEpoch,
    batches: &[Bytes],
) -> Result<PathBuf, StorageError> {
    let name = file_name(id);
    let path = log_dir.join(&name);
    // The form of Kafka's own unfinished snapshots, which it removes at its start, as we do. It must not
    // open any other file that ends so.
    let part = log_dir.join(name.replace(".checkpoint", "-0.checkpoint.part"));
    // One that is left from an attempt before is read-only.
    let _ = fs.remove(&part);
    let file = fs.open(&part, OpenHow::Truncate).map_err(StorageError::io("create", &part))?;
    let slices: Vec<IoSlice<'_>> = batches.iter().map(|batch| IoSlice::new(batch)).collect();
    file.write_all_at(&slices, 0).map_err(StorageError::io("write", &part))?;
    file.sync_data().map_err(StorageError::io("sync", &part))?;
    file.set_read_only().map_err(StorageError::io("make read-only", &part))?;
    fs.rename(&part, &path).map_err(StorageError::io("rename to", &path))?;
    small_file::sync_parent(fs, &path)?;
    Ok(path)
}
