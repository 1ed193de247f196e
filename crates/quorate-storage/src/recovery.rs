//! Recovery: from whatever a crash left to a log without holes.
//!
//! Every batch of every segment is read. The log ends before the first one that is damaged, leaves a gap
//! in the offsets, or bears an epoch that cannot follow; what comes after is cut off, durably, before
//! anything else happens.
//!
//! Differs from Kafka: it checks neither offsets nor epochs, and without an index file it cuts one segment but
//! keeps the later ones, so that the log has a hole.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use quorate_core::{Epoch, Offset, OffsetAndEpoch};
use quorate_wire::batch::HEADER_LEN;
use quorate_wire::control::ControlRecord;

use crate::checkpoint;
use crate::epoch_checkpoint;
use crate::error::StorageError;
use crate::fs::{File, FileSystem, OpenHow};
use crate::log::{Log, RollLimits, add_epoch, remove_segment, write_index};
use crate::log_files::MAX_RETRIES;
use crate::scan::{LogBatch, Scan, zeros_from};
use crate::segment::{self, BatchPlace, Segment};
use crate::small_file;

/// Something that was odd about a directory. None of it keeps a store from opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file.
    pub path: PathBuf,
    /// The byte at which it shows, where that makes sense.
    pub position: u64,
    /// What was odd, and what was done.
    pub reason: String,
    /// How many bytes of the log were cut off, in this file and the later ones.
    pub bytes_lost: u64,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, position {}: {}", self.path.display(), self.position, self.reason)?;
        if self.bytes_lost > 0 {
            write!(f, "; the log is cut there and {} bytes are lost", self.bytes_lost)?;
        }
        Ok(())
    }
}

impl Note {
    fn odd(path: PathBuf, reason: impl ToString) -> Note {
        Note { path, position: 0, reason: reason.to_string(), bytes_lost: 0 }
    }

    fn zeros(Zeros { path, position, len, .. }: Zeros) -> Note {
        let reason = format!(
            "{len} zero bytes are behind the last batch: room for more, from a node that was not stopped, or what a \
             power cut has left of writes that nobody was told of; they are cut off"
        );
        Note { path, position, reason, bytes_lost: 0 }
    }

    pub(crate) fn no_election(log_dir: &Path, last: Epoch) -> Note {
        let reason = format!(
            "is missing, though the log has epoch {last}: if it was removed, this replica may have \
             forgotten a vote"
        );
        Note::odd(log_dir.join(crate::quorum_state::FILE_NAME), reason)
    }
}

/// A log that was recovered.
#[derive(Debug)]
pub(crate) struct Recovered<F: FileSystem> {
    pub(crate) log: Log<F>,
    pub(crate) log_start: Offset,
    pub(crate) epochs: Vec<(Epoch, Offset)>,
    pub(crate) control: Vec<(Offset, ControlRecord)>,
    pub(crate) notes: Vec<Note>,
}

/// Recovers the log in this directory, which nobody else may have open.
pub(crate) fn recover<F: FileSystem>(
    fs: &F,
    dir: &Path,
    limits: RollLimits,
) -> Result<Recovered<F>, StorageError> {
    let mut names = fs.list(dir).map_err(StorageError::io("list", dir))?;
    names.sort_unstable();
    let mut notes = Vec::new();
    let bases = check_names(dir, &names, &mut notes)?;
    remove_leftovers(fs, dir, &names, &bases)?;

    let mut found = Found::default();
    for base in &bases {
        if !found.is_cut() {
            found.read_segment(fs, dir, *base, OpenHow::Write, &mut |_, _| ())?;
        }
    }
    let checkpointed = repair_checkpoint(fs, dir, &found.epochs, &mut notes)?;
    notes.extend(std::mem::take(&mut found.zeros).into_iter().map(Note::zeros));
    cut(fs, dir, &bases, &mut found, &mut notes)?;
    if found.segments.is_empty() {
        found.segments.push(Segment::create(fs, dir, Offset::ZERO)?);
        fs.sync_dir(dir).map_err(StorageError::io("sync", dir))?;
    }
    for segment in &found.segments {
        let path = segment::path(dir, segment.base, segment::INDEX);
        repair_index(fs, &path, &segment.index_content())?;
        let path = segment::path(dir, segment.base, segment::TIME_INDEX);
        repair_index(fs, &path, &segment.time_index_content())?;
    }
    let Found { segments, epochs, control, .. } = found;
    let log = Log::new(fs.clone(), dir.to_owned(), limits, segments, epochs.clone(), checkpointed);
    Ok(Recovered { log, log_start: Offset::ZERO, epochs, control, notes })
}

