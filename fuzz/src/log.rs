//! Arbitrary bytes as the segments of a directory: recovery, reading and verifying must agree.
//!
//! ```text
//! flags, segments but one (byte % 4), then of each segment but the last: base (byte), length (short), bytes;
//! the last takes what is left. A base of 0 stands for where the segment before it ends.
//! ```

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use quorate_core::io::WriteId;
use quorate_core::{Epoch, NodeId, Offset};
use quorate_storage::mem_fs::{MemFs, OperationKind};
use quorate_storage::verify::{AtStart, Verified, verify};
use quorate_storage::{
    EncodedBatch, LOG_DIR, LogReader, Opened, Options, RollLimits, StorageError, Store, StoreWrite,
    meta_properties, read_log,
};
use quorate_wire::batch::{BatchHeader, batches, encode_data};

use crate::source::{Source, mend_crcs, within_bounds};

pub(crate) const META: &[u8] =
    b"version=1\ncluster.id=QuorateGoldenClusterAA\nnode.id=1\ndirectory.id=QuorateDirOfNode001AAA\n";
const ELECTION: &[u8] = br#"{"leaderId":-1,"leaderEpoch":1000,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;

pub(crate) fn dir() -> PathBuf {
    PathBuf::from("/kafka")
}

pub(crate) fn log_dir() -> PathBuf {
    dir().join(LOG_DIR)
}

/// A disk with a formatted directory, but for its log.
pub(crate) fn formatted() -> MemFs {
    let fs = MemFs::new([log_dir()]);
    fs.install(&dir().join("meta.properties"), META);
    fs
}

/// The target.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let flags = source.byte();
    let more = source.below(4);
    let fs = formatted();
    if flags & 2 != 0 {
        fs.install(&log_dir().join("quorum-state"), ELECTION);
    }
    let mut written = Vec::new();
    let mut end = 0;
    for index in 0..=more {
        let (base, content) = match index < more {
            true => (source.byte(), source.take_counted()),
            false => (0, source.rest()),
        };
        let base = if index == 0 || base == 0 { end } else { i64::from(base) };
        let mut content = content.to_vec();
        if flags & 1 != 0 {
            mend_crcs(&mut content);
        }
        let bytes = Bytes::from(content.clone());
        end = batches(bytes).filter_map(Result::ok).last().map_or(end, |batch| batch.end_offset());
        let name = format!("{base:020}");
        fs.install(&log_dir().join(name.clone() + ".log"), &content);
        if flags & 4 != 0 {
            fs.install(&log_dir().join(name.clone() + ".index"), &content);
            fs.install(&log_dir().join(name + ".timeindex"), b"");
        }
        written.push((base, content));
    }
    // In the order of their names, which is how they are found; of two with one name the last counts.
    written.reverse();
    written.sort_by_key(|(base, _)| *base);
    written.dedup_by_key(|(base, _)| *base);
    let written: Vec<Vec<u8>> = written.into_iter().map(|(_, content)| content).collect();
    if let Some(opened) = check_directory(&fs, data.len()) {
        check_log(opened, &fs, &written, data.len());
    }
}

/// Opened by the node whose directory it is.
fn options(fs: &MemFs) -> Options {
    let meta = meta_properties::read(fs, &dir()).ok().flatten();
    let node = meta.map_or(NodeId(1), |meta| meta.node);
    Options { dir: dir(), node, limits: RollLimits::default() }
}

/// Verifies and opens a directory, which must come to the same; gives what was opened.
pub(crate) fn check_directory(fs: &MemFs, len: usize) -> Option<Opened<MemFs>> {
    const BUFFERS: u64 = 16 << 20;
    fs.start_record();
    let verified = within_bounds(len, BUFFERS, || verify(fs, &dir(), &mut |_| ()));
    let verified = verified.expect("the disk is sound");
    let changes = fs.record().into_iter().find(|operation| {
        !matches!(operation.kind, OperationKind::Open | OperationKind::Read | OperationKind::List)
    });
    assert_eq!(changes, None, "to verify changes nothing");
    let refuses = verified.damage.iter().any(|damage| damage.at_start == AtStart::Refuses);
    match within_bounds(len, BUFFERS, || Store::open(fs.clone(), options(fs))) {
        Err(StorageError::HasSnapshots { .. }) => None,
        Err(error) => {
            assert!(!matches!(error, StorageError::Io { .. }), "the disk is sound: {error}");
            assert!(refuses, "a start says {error}, verify {verified:?}");
            None
        }
        Ok(opened) => {
            assert!(!refuses, "a start goes well, verify says {verified:?}");
            agree(&verified, &opened);
            Some(opened)
        }
    }
}

