//! Reading a log without opening it for writing: for tools and tests. Takes no lock, changes nothing, and
//! may run beside a live node.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_core::Offset;

use crate::error::StorageError;
use crate::fs::{File, FileSystem, OpenHow};
use crate::scan::{LogBatch, Scan};
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
/// after its first error: a torn end of a log that is written to, or was, is one too.
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
    current: Option<Current<F>>,
}

#[derive(Debug)]
struct Current<F: FileSystem> {
    path: Arc<PathBuf>,
    file: F::File,
    position: u64,
    /// Batches that were read ahead, the next one last.
    ahead: Vec<LogBatch>,
}

/// How many batches are read ahead at most.
const AHEAD: usize = 256;

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
            if let Some(current) = &mut self.current {
                if current.ahead.is_empty() {
                    current.read_ahead()?;
                }
                if let Some(batch) = current.ahead.pop() {
                    return Ok(Some(FoundBatch { path: current.path.clone(), batch }));
                }
            }
            let Some(base) = self.later.pop() else { return Ok(None) };
            let path = segment::path(&self.dir, base, segment::LOG);
            let file =
                self.fs.open(&path, OpenHow::Read).map_err(StorageError::io("open", &path))?;
            let path = Arc::new(path);
            self.current = Some(Current { path, file, position: 0, ahead: Vec::new() });
        }
    }
}

impl<F: FileSystem> Current<F> {
    fn read_ahead(&mut self) -> Result<(), StorageError> {
        let end = self.file.size().map_err(StorageError::io("read", &self.path))?;
        let mut scan = Scan::new(&self.file, &self.path, self.position, end);
        while self.ahead.len() < AHEAD {
            match scan.next() {
                Ok(Some(batch)) => {
                    self.position = batch.position() + batch.bytes().len() as u64;
                    self.ahead.push(batch);
                }
                Ok(None) => break,
                // It comes again once all before it is read.
                Err(_) if !self.ahead.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        self.ahead.reverse();
        Ok(())
    }
}
