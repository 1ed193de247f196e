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
    /// A directory could not be synced: the journal is gone, and nothing changes any more until a reboot.
    is_aborted: bool,
    /// The errors that were given out.
    failures: Vec<DiskFailure>,
}

/// An error that was given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskFailure {
    /// An operation that was to fail.
    Armed(DiskOperation),
    /// Nothing fits.
    Full,
    /// Nothing changes any more.
    Aborted,
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

    /// The errors that were given out since this was asked last.
    pub(crate) fn take_failures(&self) -> Vec<DiskFailure> {
        std::mem::take(&mut self.faults().failures)
    }

    /// Whether it takes a reboot to write again.
    pub(crate) fn is_aborted(&self) -> bool {
        self.faults().is_aborted
    }

    /// The disk after its machine was started again, with any part of what was not synced.
    pub(crate) fn reboot(&mut self, seed: u64) {
        self.inner = self.inner.crash(seed);
        self.faults().is_aborted = false;
    }

    /// The disk after its process was killed.
    pub(crate) fn kill(&mut self) {
        self.inner = self.inner.kill();
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unless_aborted(&self) -> io::Result<()> {
        let mut faults = self.faults();
        if faults.is_aborted {
            faults.failures.push(DiskFailure::Aborted);
            return Err(ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(())
    }

    /// Lets the operation that comes next fail, if it is its turn.
    fn before(&self, operation: DiskOperation) {
        let mut faults = self.faults();
        let mut error = None;
        if faults.is_full && operation == DiskOperation::Write {
            error = Some((ErrorKind::StorageFull, DiskFailure::Full));
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
            error = Some((ErrorKind::Other, DiskFailure::Armed(operation)));
        }
        if faults.is_aborted {
            error = Some((ErrorKind::ReadOnlyFilesystem, DiskFailure::Aborted));
        }
        // As the file systems of Linux do: they write no further when their journal has failed.
        faults.is_aborted |= error.is_some() && operation == DiskOperation::SyncDir;
        if let Some((error, failure)) = error {
            faults.failures.push(failure);
            self.inner.fail_at(0, Fault::Once(error));
        }
    }
}

impl FileSystem for SimFs {
    type File = SimFile;
    type Lock = MemLock;

    fn open(&self, path: &Path, how: OpenHow) -> io::Result<SimFile> {
        if how != OpenHow::Read {
            self.unless_aborted()?;
        }
        Ok(SimFile { disk: self.clone(), inner: self.inner.open(path, how)? })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before(DiskOperation::Rename);
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.unless_aborted()?;
        self.inner.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.unless_aborted()?;
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
        self.unless_aborted()?;
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
        self.disk.unless_aborted()?;
        self.inner.set_len(len)
    }

    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        self.disk.unless_aborted()?;
        // No failure that a replica has to show: it may do without.
        if self.disk.faults().is_full {
            return Err(ErrorKind::StorageFull.into());
        }
        self.inner.allocate(from, to)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.before(DiskOperation::Sync);
        self.inner.sync_data()
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.inner.drop_cache()
    }

    fn set_read_only(&self) -> io::Result<()> {
        self.inner.set_read_only()
    }
}
