//! Looks a metadata log directory over without changing it: what is damaged in it, and what a start would
//! make of that.
//!
//! The log is read by the code that recovers it, so that what is said of a start is what a start does. No
//! lock is taken: beside a live node the end of the log may look torn while it is being written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quorate_core::{Epoch, Offset};

use crate::checkpoint;
use crate::epoch_checkpoint;
use crate::error::StorageError;
use crate::fs::{FileSystem, OpenHow};
use crate::log_files::{BatchFile, Unsound};
use crate::meta_properties;
use crate::partition_metadata;
use crate::quorum_state;
use crate::recovery::{self, Cut, Found, Note, Zeros};
use crate::scan::LogBatch;
use crate::segment;
use crate::store::{BOOTSTRAP_FILE, LOCK_FILE, LOG_DIR, check_epochs, not_formatted};

/// What a directory holds, and what is wrong in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// What is wrong; empty if the directory is sound.
    pub damage: Vec<Damage>,
    /// What is worth knowing, but is no damage.
    pub remarks: Vec<String>,
    /// The first offset of the log.
    pub log_start: Offset,
    /// Where the log ends, as far as it is sound.
    pub log_end: Offset,
    /// How many checkpoints were read.
    pub checkpoints: usize,
    /// How many sound batches, in segments and checkpoints.
    pub batches: u64,
    /// How many records they have.
    pub records: u64,
    /// How many bytes they are.
    pub bytes: u64,
}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The byte at which it shows, where that makes sense.
    pub position: Option<u64>,
    /// The offset that stands there, or should, in a log.
    pub offset: Option<Offset>,
    /// What is wrong.
    pub reason: String,
    /// What a start would do about it.
    pub at_start: AtStart,
}

/// What a start does about damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtStart {
    /// It cuts the log there.
    Cuts(Loss),
    /// It refuses the directory.
    Refuses,
    /// It writes the file anew from the log.
    Repairs,
    /// It does not notice.
    Ignores,
}

/// What goes if the log is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where the log ends then.
    pub end: Offset,
    /// How many bytes go, in this segment and the later ones.
    pub bytes: u64,
    /// The end of the last batch that can still be read behind the damage; `None` if none can.
    pub readable_to: Option<Offset>,
}

/// How far a file has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file.
    pub path: &'a Path,
    /// How many of its bytes were read.
    pub bytes: u64,
}

