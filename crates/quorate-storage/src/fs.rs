//! The seam to the file system: all that storage may ask of a disk.
//!
//! Three disks stand behind it: the real one (`RealFs`), one in memory that
//! forgets what was not synced (tests and the simulator), and one that keeps unsynced writes back from
//! the real disk, so that a `kill -9` works as a power cut (a test build, never shipped).
//!
//! What a disk promises: after a crash, each file has the content of its last [`File::sync_data`], and any
//! part of the later writes; each directory has the entries of its last [`FileSystem::sync_dir`], and any
//! of the later changes. Nothing else is promised, no order between files in particular. A [`File::sync_data`]
//! that fails may drop writes for good, though reads show them until [`File::drop_cache`]. A [`FileSystem::sync_dir`] that
//! fails is the end of the file system: it changes no more until the machine is started again.

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// A file system.
pub trait FileSystem: Clone + Debug + Send + Sync + 'static {
    /// An open file.
    type File: File;
    /// Holds a lock until it is dropped.
    type Lock: Debug + Send + 'static;

    /// Opens a file.
    fn open(&self, path: &Path, how: OpenHow) -> io::Result<Self::File>;
    /// Replaces `to`, if it is there, by `from`. Durable once the directory is synced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable once the directory is synced.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory unless it is there. Durable once its parent is synced.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of a directory durable: files created, renamed and removed.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, in no order. What vanishes meanwhile may or may not be listed.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Takes the lock that a JVM takes on this file, creating it: an fcntl write lock over the whole file.
    /// `None` if another process holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Self::Lock>>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenHow {
    /// It must exist; for reading alone.
    Read,
    /// It must exist; for reading and writing.
    Write,
    /// It is made if it does not exist; for reading and writing.
    Create,
    /// As `Create`, and empty.
    Truncate,
}

/// An open file. All reads and writes name their position.
pub trait File: Debug + Send + Sync + 'static {
    /// Reads at a position, as much as there is up to the length of `buffer`; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;
    /// Writes all of these slices, one after another, at a position.
    fn write_all_at(&self, slices: &[io::IoSlice<'_>], position: u64) -> io::Result<()>;
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Extends the file from its end to this length with zeros, and takes room on the medium for them. May do a part
    /// of it and fail.
    fn allocate(&self, from: u64, to: u64) -> io::Result<()>;
    /// How long the file is, in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Makes content and length durable (fdatasync).
    fn sync_data(&self) -> io::Result<()>;
    /// Forgets what memory holds of the file and is not waiting to be written: the next reads come from the medium.
    fn drop_cache(&self) -> io::Result<()>;
    /// Makes the file read-only for everybody (mode 0400, as Kafka's checkpoints).
    fn set_read_only(&self) -> io::Result<()>;
}
