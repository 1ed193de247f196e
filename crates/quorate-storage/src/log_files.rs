//! Reading a log without opening it for writing: for tools and tests. Takes no lock, changes nothing, and
//! may run beside a live node.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_core::Offset;
use quorate_wire::batch::{BatchError, BatchHeader, HEADER_LEN};

use crate::error::StorageError;
use crate::fs::{File, FileSystem, OpenHow};
use crate::recovery::written_to;
use crate::scan::{LogBatch, Scan, zeros_from};
use crate::segment;

/// A batch and the file that it is in.
#[derive(Clone, Debug)]
pub struct FoundBatch {
    /// The segment.
    pub path: Arc<PathBuf>,
    /// The batch, with its position.
    pub batch: LogBatch,
}

/// The batches of all segments in a log directory (`__cluster_metadata-0`), in order. The iterator ends
/// after its first error: a torn end of a log that is written to, or was, is one too. Zeros at the end are room that
/// a node has made for batches to come.
///
/// # Errors
///
/// The directory cannot be listed.
pub fn read_log<F: FileSystem>(fs: &F, log_dir: &Path) -> Result<LogFiles<F>, StorageError> {
    let names = fs.list(log_dir).map_err(StorageError::io("list", log_dir))?;
    let mut bases: Vec<Offset> = names
        .iter()
        .filter_map(|name| match segment::parse_name(name) {
            Some((base, segment::LOG)) => Some(base),
            _ => None,
        })
        .collect();
    bases.sort_unstable();
    bases.reverse();
    Ok(LogFiles { fs: fs.clone(), dir: log_dir.to_owned(), later: bases, current: None })
}

/// See [`read_log`].
#[derive(Debug)]
pub struct LogFiles<F: FileSystem> {
    fs: F,
    dir: PathBuf,
    /// Segments to come, the next one last.
    later: Vec<Offset>,
    current: Option<BatchFile<F>>,
}

/// The batches of one file, a segment or a checkpoint, one after another.
#[derive(Debug)]
pub struct BatchFile<F: FileSystem> {
    path: Arc<PathBuf>,
    file: F::File,
    /// Of a segment, where zeros began that ended it when it was opened: they are room for more, and whoever writes there
    /// meanwhile is not followed.
    written: Option<u64>,
    /// Where those that were read ahead end.
    position: u64,
    /// Batches that were read ahead, the next one last.
    ahead: Vec<LogBatch>,
}

/// What stands where no sound batch does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// A whole batch with a wrong CRC.
    Batch(LogBatch),
    /// The beginning of a batch, and the end of the file.
    CutShort,
    /// Nothing that could be a batch.
    NoBatch,
}

/// How many batches are read ahead at most, and when no more are for their size.
const AHEAD: usize = 256;
const AHEAD_BYTES: u64 = 1 << 20;

/// How often places are read again that a writer changes meanwhile, before what is read of the file is enough.
pub(crate) const MAX_RETRIES: u32 = 20;

impl<F: FileSystem> Iterator for LogFiles<F> {
    type Item = Result<FoundBatch, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.advance();
        if !matches!(result, Ok(Some(_))) {
            self.later.clear();
            self.current = None;
        }
        result.transpose()
    }
}

impl<F: FileSystem> LogFiles<F> {
    fn advance(&mut self) -> Result<Option<FoundBatch>, StorageError> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(batch) = current.next_batch()?
            {
                return Ok(Some(FoundBatch { path: current.path.clone(), batch }));
            }
            let Some(base) = self.later.pop() else { return Ok(None) };
            if let Some(before) = &self.current {
                before.ends_with_a_batch()?;
            }
            let path = segment::path(&self.dir, base, segment::LOG);
            self.current = Some(BatchFile::open(&self.fs, &path, 0)?);
        }
    }
}

