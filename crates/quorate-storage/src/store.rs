//! Opening a directory: who owns it, what it holds, and a store that can write to it.

use std::path::{Path, PathBuf};

use quorate_core::io::ElectionState;
use quorate_core::{Epoch, NodeId, Offset};
use quorate_wire::control::ControlRecord;

use crate::checkpoint::{self, Checkpoint};
use crate::commit::Committer;
use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::log::RollLimits;
use crate::meta_properties::{self, MetaProperties};
use crate::partition_metadata;
use crate::quorum_state;
use crate::reader::LogReader;
use crate::recovery::{self, Note};

/// The directory of the metadata log in a metadata log directory.
pub const LOG_DIR: &str = "__cluster_metadata-0";

/// What to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The metadata log directory, which has `meta.properties`.
    pub dir: PathBuf,
    /// The configured `node.id`.
    pub node: NodeId,
    /// When segments are rolled.
    pub limits: RollLimits,
}

/// What a directory holds, after recovery. All of it is durable.
#[derive(Debug)]
pub struct Opened<F: FileSystem> {
    /// Whose directory it is.
    pub meta: MetaProperties,
    /// The quorum-state file; absent before the first election.
    pub election: Option<ElectionState>,
    /// The first offset of the log.
    pub log_start: Offset,
    /// The log end.
    pub log_end: Offset,
    /// Each epoch in the log with its first offset, ascending.
    pub epochs: Vec<(Epoch, Offset)>,
    /// The KRaftVersion and Voters records of the log with their offsets, ascending.
    pub control: Vec<(Offset, ControlRecord)>,
    /// The 0-0 checkpoint; absent in directories formatted by Kafka before 4.4 without initial voters.
    pub bootstrap: Option<Checkpoint>,
    /// What was odd, and what was cut: lines for the log.
    pub notes: Vec<Note>,
    /// Writes to it.
    pub store: Store<F>,
}

/// An open directory. Nobody else can open it until this is closed or dropped.
#[derive(Debug)]
pub struct Store<F: FileSystem> {
    fs: F,
    dir: PathBuf,
    committer: Committer<F>,
    lock: F::Lock,
}

impl<F: FileSystem> Store<F> {
    /// Opens a metadata log directory for writing: checks whose it is, locks it, recovers the log.
    ///
    /// # Errors
    ///
    /// A directory that is not formatted, belongs to another node, is open elsewhere, or holds a file that
    /// must not be guessed at.
    pub fn open(fs: F, options: Options) -> Result<Opened<F>, StorageError> {
        let Options { dir, node, limits } = options;
        let meta = check_formatted(&fs, &dir, node)?;
        let lock = lock(&fs, &dir)?;
        let log_dir = dir.join(LOG_DIR);
        fs.create_dir(&log_dir).map_err(StorageError::io("create", &log_dir))?;
        // A process before this one may have been killed between a change and its sync. What is
        // found now is relied on from here, so it must outlast a power cut.
        fs.sync_dir(&dir).map_err(StorageError::io("sync", &dir))?;
        fs.sync_dir(&log_dir).map_err(StorageError::io("sync", &log_dir))?;
        let election = quorum_state::read(&fs, &log_dir)?;
        partition_metadata::check(&fs, &log_dir)?;
        let bootstrap =
            checkpoint::read(&fs, &log_dir.join(checkpoint::file_name(checkpoint::BOOTSTRAP)))?;
        let recovered = recovery::recover(&fs, &log_dir, limits)?;
        let mut notes = recovered.notes;
        match (&election, recovered.epochs.last()) {
            (Some(election), _) => check_epochs(&log_dir, election.epoch, &recovered.epochs)?,
            (None, Some((last, _))) => notes.push(Note::no_election(&log_dir, *last)),
            (None, None) => {}
        }
        partition_metadata::write_if_missing(&fs, &log_dir)?;
        Ok(Opened {
            meta,
            election,
            log_start: recovered.log_start,
            log_end: recovered.log.end(),
            epochs: recovered.epochs,
            control: recovered.control,
            bootstrap,
            notes,
            store: Store {
                committer: Committer::new(fs.clone(), log_dir, recovered.log),
                fs,
                dir,
                lock,
            },
        })
    }