/// Looks over a metadata log directory, or a `__cluster_metadata-0` alone. `progress` is told of every batch.
///
/// # Errors
///
/// Those of the disk. What is wrong with the files is no error but what is looked for.
pub fn verify<F: FileSystem>(
    fs: &F,
    dir: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Verified, StorageError> {
    let is_log_dir = dir.file_name().is_some_and(|name| name == LOG_DIR);
    let above = match dir.parent().filter(|_| is_log_dir) {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => dir,
    };
    // Not opened: a process that closes the file loses the lock that it may have on it. Of a log directory that stands
    // alone nobody knows.
    let was_closed = fs.list(above).is_ok_and(|names| {
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        has(meta_properties::FILE_NAME) && !has(LOCK_FILE)
    });
    let mut looking = Looking { fs, was_closed, found: Verified::default(), progress };
    if is_log_dir {
        looking.log_dir(dir)?;
        return Ok(looking.found);
    }
    match meta_properties::read(fs, dir) {
        Ok(Some(_)) => {}
        Ok(None) => looking.refused(not_formatted(fs, dir))?,
        Err(error) => looking.refused(error)?,
    }
    let names = fs.list(dir).map_err(StorageError::io("list", dir))?;
    if names.iter().any(|name| name == BOOTSTRAP_FILE) {
        looking.checkpoint(&dir.join(BOOTSTRAP_FILE), AtStart::Ignores)?;
    }
    if names.iter().any(|name| name == LOG_DIR) {
        looking.log_dir(&dir.join(LOG_DIR))?;
    }
    if names.iter().any(|name| name == LOCK_FILE) {
        let path = dir.join(LOCK_FILE);
        looking.found.remarks.push(format!(
            "{} is there: a node has this directory open, and what it is writing may look torn; or it was killed",
            path.display()
        ));
    }
    Ok(looking.found)
}

/// A look in progress.
struct Looking<'a, F> {
    fs: &'a F,
    /// There is no lock file: nobody has the directory open, and whoever had it has closed it.
    was_closed: bool,
    found: Verified,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl<F: FileSystem> Looking<'_, F> {
    fn damage(&mut self, path: &Path, reason: impl Into<String>, at_start: AtStart) {
        let (path, reason) = (path.to_owned(), reason.into());
        self.found.damage.push(Damage { path, position: None, offset: None, reason, at_start });
    }

    /// Takes an error that a start would end with. One of the disk ends the look too.
    fn refused(&mut self, error: StorageError) -> Result<(), StorageError> {
        let (path, position, reason) = match error {
            StorageError::Io { .. } => return Err(error),
            StorageError::Corrupt { path, position, reason } => (path, Some(position), reason),
            StorageError::Unreadable { path, field, reason } => {
                (path, None, format!("{field}: {reason}"))
            }
            StorageError::Foreign { ref path, field, .. } => {
                (path.clone(), None, format!("{field}: {error}"))
            }
            StorageError::HalfFormatted { ref dir, .. } | StorageError::Unformatted { ref dir } => {
                (dir.join(meta_properties::FILE_NAME), None, error.to_string())
            }
            other => {
                self.found.remarks.push(other.to_string());
                return Ok(());
            }
        };
        let at_start = AtStart::Refuses;
        self.found.damage.push(Damage { path, position, offset: None, reason, at_start });
        Ok(())
    }

    fn log_dir(&mut self, dir: &Path) -> Result<(), StorageError> {
        let election = match quorum_state::read(self.fs, dir) {
            Ok(election) => election,
            Err(error) => {
                self.refused(error)?;
                None
            }
        };
        if let Err(error) = partition_metadata::check(self.fs, dir) {
            self.refused(error)?;
        }
        let mut names = self.fs.list(dir).map_err(StorageError::io("list", dir))?;
        names.sort_unstable();
        let mut ends = Vec::new();
        for name in &names {
            if let Some(id) = checkpoint::parse_file_name(name) {
                let at_start = match id == checkpoint::BOOTSTRAP {
                    true => AtStart::Refuses,
                    false => AtStart::Ignores,
                };
                self.checkpoint(&dir.join(name), at_start)?;
                ends.push(id.offset);
            }
        }
        let mut notes = Vec::new();
        if let Err(error) = recovery::check_names(dir, &names, &mut notes) {
            self.refused(error)?;
        }
        self.found.remarks.extend(notes.iter().map(Note::to_string));
        let epochs = self.log(dir, &names, &ends)?;
        self.epoch_checkpoint(dir, &epochs)?;
        match (election, epochs.last()) {
            (Some(election), _) => {
                if let Err(error) = check_epochs(dir, election.epoch, &epochs) {
                    self.refused(error)?;
                }
            }
            (None, Some((last, _)))
                if !names.iter().any(|name| name == quorum_state::FILE_NAME) =>
            {
                self.found.remarks.push(Note::no_election(dir, *last).to_string());
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Reads a checkpoint: header first, footer last, offsets from 0 on.
    fn checkpoint(&mut self, path: &Path, at_start: AtStart) -> Result<(), StorageError> {
        self.found.checkpoints += 1;
        let mut file = BatchFile::open(self.fs, path, 0)?;
        let mut order = checkpoint::Order::default();
        let (position, reason) = loop {
            let position = file.position();
            match file.next_batch() {
                Ok(Some(batch)) => {
                    if let Err(reason) = order.add(&batch) {
                        break (position, reason);
                    }
                    self.count(path, &batch);
                }
                Ok(None) => match order.end() {
                    Ok(()) => return Ok(()),
                    Err(reason) => break (position, reason),
                },
                Err(StorageError::Corrupt { position, reason, .. }) => break (position, reason),
                Err(error) => return Err(error),
            }
        };
        let path = path.to_owned();
        let position = Some(position);
        self.found.damage.push(Damage { path, position, offset: None, reason, at_start });
        Ok(())
    }

    fn count(&mut self, path: &Path, batch: &LogBatch) {
        self.found.count(batch);
        (self.progress)(Progress { path, bytes: batch.position() + batch.bytes().len() as u64 });
    }

    /// Reads the segments as a start does. Returns the epochs of the sound part.
    fn log(
        &mut self,
        dir: &Path,
        names: &[String],
        snapshots: &[Offset],
    ) -> Result<Vec<(Epoch, Offset)>, StorageError> {
        let of_suffix = |suffix: &str| -> BTreeSet<Offset> {
            let parsed = names.iter().filter_map(|name| segment::parse_name(name));
            parsed.filter(|(_, found)| *found == suffix).map(|(base, _)| base).collect()
        };
        let bases = of_suffix(segment::LOG);
        let Some(start) = bases.first().copied() else { return Ok(Vec::new()) };
        if start > Offset::ZERO && !snapshots.iter().any(|end| *end >= start) {
            let reason =
                format!("the log begins at offset {start}, and no snapshot has what was before");
            self.damage(&segment::path(dir, start, segment::LOG), reason, AtStart::Refuses);
        }
        for base in bases.difference(&of_suffix(segment::INDEX)) {
            self.found.remarks.push(format!(
                "{} is missing: a start of ours writes it, Kafka would cut damage in this segment wrongly",
                segment::path(dir, *base, segment::INDEX).display()
            ));
        }
        let mut log = Found::<F>::starting_at(start);
        let mut not_raft = Vec::new();
        for base in &bases {
            if log.is_cut() {
                break;
            }
            let Looking { fs, found, progress, .. } = self;
            let mut seen = |path: &Path, batch: &LogBatch| {
                found.count(batch);
                let bytes = batch.position() + batch.bytes().len() as u64;
                progress(Progress { path, bytes });
                if let Err(error) = batch.batch().raft_check() {
                    not_raft.push(Damage {
                        path: path.to_owned(),
                        position: Some(batch.position()),
                        offset: Some(batch.base()),
                        reason: format!("{error}; Kafka's log reader stops at it"),
                        at_start: AtStart::Ignores,
                    });
                }
            };
            if let Err(error) = log.read_segment(*fs, dir, *base, OpenHow::Read, &mut seen) {
                self.refused(error)?;
                break;
            }
        }
        self.found.damage.append(&mut not_raft);
        (self.found.log_start, self.found.log_end) = (start, log.end());
        for zeros in &log.zeros {
            self.zeros(zeros, log.end());
        }
        if let Some(cut) = log.cut.take() {
            let end = log.end();
            let loss = self.loss(dir, &bases, &cut, end)?;
            self.found.damage.push(Damage {
                path: segment::path(dir, cut.base, segment::LOG),
                position: Some(cut.position),
                offset: Some(end),
                reason: cut.reason,
                at_start: AtStart::Cuts(loss),
            });
        }
        Ok(log.epochs)
    }

    /// Zeros at the end of a segment are room for more, unless whoever made it had the time to give it back.
    fn zeros(&mut self, zeros: &Zeros, log_end: Offset) {
        let Zeros { path, position, end, len } = zeros;
        let reason = format!("{len} zero bytes are behind the last batch");
        if self.was_closed {
            let loss = Loss { end: log_end, bytes: 0, readable_to: None };
            self.found.damage.push(Damage {
                path: path.clone(),
                position: Some(*position),
                offset: Some(*end),
                reason,
                at_start: AtStart::Cuts(loss),
            });
        } else {
            self.found.remarks.push(format!(
                "{}, position {position}: {reason}: room for more; a start cuts them off",
                path.display()
            ));
        }
    }

    /// What goes if the log is cut there: everything behind, in this segment and the later ones.
    fn loss(
        &self,
        dir: &Path,
        bases: &BTreeSet<Offset>,
        cut: &Cut,
        end: Offset,
    ) -> Result<Loss, StorageError> {
        let mut loss = Loss { end, bytes: 0, readable_to: None };
        for base in bases.range(cut.base..) {
            let from = if *base == cut.base { cut.position } else { 0 };
            let path = segment::path(dir, *base, segment::LOG);
            let mut file = BatchFile::open(self.fs, &path, from)?;
            loss.bytes += file.written_to()?.saturating_sub(from);
            loop {
                match file.next_batch() {
                    Ok(Some(batch)) => loss.readable_to = loss.readable_to.max(Some(batch.end())),
                    Ok(None) => break,
                    Err(StorageError::Corrupt { .. }) => match file.step_over()? {
                        Unsound::Batch(_) => {}
                        Unsound::CutShort | Unsound::NoBatch => break,
                    },
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(loss)
    }

    /// Kafka believes this file, so it must not contradict the log.
    fn epoch_checkpoint(
        &mut self,
        dir: &Path,
        epochs: &[(Epoch, Offset)],
    ) -> Result<(), StorageError> {
        let path = epoch_checkpoint::path(dir);
        let reason = match epoch_checkpoint::read(self.fs, dir)? {
            Ok(entries) if follows(&entries, epochs, self.found.log_start) => return Ok(()),
            Ok(_) => "it has other epochs than the log, and Kafka would believe it".to_owned(),
            Err(reason) => reason,
        };
        self.damage(&path, reason, AtStart::Repairs);
        Ok(())
    }
}

/// Whether the entries are the first of these epochs. Where the log begins above 0, they may begin later than
/// it does: Kafka keeps them from its oldest snapshot on.
fn follows(entries: &[(Epoch, Offset)], epochs: &[(Epoch, Offset)], start: Offset) -> bool {
    let Some(((first, offset), later)) = entries.split_first() else { return true };
    let Some(at) = epochs.iter().position(|(epoch, _)| epoch == first) else { return false };
    let Some(((_, begins), rest)) = epochs.get(at..).and_then(<[_]>::split_first) else {
        return false;
    };
    let fits = if start > Offset::ZERO { offset >= begins } else { at == 0 && offset == begins };
    fits && rest.starts_with(later)
}

impl Verified {
    fn count(&mut self, batch: &LogBatch) {
        self.batches += 1;
        self.records += u64::try_from(batch.batch().record_count()).unwrap_or(0);
        self.bytes += batch.bytes().len() as u64;
    }
}
