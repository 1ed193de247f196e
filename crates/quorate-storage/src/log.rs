//! The log: segments in a row, without holes.
//!
//! Invariant: what is in memory is what is on disk, so a reader that looks here first never meets bytes
//! that were cut. One thread appends and truncates; any number of readers share the segments with it.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use quorate_core::{Epoch, Offset};

use crate::commit::EncodedBatch;
use crate::epoch_checkpoint;
use crate::error::StorageError;
use crate::fs::{File, FileSystem, OpenHow};
use crate::scan::Scan;
use crate::segment::{self, BatchPlace, Segment};
use crate::small_file;

/// When a segment is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollLimits {
    /// `metadata.log.segment.bytes`.
    pub segment_bytes: u64,
    /// `metadata.log.segment.ms`.
    pub segment_ms: u64,
    /// `quorate.log.preallocate.bytes`: while appends come often, the file is made longer ahead of them, by so much.
    pub preallocate_bytes: u64,
}

impl Default for RollLimits {
    /// Kafka's defaults: 1 GiB, seven days. Room is made for 4 MiB.
    fn default() -> RollLimits {
        let week = 7 * 24 * 60 * 60 * 1000;
        RollLimits { segment_bytes: 1 << 30, segment_ms: week, preallocate_bytes: 4 << 20 }
    }
}

/// Whether appends come often, by the time in their batches.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Since when they are counted, in milliseconds.
    since: i64,
    appends: u32,
    is_busy: bool,
}

impl Pace {
    /// So many appends in a second are many.
    const BUSY: u32 = 16;

    fn count(&mut self, now: i64) {
        if !(0..1000).contains(&now.saturating_sub(self.since)) {
            let was_before = (0..2000).contains(&now.saturating_sub(self.since));
            let is_busy = was_before && self.appends >= Pace::BUSY;
            *self = Pace { since: now, appends: 0, is_busy };
        }
        self.appends = self.appends.saturating_add(1);
        self.is_busy |= self.appends >= Pace::BUSY;
    }
}

/// The log as the commit thread has it.
#[derive(Debug)]
pub(crate) struct Log<F: FileSystem> {
    fs: F,
    dir: PathBuf,
    limits: RollLimits,
    shared: Arc<Shared<F>>,
    /// What `leader-epoch-checkpoint` says.
    checkpointed: Vec<(Epoch, Offset)>,
    /// Rolled segments whose index files are not written yet.
    unindexed: Vec<Offset>,
    pace: Pace,
    /// The file system has given no room for this segment.
    has_no_room: bool,
    /// The active file was made shorter since its last sync.
    is_cut_unsynced: bool,
}

/// What the commit thread and the readers share.
#[derive(Debug)]
pub(crate) struct Shared<F: FileSystem> {
    segments: RwLock<Segments<F>>,
}

#[derive(Debug)]
pub(crate) struct Segments<F: FileSystem> {
    /// Ascending and without holes; the last one is written to. Never empty.
    pub(crate) list: Vec<Segment<F>>,
    /// Each epoch with its first offset, ascending.
    pub(crate) epochs: Vec<(Epoch, Offset)>,
    /// Counts truncations. What a reader read counts only if this is the same afterwards.
    pub(crate) generation: u64,
}