/// Finds the segments, and refuses what this version cannot open. Changes nothing.
pub(crate) fn check_names(
    dir: &Path,
    names: &[String],
    notes: &mut Vec<Note>,
) -> Result<Vec<Offset>, StorageError> {
    let mut bases = Vec::new();
    for name in names {
        let path = dir.join(name);
        if let Some(id) = checkpoint::parse_file_name(name) {
            if id != OffsetAndEpoch::default() {
                return Err(StorageError::HasSnapshots { path, reason: "this is one" });
            }
        } else if name.contains(".checkpoint") && !is_leftover_checkpoint(name) {
            notes.push(Note::odd(
                path,
                "is not named as a checkpoint is, and Kafka would not start",
            ));
        } else if name.ends_with(".swap") {
            let reason = "a log that is never compacted has no such file; move it away";
            return Err(StorageError::unreadable(&path, "name", reason));
        } else if let Some((base, segment::LOG)) = segment::parse_name(name) {
            bases.push(base);
        }
    }
    match bases.first() {
        Some(first) if *first > Offset::ZERO => Err(StorageError::HasSnapshots {
            path: segment::path(dir, *first, segment::LOG),
            reason: "it is the first segment but does not begin at offset 0",
        }),
        _ => Ok(bases),
    }
}

/// `…-….checkpoint.deleted` and `…-…-….checkpoint.part`.
fn is_leftover_checkpoint(name: &str) -> bool {
    let Some((id, suffix)) = name.split_once(".checkpoint.") else { return false };
    let id = id.get(..31).unwrap_or("");
    matches!(suffix, "deleted" | "part")
        && checkpoint::parse_file_name(&format!("{id}.checkpoint")).is_some()
}

/// Removes what Kafka removes at its start: unfinished and deleted files, indexes without a log.
fn remove_leftovers<F: FileSystem>(
    fs: &F,
    dir: &Path,
    names: &[String],
    bases: &[Offset],
) -> Result<(), StorageError> {
    let tmp = [
        crate::quorum_state::FILE_NAME,
        epoch_checkpoint::FILE_NAME,
        crate::partition_metadata::FILE_NAME,
    ];
    for name in names {
        let is_orphan = match segment::parse_name(name) {
            Some((base, segment::INDEX | segment::TIME_INDEX)) => {
                bases.binary_search(&base).is_err()
            }
            _ => false,
        };
        let is_tmp = name.strip_suffix(".tmp").is_some_and(|name| tmp.contains(&name));
        let is_deleted = name.ends_with(".cleaned")
            || name.ends_with(".deleted") && !name.contains(".checkpoint");
        if is_orphan || is_tmp || is_deleted || is_leftover_checkpoint(name) {
            let path = dir.join(name);
            fs.remove(&path).map_err(StorageError::io("remove", &path))?;
        }
    }
    Ok(())
}

/// What reading the segments has found so far.
#[derive(Debug)]
pub(crate) struct Found<F: FileSystem> {
    start: Offset,
    segments: Vec<Segment<F>>,
    pub(crate) epochs: Vec<(Epoch, Offset)>,
    control: Vec<(Offset, ControlRecord)>,
    /// The last batch so far, if it opens an epoch.
    opening: Option<Opening>,
    /// What ends a segment and is no batch.
    pub(crate) zeros: Vec<Zeros>,
    /// Where the log is no longer good and why. Nothing is read after that.
    pub(crate) cut: Option<Cut>,
}

