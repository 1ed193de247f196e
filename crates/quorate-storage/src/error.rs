//! What can be wrong with a directory or its disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a directory cannot be opened or written. Names the file, the value and, where there is one, the
/// next step. Cheap to clone, since a failed store answers everything with its first error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as in *cannot …*.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What came back.
        source: Arc<io::Error>,
    },
    /// A binary file does not hold what it must.
    #[error("{}, position {position}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The byte at which the unreadable part begins.
        position: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A small text file does not hold what it must. It is never replaced by a default.
    #[error("{}, {field}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The field or line.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory is not formatted.
    #[error("{} is not formatted: it has no meta.properties; run `quorate format` with this node's configuration", dir.display())]
    Unformatted {
        /// The metadata log directory.
        dir: PathBuf,
    },
    /// Formatting was interrupted, or `meta.properties` got lost.
    #[error("{} has no meta.properties but has {found}: {next}", dir.display())]
    HalfFormatted {
        /// The metadata log directory.
        dir: PathBuf,
        /// What is there nevertheless.
        found: String,
        /// What to do.
        next: &'static str,
    },
    /// The directory belongs to somebody else.
    #[error("{}: {field} is {found}, but {expected} is expected: {next}", path.display())]
    Foreign {
        /// The file that says so.
        path: PathBuf,
        /// Its field.
        field: &'static str,
        /// What it says.
        found: String,
        /// What it must say.
        expected: String,
        /// What to do.
        next: &'static str,
    },
    /// Another process has the directory open.
    #[error("{} is locked: another process, Kafka or Quorate, has this directory open; stop it first", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The directory holds something that this version cannot open yet.
    #[error("{}: this version cannot yet open a directory with snapshots ({reason})", path.display())]
    HasSnapshots {
        /// The snapshot, or the first segment.
        path: PathBuf,
        /// What shows it.
        reason: &'static str,
    },
    /// A truncation would cut a batch in two.
    #[error("{}: offset {to} is inside the batch {base} to {end}; the log can be cut between batches only", path.display())]
    InsideBatch {
        /// The segment.
        path: PathBuf,
        /// Where the log was to end.
        to: i64,
        /// The first offset of the batch.
        base: i64,
        /// The offset after the batch.
        end: i64,
    },
}

impl StorageError {
    /// Makes an error of [`StorageError::Io`] from an I/O error.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StorageError {
        let path = path.to_owned();
        move |source| StorageError::Io { action, path, source: Arc::new(source) }
    }

    pub(crate) fn corrupt(path: &Path, position: u64, reason: impl ToString) -> StorageError {
        StorageError::Corrupt { path: path.to_owned(), position, reason: reason.to_string() }
    }

    pub(crate) fn unreadable(
        path: &Path,
        field: impl ToString,
        reason: impl ToString,
    ) -> StorageError {
        StorageError::Unreadable {
            path: path.to_owned(),
            field: field.to_string(),
            reason: reason.to_string(),
        }
    }
}
