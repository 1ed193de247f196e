//! What all tests of the store share: a formatted disk in memory, and batches to put on it.

mod crash;
mod damage;
mod durability;
mod faults;
mod golden;
mod ownership;
mod power_cut;
mod reading;
mod room;
mod small_files;
mod verify;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use quorate_core::io::{ElectionState, WriteId};
use quorate_core::message::KRaftVersion;
use quorate_core::{Epoch, NodeId, Offset};
use quorate_wire::batch::{encode_control, encode_data};
use quorate_wire::control::{ControlRecord, LeaderChangeMessage};

use crate::mem_fs::MemFs;
use crate::{
    EncodedBatch, FileSystem, LOG_DIR, Opened, Options, RollLimits, StorageError, Store,
    StoreWrite, read_log,
};

/// The metadata log directory on the disks in memory.
const DIR: &str = "/disk/meta";

const NODE: NodeId = NodeId(1);

const META: &str = "node.id=1\ndirectory.id=QuorateDirOfNode001AAA\nversion=1\ncluster.id=C\n";

fn log_dir() -> PathBuf {
    Path::new(DIR).join(LOG_DIR)
}

fn log_file(name: &str) -> PathBuf {
    log_dir().join(name)
}

/// A disk with a formatted directory.
fn formatted() -> MemFs {
    let fs = MemFs::new([DIR, &format!("{DIR}/{LOG_DIR}")]);
    fs.install(&Path::new(DIR).join("meta.properties"), META.as_bytes());
    fs
}

/// Opens with segments so small that a few batches fill one.
fn open<F: FileSystem>(fs: &F, dir: &Path) -> Result<Opened<F>, StorageError> {
    let limits = RollLimits { segment_bytes: 600, ..RollLimits::default() };
    Store::open(fs.clone(), Options { dir: dir.to_owned(), node: NODE, limits })
}

fn open_mem(fs: &MemFs) -> Result<Opened<MemFs>, StorageError> {
    open(fs, Path::new(DIR))
}

fn election(epoch: i32) -> StoreWrite {
    StoreWrite::ElectionState(ElectionState {
        epoch: Epoch(epoch),
        leader: Some(NODE),
        voted: None,
        kraft_version: KRaftVersion(1),
        voters: Vec::new(),
    })
}

/// The batch that opens an epoch, one record.
fn opening(base: i64, epoch: i32) -> EncodedBatch {
    let record = ControlRecord::LeaderChange(LeaderChangeMessage {
        version: 0,
        leader_id: 1,
        voters: Vec::new(),
        granting_voters: Vec::new(),
        unknown: Default::default(),
    });
    let bytes = encode_control(base, epoch, 1000 + base, &[record]).unwrap();
    encoded(base, 1, epoch, bytes)
}

/// A batch of this many records of this size.
fn data(base: i64, epoch: i32, records: usize, size: usize) -> EncodedBatch {
    let fill = u8::try_from(base.rem_euclid(250)).unwrap() + 1;
    let values = vec![Bytes::from(vec![fill; size]); records];
    encoded(base, records, epoch, encode_data(base, epoch, 1000 + base, &values))
}

fn encoded(base: i64, records: usize, epoch: i32, bytes: Bytes) -> EncodedBatch {
    let end = Offset(base).plus(records);
    let (base, epoch, max_timestamp) = (Offset(base), Epoch(epoch), 1000 + base);
    EncodedBatch { base, end, epoch, max_timestamp, bytes }
}

/// Does these writes, numbered from `first` on. Returns the last that is durable.
fn run<F: FileSystem>(
    store: &mut Store<F>,
    first: u64,
    writes: impl IntoIterator<Item = StoreWrite>,
) -> Result<u64, StorageError> {
    let mut queue: VecDeque<(WriteId, StoreWrite)> = (first..).map(WriteId).zip(writes).collect();
    let mut durable = first - 1;
    while !queue.is_empty() {
        durable = store.committer().run(&mut queue)?.0;
    }
    Ok(durable)
}

/// The batches on a disk, read beside the store.
fn batches<F: FileSystem>(fs: &F, dir: &Path) -> Vec<Bytes> {
    read_log(fs, &dir.join(LOG_DIR))
        .unwrap()
        .map(|found| found.unwrap().batch.bytes().clone())
        .collect()
}