/// The end of a segment, if that is zeros.
#[derive(Clone, Debug)]
pub(crate) struct Zeros {
    pub(crate) path: PathBuf,
    pub(crate) position: u64,
    /// The log end there.
    pub(crate) end: Offset,
    pub(crate) len: u64,
}

#[derive(Debug)]
pub(crate) struct Cut {
    /// In the segment that begins here.
    pub(crate) base: Offset,
    pub(crate) position: u64,
    pub(crate) reason: String,
}

/// Where a batch is that opens an epoch.
#[derive(Clone, Copy, Debug)]
struct Opening {
    segment: Offset,
    offset: Offset,
    position: u64,
}

/// Why a whole batch with the right CRC cannot be the next one.
enum Misfit {
    Offset(String),
    Epoch(String),
}

impl<F: FileSystem> Default for Found<F> {
    fn default() -> Found<F> {
        Found::starting_at(Offset::ZERO)
    }
}

impl<F: FileSystem> Found<F> {
    /// Nothing yet of a log whose first segment begins here.
    pub(crate) fn starting_at(start: Offset) -> Found<F> {
        Found {
            start,
            segments: Vec::new(),
            epochs: Vec::new(),
            control: Vec::new(),
            opening: None,
            zeros: Vec::new(),
            cut: None,
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// The log end, as far as the log is good.
    pub(crate) fn end(&self) -> Offset {
        self.segments.last().map_or(self.start, |segment| segment.end)
    }

    /// Reads the next segment, up to where it is no longer good. `seen` gets every batch that is.
    pub(crate) fn read_segment(
        &mut self,
        fs: &F,
        dir: &Path,
        base: Offset,
        how: OpenHow,
        seen: &mut dyn FnMut(&Path, &LogBatch),
    ) -> Result<(), StorageError> {
        let end = self.end();
        if base != end {
            let reason = format!("the segment before it ends at offset {end}");
            self.cut = Some(Cut { base, position: 0, reason });
            return Ok(());
        }
        let path = segment::path(dir, base, segment::LOG);
        let file = fs.open(&path, how).map_err(StorageError::io("open", &path))?;
        if how == OpenHow::Write {
            // What is found now is relied on from here, so it must be what the medium has: a process before this one may
            // have been killed before its sync, or have seen it fail, after which the cache shows what was lost.
            file.sync_data().map_err(StorageError::io("sync", &path))?;
            file.drop_cache().map_err(StorageError::io("read", &path))?;
        }
        let size = file.size().map_err(StorageError::io("read", &path))?;
        let mut segment = Segment::<F>::new(base, file);
        let file = segment.file.clone();
        let mut scan = Scan::new(&*file, &path, 0, size);
        let written = zeros_from(&*file, &path, 0, size)?;
        let mut retries = 0;
        loop {
            let position = segment.size;
            if position >= written {
                self.end_with_zeros(&segment, &path, size, how)?;
                break;
            }
            let reason = match scan.next() {
                Ok(None) => break,
                Ok(Some(batch)) => {
                    let records = scan.control_records(&batch)?;
                    match self.add_batch(&mut segment, &batch, records) {
                        Ok(()) => {
                            seen(&path, &batch);
                            continue;
                        }
                        Err(Misfit::Offset(reason)) => reason,
                        Err(Misfit::Epoch(reason)) => {
                            self.cut_epoch(segment, position, reason);
                            return Ok(());
                        }
                    }
                }
                // Beside a writer this part may have been written since it was read.
                Err(StorageError::Corrupt { .. })
                    if how == OpenHow::Read
                        && scan.has_changed(
                            file.size().map_err(StorageError::io("read", &path))?,
                        )? =>
                {
                    retries += 1;
                    // Its writer is faster than this reader.
                    if retries == MAX_RETRIES {
                        break;
                    }
                    continue;
                }
                Err(StorageError::Corrupt { reason, .. }) => reason,
                Err(error) => return Err(error),
            };
            self.cut = Some(Cut { base, position, reason });
            break;
        }
        self.segments.push(segment);
        Ok(())
    }

    /// What is behind the last batch of this segment is zeros, if anything: room for more.
    fn end_with_zeros(
        &mut self,
        segment: &Segment<F>,
        path: &Path,
        size: u64,
        how: OpenHow,
    ) -> Result<(), StorageError> {
        let (position, end) = (segment.size, segment.end);
        if position < size {
            if how == OpenHow::Write {
                segment.file.set_len(position).map_err(StorageError::io("cut", path))?;
                segment.file.sync_data().map_err(StorageError::io("sync", path))?;
            }
            self.zeros.push(Zeros { path: path.to_owned(), position, end, len: size - position });
        }
        Ok(())
    }

    /// Takes the next batch, or says why it cannot be the next one.
    fn add_batch(
        &mut self,
        segment: &mut Segment<F>,
        batch: &LogBatch,
        records: Vec<(Offset, ControlRecord)>,
    ) -> Result<(), Misfit> {
        let (base, end) = (batch.base(), batch.end());
        if base != segment.end {
            let reason = format!("the batch begins at offset {base}, not {}", segment.end);
            return Err(Misfit::Offset(reason));
        }
        if end.0 - segment.base.0 > i64::from(i32::MAX) {
            let reason = format!("offset {end} is too far from the segment's first");
            return Err(Misfit::Offset(reason));
        }
        let opens = matches!(records.first(), Some((_, ControlRecord::LeaderChange(_))));
        self.check_epoch(batch.epoch(), opens)?;
        self.opening = opens.then_some(Opening {
            segment: segment.base,
            offset: base,
            position: batch.position(),
        });
        add_epoch(&mut self.epochs, batch.epoch(), base);
        self.control.extend(records.into_iter().filter(|(_, record)| {
            matches!(record, ControlRecord::KRaftVersion(_) | ControlRecord::Voters(_))
        }));
        segment.add(BatchPlace {
            end,
            max_timestamp: batch.batch().max_timestamp(),
            position: batch.position(),
            len: batch.bytes().len() as u64,
        });
        Ok(())
    }

    /// The CRC does not cover the epoch, so a wrong bit in it shows only in what surrounds it: each epoch
    /// begins with its leader's record, and only there.
    fn check_epoch(&self, epoch: Epoch, opens: bool) -> Result<(), Misfit> {
        let last = self.epochs.last().map_or(Epoch(0), |(last, _)| *last);
        let reason = match epoch.cmp(&last) {
            _ if epoch < Epoch(1) => format!("the batch is of epoch {epoch}, which has no leader"),
            Ordering::Less => format!("the batch is of epoch {epoch}, after one of epoch {last}"),
            Ordering::Equal if opens => {
                format!("a leader begins epoch {epoch}, but the batch before is of that epoch")
            }
            Ordering::Greater if !opens && last > Epoch(0) => {
                format!("epoch {epoch} follows epoch {last} without its leader's record")
            }
            _ => return Ok(()),
        };
        Err(Misfit::Epoch(reason))
    }

    /// Cuts the log at this batch, whose epoch does not fit. If the batch before it opens an epoch, that
    /// one may as well be the wrong one, and a log that ends with an epoch that never was could win an
    /// election: it goes too.
    fn cut_epoch(&mut self, mut segment: Segment<F>, position: u64, reason: String) {
        let Some(opening) = self.opening.take() else {
            self.cut = Some(Cut { base: segment.base, position, reason });
            self.segments.push(segment);
            return;
        };
        if segment.base == opening.segment {
            segment.truncate(opening.offset, opening.position);
            self.segments.push(segment);
        } else if let Some(before) = self.segments.last_mut() {
            before.truncate(opening.offset, opening.position);
        }
        self.epochs.retain(|(_, start)| *start < opening.offset);
        self.control.retain(|(offset, _)| *offset < opening.offset);
        let reason = format!("this batch opens an epoch, but after it {reason}");
        self.cut = Some(Cut { base: opening.segment, position: opening.position, reason });
    }
}

/// Cuts the log where it is no longer good, durably: later segments first, so that there never is a hole.
fn cut<F: FileSystem>(
    fs: &F,
    dir: &Path,
    bases: &[Offset],
    found: &mut Found<F>,
    notes: &mut Vec<Note>,
) -> Result<(), StorageError> {
    let Some(Cut { base, position, reason }) = found.cut.take() else { return Ok(()) };
    let kept: BTreeSet<Offset> = found.segments.iter().map(|segment| segment.base).collect();
    let mut bytes_lost = 0;
    let gone: Vec<Offset> = bases.iter().copied().filter(|base| !kept.contains(base)).collect();
    for base in gone.iter().rev() {
        let path = segment::path(dir, *base, segment::LOG);
        let file = fs.open(&path, OpenHow::Read).map_err(StorageError::io("open", &path))?;
        let size = file.size().map_err(StorageError::io("read", &path))?;
        bytes_lost += written_to(&file, &path, 0, size)?;
        remove_segment(fs, dir, *base)?;
    }
    if !gone.is_empty() {
        fs.sync_dir(dir).map_err(StorageError::io("sync", dir))?;
    }
    if let Some(segment) = found.segments.iter().find(|segment| segment.base == base) {
        let path = segment::path(dir, base, segment::LOG);
        let size = segment.file.size().map_err(StorageError::io("read", &path))?;
        bytes_lost += written_to(&*segment.file, &path, position, size)? - position;
        segment.file.set_len(position).map_err(StorageError::io("cut", &path))?;
        segment.file.sync_data().map_err(StorageError::io("sync", &path))?;
    }
    notes.push(Note { path: segment::path(dir, base, segment::LOG), position, reason, bytes_lost });
    Ok(())
}

/// Where that ends which was written from this position on: room for more does not count, but whoever ends with a few
/// zeros may have written them.
pub(crate) fn written_to<F: File>(
    file: &F,
    path: &Path,
    position: u64,
    size: u64,
) -> Result<u64, StorageError> {
    let zeros = zeros_from(file, path, position, size)?;
    Ok(if size - zeros < HEADER_LEN as u64 { size } else { zeros })
}

/// Makes sure that `leader-epoch-checkpoint` names no epoch that the log does not have. Returns what it
/// says then.
fn repair_checkpoint<F: FileSystem>(
    fs: &F,
    dir: &Path,
    epochs: &[(Epoch, Offset)],
    notes: &mut Vec<Note>,
) -> Result<Vec<(Epoch, Offset)>, StorageError> {
    let path = epoch_checkpoint::path(dir);
    let reason = match epoch_checkpoint::read(fs, dir)? {
        // Behind the log: it is brought up to date when there is time.
        Ok(entries) if epochs.starts_with(&entries) => return Ok(entries),
        Ok(_) => "it has other epochs than the log".to_owned(),
        Err(reason) => reason,
    };
    small_file::replace(fs, &path, epoch_checkpoint::format(epochs).as_bytes())?;
    notes.push(Note::odd(path, format!("{reason}; written anew from the log")));
    Ok(epochs.to_vec())
}

/// Writes an index file anew unless it has just this content.
fn repair_index<F: FileSystem>(fs: &F, path: &Path, content: &[u8]) -> Result<(), StorageError> {
    if let Ok(file) = fs.open(path, OpenHow::Read)
        && file.size().is_ok_and(|len| len == content.len() as u64)
    {
        let mut there = vec![0; content.len()];
        if file.read_at(&mut there, 0).is_ok_and(|n| n == content.len()) && there == content {
            return Ok(());
        }
    }
    write_index(fs, path, content)
}
