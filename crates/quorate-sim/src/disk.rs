//! The disk below the real storage code: memory that forgets what was not synced, and fails when told to.

use std::io::{self, ErrorKind, IoSlice};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate_storage::fs::{File, FileSystem, OpenHow};
use quorate_storage::mem_fs::{Fault, MemFile, MemFs, MemLock};

/// A disk of a simulated machine. Clones are the same disk.
#[derive(Clone, Debug)]
pub(crate) struct SimFs {
    pub(crate) inner: MemFs,
    faults: Arc<Mutex<Faults>>,
}

/// A file on it.
#[derive(Debug)]
pub(crate) struct SimFile {
    disk: SimFs,
    inner: MemFile,
}

/// What can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskOperation {
    /// Writing into a file.
    Write,
    /// Syncing a file.
    Sync,
    /// Renaming a file.
    Rename,
    /// Syncing a directory.
    SyncDir,
}

#[derive(Debug, Default)]
struct Faults {
    /// No write fits until this is taken back.
    is_full: bool,
    /// The n-th operation of this kind from now fails, the first being 0.
    armed: Vec<(DiskOperation, u32)>,
    /// How many errors were given out.
    failures: u64,
}

impl SimFs {
    pub(crate) fn new(inner: MemFs) -> SimFs {
        SimFs { inner, faults: Arc::default() }
    }

    /// The next operation of this kind after `after` others fails, once.
    pub(crate) fn arm(&self, operation: DiskOperation, after: u32) {
        self.faults().armed.push((operation, after));
    }

    pub(crate) fn fill(&self, is_full: bool) {
        self.faults().is_full = is_full;
    }

    /// Takes back what was to fail.
    pub(crate) fn heal(&self) {
        let mut faults = self.faults();
        faults.is_full = false;
        faults.armed.clear();
    }

    pub(crate) fn failures(&self) -> u64 {
        self.faults().failures
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the operation that comes next fail, if it is its turn.
    fn before(&self, operation: DiskOperation) {
        let mut faults = self.faults();
        let mut error = None;
        if faults.is_full && operation == DiskOperation::Write {
            error = Some(ErrorKind::StorageFull);
        }
        let mut fired = None;
        for (at, (armed, after)) in faults.armed.iter_mut().enumerate() {
            if *armed == operation {
                if *after == 0 {
                    fired = Some(at);
                    break;
                }
                *after -= 1;
            }
        }
        if let Some(at) = fired {
            faults.armed.remove(at);
            // EIO has no kind of its own.
            error = Some(ErrorKind::Other);
        }
        if let Some(error) = error {
            faults.failures += 1;
            self.inner.fail_at(0, Fault::Once(error));
        }
    }
}

impl FileSystem for SimFs {
    type File = SimFile;
    type Lock = MemLock;

    fn open(&self, path: &Path, how: OpenHow) -> io::Result<SimFile> {
        Ok(SimFile { disk: self.clone(), inner: self.inner.open(path, how)? })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before(DiskOperation::Rename);
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.before(DiskOperation::SyncDir);
        self.inner.sync_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<MemLock>> {
        self.inner.lock(path)
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, position)
    }

    fn write_all_at(&self, slices: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        self.disk.before(DiskOperation::Write);
        self.inner.write_all_at(slices, position)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.before(DiskOperation::Sync);
        self.inner.sync_data()
    }

    fn set_read_only(&self) -> io::Result<()> {
        self.inner.set_read_only()
    }
}