fn agree(verified: &Verified, opened: &Opened<MemFs>) {
    assert_eq!((verified.log_start, verified.log_end), (opened.log_start, opened.log_end));
    let cuts = verified.damage.iter().filter_map(|damage| match damage.at_start {
        AtStart::Cuts(loss) => Some(loss),
        _ => None,
    });
    let lost: u64 = opened.notes.iter().map(|note| note.bytes_lost).sum();
    let named: u64 = cuts.clone().map(|loss| loss.bytes).sum();
    assert_eq!(named, lost, "{verified:?}, {:?}", opened.notes);
    assert!(cuts.clone().all(|loss| loss.end == opened.log_end), "{verified:?}");
    let mut last = None;
    for (epoch, start) in &opened.epochs {
        assert!(last < Some((*epoch, *start)) && *start < opened.log_end, "{:?}", opened.epochs);
        last = Some((*epoch, *start));
    }
    for (offset, _) in &opened.control {
        assert!(opened.log_start <= *offset && *offset < opened.log_end, "{:?}", opened.control);
    }
}

/// The batches are the first ones of these segments. Zeros at the end of a segment are none.
fn check_prefix(read: &[u8], written: &[Vec<u8>]) {
    let mut segments = written.iter().map(Vec::as_slice);
    let mut rest = segments.next().unwrap_or_default();
    for batch in batches(Bytes::copy_from_slice(read)) {
        let batch = batch.expect("what was read are batches");
        while !rest.starts_with(batch.bytes()) {
            let is_room = rest.iter().all(|byte| *byte == 0);
            assert!(is_room, "the log is no prefix of what was written");
            rest = segments.next().expect("the log is no prefix of what was written");
        }
        rest = rest.get(batch.bytes().len()..).unwrap_or_default();
    }
}

/// What was recovered is a prefix of what was written, reads back, can be appended to, and outlasts a power cut.
fn check_log(mut opened: Opened<MemFs>, fs: &MemFs, written: &[Vec<u8>], len: usize) {
    let read = read_all(&opened.store.reader(), opened.log_end);
    check_prefix(&read, written);
    assert_eq!(scanned(fs), Offset(opened.log_end.0), "what scanning the files gives");

    let epoch = opened.epochs.last().map_or(Epoch(1), |(epoch, _)| *epoch);
    let base = opened.log_end;
    let bytes = encode_data(base.0, epoch.0, 1, &[Bytes::from_static(b"appended")]);
    let mut appended = read;
    appended.extend_from_slice(&bytes);
    let batch = EncodedBatch { base, end: base.plus(1), epoch, max_timestamp: 1, bytes };
    let mut queue = VecDeque::from([(WriteId(1), StoreWrite::Append(batch))]);
    // At the very end of the offsets of a segment a new one begins.
    opened.store.committer().run(&mut queue).expect("the disk is sound");
    assert_eq!(read_all(&opened.store.reader(), base.plus(1)), appended, "after an append");

    let crashed = fs.crash(len as u64);
    let again = check_directory(&crashed, len).expect("it opened before");
    assert_eq!(again.log_end, base.plus(1), "after a power cut");
    assert_eq!(read_all(&again.store.reader(), again.log_end), appended, "after a power cut");
    assert_eq!(again.control, opened.control);
    assert!(again.epochs.starts_with(&opened.epochs));
    assert!(again.notes.iter().all(|note| note.bytes_lost == 0), "{:?}", again.notes);
    again.store.close().expect("the disk is sound");
    let verified = verify(&crashed, &dir(), &mut |_| ()).expect("the disk is sound");
    for damage in &verified.damage {
        assert_eq!(damage.at_start, AtStart::Ignores, "after recovery and close: {damage:?}");
    }
}

/// The batches as a reader gives them, checked for gaps.
fn read_all(reader: &LogReader<MemFs>, end: Offset) -> Vec<u8> {
    let mut all = Vec::new();
    let mut from = Offset::ZERO;
    while from < end {
        let found = reader.read(from, end, 4096).expect("a recovered log reads back");
        assert!(!found.is_empty(), "nothing at {from} of {end}");
        for bytes in found {
            let header = BatchHeader::parse(&bytes).expect("a whole batch");
            assert_eq!(header.base_offset, from.0, "offsets in a row");
            assert_eq!(reader.is_boundary(from).ok(), Some(true));
            from = Offset(header.end_offset());
            all.extend_from_slice(&bytes);
        }
    }
    assert_eq!(from, end);
    all
}

/// Where the log ends for who reads the files alone.
fn scanned(fs: &MemFs) -> Offset {
    let mut end = Offset::ZERO;
    let log_dir: &Path = &log_dir();
    for found in read_log(fs, log_dir).expect("the disk is sound") {
        end = found.expect("a recovered log is sound").batch.end();
    }
    end
}