impl<F: FileSystem> BatchFile<F> {
    /// Opens a file to be read from `position` on, where a batch begins.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub fn open(fs: &F, path: &Path, position: u64) -> Result<BatchFile<F>, StorageError> {
        let file = fs.open(path, OpenHow::Read).map_err(StorageError::io("open", path))?;
        let written = match path.extension().is_some_and(|suffix| suffix == segment::LOG) {
            true => {
                let size = file.size().map_err(StorageError::io("read", path))?;
                Some(zeros_from(&file, path, 0, size)?)
            }
            false => None,
        };
        let path = Arc::new(path.to_owned());
        Ok(BatchFile { path, file, written, position, ahead: Vec::new() })
    }

    /// How long the file is by now, in bytes.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub fn size(&self) -> Result<u64, StorageError> {
        self.file.size().map_err(StorageError::io("read", &self.path))
    }

    /// Where that ends which was written to the file, behind the next batch or there: zeros that end it are room.
    pub(crate) fn written_to(&self) -> Result<u64, StorageError> {
        written_to(&self.file, &self.path, self.position(), self.size()?)
    }

    /// Where the next batch begins; after an error, where the unreadable part does.
    pub fn position(&self) -> u64 {
        self.ahead.last().map_or(self.position, LogBatch::position)
    }

    /// The next batch; `None` at the end, or where a segment has zeros alone. After an error the reader stays where it
    /// is.
    ///
    /// # Errors
    ///
    /// [`StorageError::Corrupt`] if there is no whole batch with the right CRC; those of the disk.
    pub fn next_batch(&mut self) -> Result<Option<LogBatch>, StorageError> {
        if self.ahead.is_empty() {
            self.read_ahead()?;
        }
        Ok(self.ahead.pop())
    }

    /// After an error: what is there. The reader then stands behind it, if it is a whole batch.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub fn step_over(&mut self) -> Result<Unsound, StorageError> {
        let end = self.size()?;
        let mut header = vec![0; HEADER_LEN];
        let n = self
            .file
            .read_at(&mut header, self.position)
            .map_err(StorageError::io("read", &self.path))?;
        header.truncate(n);
        match BatchHeader::parse(&header) {
            Err(BatchError::Incomplete { .. }) => return Ok(Unsound::CutShort),
            Err(_) => return Ok(Unsound::NoBatch),
            Ok(header) if header.total_len() as u64 > end.saturating_sub(self.position) => {
                return Ok(Unsound::CutShort);
            }
            Ok(_) => {}
        }
        let mut scan = Scan::new(&self.file, &self.path, self.position, end);
        match scan.next_unchecked()? {
            Some(batch) => {
                self.position += batch.bytes().len() as u64;
                Ok(Unsound::Batch(batch))
            }
            None => Ok(Unsound::CutShort),
        }
    }

    /// An error, if zeros are behind the last batch: in front of a later segment they may be in the place of batches.
    fn ends_with_a_batch(&self) -> Result<(), StorageError> {
        if self.size()? > self.position() {
            let reason = "zeros stand in front of a later segment";
            return Err(StorageError::corrupt(&self.path, self.position(), reason));
        }
        Ok(())
    }

    fn read_ahead(&mut self) -> Result<(), StorageError> {
        if self.written.is_some_and(|written| self.position >= written) {
            return Ok(());
        }
        let end = self.size()?;
        let mut scan = Scan::new(&self.file, &self.path, self.position, end);
        let start = self.position;
        let mut retries = 0;
        while self.ahead.len() < AHEAD && self.position - start < AHEAD_BYTES {
            match scan.next() {
                Ok(Some(batch)) => {
                    self.position = batch.position() + batch.bytes().len() as u64;
                    self.ahead.push(batch);
                }
                Ok(None) => break,
                // It comes again once all before it is read.
                Err(_) if !self.ahead.is_empty() => break,
                // Beside a writer this part may have been written since it was read.
                Err(StorageError::Corrupt { .. })
                    if self.written.is_some() && scan.has_changed(self.size()?)? =>
                {
                    retries += 1;
                    // Its writer is faster than this reader.
                    if retries == MAX_RETRIES {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        self.ahead.reverse();
        Ok(())
    }
}