impl<F: FileSystem> Shared<F> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Segments<F>> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Segments<F>> {
        self.segments.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: FileSystem> Segments<F> {
    fn active(&self) -> &Segment<F> {
        self.list.last().expect("a log has a segment")
    }

    fn active_mut(&mut self) -> &mut Segment<F> {
        self.list.last_mut().expect("a log has a segment")
    }

    /// The index of the segment that holds this offset, or would.
    pub(crate) fn holding(&self, offset: Offset) -> usize {
        self.list.partition_point(|segment| segment.base <= offset).saturating_sub(1)
    }
}

impl<F: FileSystem> Log<F> {
    pub(crate) fn new(
        fs: F,
        dir: PathBuf,
        limits: RollLimits,
        segments: Vec<Segment<F>>,
        epochs: Vec<(Epoch, Offset)>,
        checkpointed: Vec<(Epoch, Offset)>,
    ) -> Log<F> {
        assert!(!segments.is_empty(), "a log has a segment");
        let segments = RwLock::new(Segments { list: segments, epochs, generation: 0 });
        let shared = Arc::new(Shared { segments });
        Log {
            fs,
            dir,
            limits,
            shared,
            checkpointed,
            unindexed: Vec::new(),
            pace: Pace::default(),
            has_no_room: false,
            is_cut_unsynced: false,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<F>> {
        &self.shared
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn end(&self) -> Offset {
        self.shared.read().active().end
    }

    /// Writes these batches and syncs them once, except where a segment is rolled in between.
    pub(crate) fn append(&mut self, batches: &[EncodedBatch]) -> Result<(), StorageError> {
        self.pace.count(batches.last().map_or(0, |batch| batch.max_timestamp));
        let mut rest = batches;
        while !rest.is_empty() {
            let fit = self.count_fitting(rest);
            let Some((now, later)) = rest.split_at_checked(fit).filter(|_| fit > 0) else {
                self.roll()?;
                continue;
            };
            self.write_to_active(now)?;
            rest = later;
        }
        self.sync_active()
    }

    /// Cuts the log so that it ends here.
    pub(crate) fn truncate(&mut self, to: Offset) -> Result<(), StorageError> {
        let (position, gone) = self.find_cut(to)?;
        let kept = |epochs: &[(Epoch, Offset)]| {
            epochs.iter().copied().filter(|(_, start)| *start < to).collect::<Vec<_>>()
        };
        if self.checkpointed.iter().any(|(_, start)| *start >= to) {
            let epochs = kept(&self.shared.read().epochs);
            self.write_checkpoint(epochs)?;
            small_file::sync_parent(&self.fs, &epoch_checkpoint::path(&self.dir))?;
        }
        let (file, shrinks) = {
            // Before a file changes: readers that are under way will find that the generation moved on.
            let mut segments = self.shared.write();
            segments.generation += 1;
            segments.epochs = kept(&segments.epochs);
            let keep = segments.list.len() - gone.len();
            segments.list.truncate(keep);
            let active = segments.active_mut();
            let shrinks = position < active.file_len;
            active.truncate(to, position);
            (active.file.clone(), shrinks)
        };
        self.unindexed.retain(|base| !gone.contains(base));
        for base in gone.iter().rev() {
            remove_segment(&self.fs, &self.dir, *base)?;
        }
        if !gone.is_empty() {
            self.sync_dir()?;
        }
        if shrinks {
            let path = self.active_path();
            file.set_len(position).map_err(StorageError::io("cut", &path))?;
            file.sync_data().map_err(StorageError::io("sync", &path))?;
        }
        Ok(())
    }

    pub(crate) fn is_untidy(&self) -> bool {
        let segments = self.shared.read();
        !self.unindexed.is_empty()
            || self.checkpointed != segments.epochs
            || segments.active().size < segments.active().file_len
    }

    pub(crate) fn tidy(&mut self) -> Result<(), StorageError> {
        self.give_room_back()?;
        while let Some(base) = self.unindexed.pop() {
            self.write_indexes(base)?;
        }
        let epochs = self.shared.read().epochs.clone();
        if self.checkpointed != epochs {
            self.write_checkpoint(epochs)?;
        }
        Ok(())
    }

    pub(crate) fn close(&mut self) -> Result<(), StorageError> {
        let active = self.shared.read().active().base;
        self.unindexed.push(active);
        self.tidy()?;
        // Zeros behind a log that was closed are damage.
        if self.is_cut_unsynced { self.sync_active() } else { Ok(()) }
    }

    /// How many of these batches the active segment takes: none if it is to be rolled first.
    fn count_fitting(&self, batches: &[EncodedBatch]) -> usize {
        let segments = self.shared.read();
        let active = segments.active();
        let mut size = active.size;
        let mut first_timestamp = active.first_timestamp;
        let mut count = 0;
        for batch in batches {
            let first = *first_timestamp.get_or_insert(batch.max_timestamp);
            let age = u64::try_from(batch.max_timestamp.saturating_sub(first)).unwrap_or(0);
            let full = size + batch.bytes.len() as u64 > self.limits.segment_bytes
                || age > self.limits.segment_ms
                || batch.end.0 - active.base.0 > i64::from(i32::MAX);
            // However large, a batch has room in an empty segment.
            if full && size > 0 {
                break;
            }
            size += batch.bytes.len() as u64;
            count += 1;
        }
        count
    }

    fn write_to_active(&mut self, batches: &[EncodedBatch]) -> Result<(), StorageError> {
        let (file, start) = {
            let segments = self.shared.read();
            let active = segments.active();
            let mut end = active.end;
            for batch in batches {
                assert_eq!(batch.base, end, "a batch is appended at the log end");
                assert!(batch.end > batch.base, "a batch has a record");
                end = batch.end;
            }
            (active.file.clone(), active.size)
        };
        self.make_room(
            &file,
            start + batches.iter().map(|batch| batch.bytes.len() as u64).sum::<u64>(),
        )?;
        let slices: Vec<IoSlice<'_>> =
            batches.iter().map(|batch| IoSlice::new(&batch.bytes)).collect();
        if let Err(error) = file.write_all_at(&slices, start) {
            return Err(StorageError::io("write", &self.active_path())(error));
        }
        let mut segments = self.shared.write();
        for batch in batches {
            let active = segments.active_mut();
            active.add(BatchPlace {
                end: batch.end,
                max_timestamp: batch.max_timestamp,
                position: active.size,
                len: batch.bytes.len() as u64,
            });
            add_epoch(&mut segments.epochs, batch.epoch, batch.base);
        }
        Ok(())
    }

    /// Makes the active file longer than is needed now, or as long as its batches are. A write within the file is
    /// durable sooner: the file system has no length to record.
    fn make_room(&mut self, file: &F::File, needed: u64) -> Result<(), StorageError> {
        if !self.pace.is_busy {
            return self.give_room_back();
        }
        let from = self.shared.read().active().file_len;
        let to =
            needed.saturating_add(self.limits.preallocate_bytes).min(self.limits.segment_bytes);
        if needed <= from || to <= needed || self.has_no_room {
            return Ok(());
        }
        match file.allocate(from, to) {
            Ok(()) => self.shared.write().active_mut().file_len = to,
            // A disk that has no room ahead, or a file system that cannot, may still take what is to be written.
            Err(error) if is_for_want_of_room(&error) => {
                tracing::info!(%error, "no room is made ahead in this segment of the log: commits take a little longer");
                self.has_no_room = true;
                file.set_len(from).map_err(StorageError::io("cut", &self.active_path()))?;
            }
            Err(error) => return Err(StorageError::io("extend", &self.active_path())(error)),
        }
        Ok(())
    }

    /// Makes the active file as long as its batches are: durable with the next sync.
    fn give_room_back(&mut self) -> Result<(), StorageError> {
        let (file, size, file_len) = {
            let segments = self.shared.read();
            let active = segments.active();
            (active.file.clone(), active.size, active.file_len)
        };
        if size < file_len {
            file.set_len(size).map_err(StorageError::io("cut", &self.active_path()))?;
            self.shared.write().active_mut().file_len = size;
            self.is_cut_unsynced = true;
        }
        Ok(())
    }

    fn sync_active(&mut self) -> Result<(), StorageError> {
        let file = self.shared.read().active().file.clone();
        file.sync_data().map_err(|error| StorageError::io("sync", &self.active_path())(error))?;
        self.is_cut_unsynced = false;
        Ok(())
    }

    fn roll(&mut self) -> Result<(), StorageError> {
        self.give_room_back()?;
        self.sync_active()?;
        let (old, end) = {
            let segments = self.shared.read();
            (segments.active().base, segments.active().end)
        };
        let segment = Segment::create(&self.fs, &self.dir, end)?;
        self.sync_dir()?;
        self.shared.write().list.push(segment);
        self.has_no_room = false;
        self.unindexed.push(old);
        Ok(())
    }

    /// Where the log is to be cut: the position in the segment that stays last, and the segments after it.
    fn find_cut(&self, to: Offset) -> Result<(u64, Vec<Offset>), StorageError> {
        let (file, path, segment_base, start, size, gone) = {
            let segments = self.shared.read();
            let index = segments.holding(to);
            let segment = segments.list.get(index).expect("a log has a segment");
            assert!(to >= segment.base, "the log is cut at or above its start");
            assert!(to <= segments.active().end, "the log is cut at or below its end");
            let gone = segments.list.iter().skip(index + 1).map(|segment| segment.base).collect();
            if to == segment.end {
                return Ok((segment.size, gone));
            }
            let path = segment::path(&self.dir, segment.base, segment::LOG);
            let start = segment.position_before(to);
            (segment.file.clone(), path, segment.base, start, segment.size, gone)
        };
        if to == segment_base {
            return Ok((0, gone));
        }
        let mut position = start;
        let mut scan = Scan::new(&*file, &path, start, size);
        while let Some(batch) = scan.next()? {
            position = batch.position();
            if batch.base() == to {
                return Ok((position, gone));
            }
            if batch.end() > to {
                let (base, end) = (batch.base().0, batch.end().0);
                return Err(StorageError::InsideBatch { path, to: to.0, base, end });
            }
        }
        Err(StorageError::corrupt(&path, position, format!("offset {to} is not there")))
    }

    fn write_checkpoint(&mut self, epochs: Vec<(Epoch, Offset)>) -> Result<(), StorageError> {
        let path = epoch_checkpoint::path(&self.dir);
        small_file::replace_unsynced(
            &self.fs,
            &path,
            epoch_checkpoint::format(&epochs).as_bytes(),
        )?;
        self.checkpointed = epochs;
        Ok(())
    }

    fn write_indexes(&self, base: Offset) -> Result<(), StorageError> {
        let (index, time_index) = {
            let segments = self.shared.read();
            let found = segments.list.iter().find(|segment| segment.base == base);
            let Some(segment) = found else { return Ok(()) };
            (segment.index_content(), segment.time_index_content())
        };
        write_index(&self.fs, &segment::path(&self.dir, base, segment::INDEX), &index)?;
        write_index(&self.fs, &segment::path(&self.dir, base, segment::TIME_INDEX), &time_index)
    }

    fn active_path(&self) -> PathBuf {
        segment::path(&self.dir, self.shared.read().active().base, segment::LOG)
    }

    fn sync_dir(&self) -> Result<(), StorageError> {
        self.fs.sync_dir(&self.dir).map_err(StorageError::io("sync", &self.dir))
    }
}

fn is_for_want_of_room(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, Unsupported};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | Unsupported)
}

/// Notes the epoch of the batch at this offset, if it is new.
pub(crate) fn add_epoch(epochs: &mut Vec<(Epoch, Offset)>, epoch: Epoch, base: Offset) {
    match epochs.last() {
        Some((last, _)) if *last == epoch => {}
        Some((last, _)) => {
            assert!(*last < epoch, "epochs never decrease");
            epochs.push((epoch, base));
        }
        None => epochs.push((epoch, base)),
    }
}

/// Writes an index file, not durably: it is never trusted.
pub(crate) fn write_index<F: FileSystem>(
    fs: &F,
    path: &Path,
    content: &[u8],
) -> Result<(), StorageError> {
    let file = fs.open(path, OpenHow::Truncate).map_err(StorageError::io("create", path))?;
    if content.is_empty() {
        return Ok(());
    }
    file.write_all_at(&[IoSlice::new(content)], 0).map_err(StorageError::io("write", path))
}

/// Removes the files of a segment, the log itself first: without it, Kafka removes the others.
pub(crate) fn remove_segment<F: FileSystem>(
    fs: &F,
    dir: &Path,
    base: Offset,
) -> Result<(), StorageError> {
    use segment::{INDEX, LOG, PRODUCER_SNAPSHOT, TIME_INDEX};
    for suffix in [LOG, INDEX, TIME_INDEX, PRODUCER_SNAPSHOT] {
        let path = segment::path(dir, base, suffix);
        match fs.remove(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StorageError::io("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}