    /// Does the writes.
    pub fn committer(&mut self) -> &mut Committer<F> {
        &mut self.committer
    }

    /// Reads the log beside the commit thread.
    pub fn reader(&self) -> LogReader<F> {
        LogReader::new(self.committer.log())
    }

    /// The metadata log directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Completes the index files, removes the lock file, as Kafka does when it stops, and lets go of the
    /// directory.
    ///
    /// # Errors
    ///
    /// Those of the disk. The directory is in good order nevertheless.
    pub fn close(mut self) -> Result<(), StorageError> {
        self.committer.close()?;
        let path = self.dir.join(LOCK_FILE);
        self.fs.remove(&path).map_err(StorageError::io("remove", &path))?;
        // Only now: whoever gets the lock of a file that is gone tries again.
        drop(self.lock);
        Ok(())
    }
}

/// Each epoch is recorded in quorum-state before its first batch. Where it is not, either the file is older
/// than the log, and a vote may be forgotten, or a batch's epoch is damaged, and could win elections.
///
/// Differs from Kafka: it goes on in the log's epoch.
pub(crate) fn check_epochs(
    log_dir: &Path,
    election: Epoch,
    epochs: &[(Epoch, Offset)],
) -> Result<(), StorageError> {
    let Some((last, start)) = epochs.last().filter(|(last, _)| *last > election) else {
        return Ok(());
    };
    let reason = format!(
        "{election} is below epoch {last}, which the log has from offset {start} on: this file was restored from \
         an older time, or that batch is damaged; restore both together, or take this replica out of \
         the quorum and let it join with an empty directory"
    );
    let path = log_dir.join(quorum_state::FILE_NAME);
    Err(StorageError::unreadable(&path, "leaderEpoch", reason))
}

pub(crate) const LOCK_FILE: &str = ".lock";

fn lock<F: FileSystem>(fs: &F, dir: &Path) -> Result<F::Lock, StorageError> {
    let path = dir.join(LOCK_FILE);
    let lock = fs.lock(&path).map_err(StorageError::io("lock", &path))?;
    lock.ok_or(StorageError::Locked { path })
}

/// Reads `meta.properties`, or says what the directory is instead.
fn check_formatted<F: FileSystem>(
    fs: &F,
    dir: &Path,
    node: NodeId,
) -> Result<MetaProperties, StorageError> {
    let path = dir.join(meta_properties::FILE_NAME);
    let Some(meta) = meta_properties::read(fs, dir)? else {
        return Err(not_formatted(fs, dir));
    };
    if meta.node != node {
        return Err(StorageError::Foreign {
            path,
            field: "node.id",
            found: meta.node.to_string(),
            expected: node.to_string(),
            next: "this is another node's directory; correct node.id or metadata.log.dir in the configuration",
        });
    }
    Ok(meta)
}

pub(crate) fn not_formatted<F: FileSystem>(fs: &F, dir: &Path) -> StorageError {
    let names = |dir: &Path| match fs.list(dir) {
        Ok(names) => Ok(names),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StorageError::io("list", dir)(error)),
    };
    let (own, log) = match (names(dir), names(&dir.join(LOG_DIR))) {
        (Ok(own), Ok(log)) => (own, log),
        (Err(error), _) | (_, Err(error)) => return error,
    };
    let dir = dir.to_owned();
    if let Some(name) =
        log.iter().find(|name| name.ends_with(".log") || *name == quorum_state::FILE_NAME)
    {
        return StorageError::HalfFormatted {
            dir,
            found: format!("{LOG_DIR}/{name}"),
            next: "a replica has run here; restore meta.properties, or take this replica out of the quorum \
                   and format an empty directory",
        };
    }
    let leftover = own.iter().find(|name| *name == BOOTSTRAP_FILE || *name == LOG_DIR);
    if let Some(name) = leftover {
        return StorageError::HalfFormatted {
            dir,
            found: name.clone(),
            next: "formatting did not finish; remove that and run `quorate format` again",
        };
    }
    StorageError::Unformatted { dir }
}

/// What the formatters of Kafka 4.0 to 4.3 write.
pub(crate) const BOOTSTRAP_FILE: &str = "bootstrap.checkpoint";
