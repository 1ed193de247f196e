//! Disks that fail: an error closes the store for good.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::Path;

use quorate_core::Offset;
use quorate_core::io::WriteId;

use super::{DIR, batches, data, election, formatted, log_dir, log_file, open_mem, opening, run};
use crate::StoreWrite;
use crate::mem_fs::{Fault, MemFs, Operation, OperationKind};

/// The operations of these kinds, with file names.
fn trace(fs: &MemFs, kinds: &[OperationKind]) -> Vec<(OperationKind, String)> {
    let name = |operation: &Operation| {
        operation
            .path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let record = fs.record();
    let wanted = record.iter().filter(|operation| kinds.contains(&operation.kind));
    wanted.map(|operation| (operation.kind, name(operation))).collect()
}

fn append(batch: crate::EncodedBatch) -> StoreWrite {
    StoreWrite::Append(batch)
}

// B109: after a failed sync Linux drops the dirty pages, and a second sync succeeds without them.
#[test]
fn a_sync_that_fails_once_closes_the_store_for_good() {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1))]).unwrap();
    fs.fail_at(1, Fault::Once(ErrorKind::Other));
    let error = run(&mut store, 3, [append(data(1, 1, 1, 10))]).unwrap_err().to_string();
    assert!(error.contains("sync") && error.contains("00000000000000000000.log"), "{error}");

    let before = fs.operations();
    for write in [append(data(2, 1, 1, 10)), election(2), StoreWrite::Truncate { to: Offset(1) }] {
        assert_eq!(run(&mut store, 4, [write]).unwrap_err().to_string(), error);
    }
    assert!(store.committer().tidy().is_err());
    assert!(store.close().is_err());
    assert_eq!(fs.operations(), before, "nothing touches the disk any more");

    let fs = fs.crash(4);
    let opened = open_mem(&fs).unwrap();
    assert_eq!(opened.log_end, Offset(1), "the batch was lost, as it was never reported durable");
}

// The cache shows what a failed sync has dropped, until a power cut: whoever starts on it promises what is lost.
#[test]
fn a_restart_after_a_failed_sync_finds_what_the_disk_has() {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1))]).unwrap();
    fs.fail_at(1, Fault::Once(ErrorKind::Other));
    run(&mut store, 3, [append(data(1, 1, 1, 10))]).unwrap_err();
    drop(store);

    let fs = fs.kill();
    assert_eq!(batches(&fs, Path::new(DIR)).len(), 2, "readers see it");
    let opened = open_mem(&fs).unwrap();
    assert_eq!(opened.log_end, Offset(1));
    assert_eq!(opened.notes.len(), 1, "{:?}", opened.notes);
    for seed in 0..5 {
        assert_eq!(open_mem(&fs.crash(seed)).unwrap().log_end, Offset(1));
    }
}

#[test]
fn what_was_written_and_not_synced_before_a_kill_is_synced_before_it_is_promised() {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1))]).unwrap();
    fs.fail_at(1, Fault::Forever(ErrorKind::Interrupted));
    run(&mut store, 3, [append(data(1, 1, 1, 10))]).unwrap_err();
    drop(store);

    let fs = fs.kill();
    assert_eq!(open_mem(&fs).unwrap().log_end, Offset(2));
    for seed in 0..5 {
        assert_eq!(open_mem(&fs.crash(seed)).unwrap().log_end, Offset(2));
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_durable() {
    for kind in [ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem] {
        let fs = formatted();
        let mut store = open_mem(&fs).unwrap().store;
        run(&mut store, 1, [election(1), append(opening(0, 1)), append(data(1, 1, 2, 40))])
            .unwrap();
        let kept = batches(&fs, Path::new(DIR));
        fs.fail_at(0, Fault::Once(kind));
        run(&mut store, 4, [append(data(3, 1, 1, 100))]).unwrap_err();
        drop(store);

        // Space is free again, and the process starts anew: half of a batch is cut off.
        let fs = fs.kill();
        let opened = open_mem(&fs).unwrap();
        assert_eq!(opened.log_end, Offset(3));
        assert_eq!(opened.notes.len(), 1, "{:?}", opened.notes);
        assert!(opened.notes[0].bytes_lost > 0);
        assert_eq!(batches(&fs, Path::new(DIR)), kept);
    }
}

#[test]
fn appends_in_a_row_share_one_write_and_one_sync() {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1))]).unwrap();
    fs.start_record();
    let mut queue: VecDeque<_> = (0..4)
        .map(|n| (WriteId(3 + n), append(data(1 + i64::try_from(n).unwrap(), 1, 1, 20))))
        .collect();
    assert_eq!(store.committer().run(&mut queue).unwrap(), WriteId(6));
    let log = "00000000000000000000.log".to_owned();
    assert_eq!(
        trace(&fs, &[OperationKind::Write, OperationKind::SyncData, OperationKind::Create]),
        [(OperationKind::Write, log.clone()), (OperationKind::SyncData, log)]
    );
    assert_eq!(fs.record().len(), 2, "and nothing else happens");
}

// B103: a new segment is lost after a power cut, data and all, unless its directory was synced.
#[test]
fn a_roll_syncs_the_old_segment_the_directory_and_the_new_one() {
    use OperationKind::{Create, SyncData, SyncDir, Write};
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1)), append(data(1, 1, 1, 400))]).unwrap();
    fs.start_record();
    run(&mut store, 4, [append(data(2, 1, 1, 300)), append(data(3, 1, 1, 20))]).unwrap();
    let expected = [
        (SyncData, "00000000000000000000.log"),
        (Create, "00000000000000000002.index"),
        (Create, "00000000000000000002.timeindex"),
        (Create, "00000000000000000002.log"),
        (SyncDir, "__cluster_metadata-0"),
        (Write, "00000000000000000002.log"),
        (SyncData, "00000000000000000002.log"),
    ];
    let found = trace(&fs, &[Create, Write, SyncData, SyncDir]);
    let found: Vec<_> = found.iter().map(|(kind, name)| (*kind, name.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_new_election_state_is_written_beside_synced_and_renamed() {
    use OperationKind::{Create, Rename, SyncData, SyncDir, Write};
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    fs.start_record();
    run(&mut store, 1, [election(1)]).unwrap();
    let expected = [
        (Create, "quorum-state.tmp"),
        (Write, "quorum-state.tmp"),
        (SyncData, "quorum-state.tmp"),
        (Rename, "quorum-state"),
        (SyncDir, "__cluster_metadata-0"),
    ];
    let found: Vec<_> = fs.record();
    let found: Vec<_> = found
        .iter()
        .map(|operation| (operation.kind, operation.path.file_name().unwrap().to_str().unwrap()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_truncation_takes_later_segments_first_newest_to_oldest() {
    use OperationKind::{Create, Remove, Rename, SetLen, SyncData, SyncDir};
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(
        &mut store,
        1,
        [
            election(1),
            append(opening(0, 1)),
            append(data(1, 1, 1, 400)),
            append(data(2, 1, 1, 500)),
            election(2),
            append(opening(3, 2)),
        ],
    )
    .unwrap();
    store.committer().tidy().unwrap();
    fs.start_record();
    run(&mut store, 7, [StoreWrite::Truncate { to: Offset(1) }]).unwrap();
    let found = trace(&fs, &[Create, Rename, Remove, SetLen, SyncData, SyncDir]);
    let found: Vec<_> = found.iter().map(|(kind, name)| (*kind, name.as_str())).collect();
    let removed = |base: &'static [&'static str; 4]| base.map(|name| (Remove, name));
    let expected: Vec<_> = [
        // The checkpoint names epoch 2, which goes.
        (Create, "leader-epoch-checkpoint.tmp"),
        (SyncData, "leader-epoch-checkpoint.tmp"),
        (Rename, "leader-epoch-checkpoint"),
        (SyncDir, "__cluster_metadata-0"),
    ]
    .into_iter()
    .chain(removed(&[
        "00000000000000000003.log",
        "00000000000000000003.index",
        "00000000000000000003.timeindex",
        "00000000000000000003.snapshot",
    ]))
    .chain(removed(&[
        "00000000000000000002.log",
        "00000000000000000002.index",
        "00000000000000000002.timeindex",
        "00000000000000000002.snapshot",
    ]))
    .chain([
        (SyncDir, "__cluster_metadata-0"),
        (SetLen, "00000000000000000000.log"),
        (SyncData, "00000000000000000000.log"),
    ])
    .collect();
    assert_eq!(found, expected);
    assert_eq!(fs.content(&log_file("leader-epoch-checkpoint")).unwrap(), b"0\n1\n1 0\n");
}

#[test]
fn a_truncation_that_names_no_epoch_on_disk_leaves_the_checkpoint_alone() {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1))]).unwrap();
    store.committer().tidy().unwrap();
    run(&mut store, 3, [election(2), append(opening(1, 2))]).unwrap();
    fs.start_record();
    run(&mut store, 5, [StoreWrite::Truncate { to: Offset(1) }]).unwrap();
    assert_eq!(trace(&fs, &[OperationKind::Rename]), []);
}

#[test]
fn a_truncation_inside_a_batch_is_refused_before_anything_is_touched() {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1)), append(data(1, 1, 4, 10))]).unwrap();
    let before = batches(&fs, Path::new(DIR));
    let error = run(&mut store, 4, [StoreWrite::Truncate { to: Offset(3) }]).unwrap_err();
    assert!(error.to_string().contains("offset 3 is inside the batch 1 to 5"), "{error}");
    assert_eq!(batches(&fs, Path::new(DIR)), before);
}

#[test]
fn tidying_up_writes_the_indexes_of_rolled_segments() {
    let fs = formatted();
    let limits = crate::RollLimits { segment_bytes: 20_000, ..Default::default() };
    let options = crate::Options { dir: DIR.into(), node: super::NODE, limits };
    let mut store = crate::Store::open(fs.clone(), options).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1))]).unwrap();
    run(&mut store, 3, (1..12).map(|base| append(data(base, 1, 1, 2000)))).unwrap();
    assert!(store.committer().is_untidy());
    store.committer().tidy().unwrap();
    assert!(!store.committer().is_untidy());
    // Batches 0 to 9 fit (91 + 9 × 2070 bytes); an entry stands where more than 4096 bytes came before it.
    let size = u32::try_from(data(1, 1, 1, 2000).bytes.len()).unwrap();
    let head = u32::try_from(opening(0, 1).bytes.len()).unwrap();
    let entry =
        |offset: u32| [offset.to_be_bytes(), (head + (offset - 1) * size).to_be_bytes()].concat();
    let index = fs.content(&log_dir().join("00000000000000000000.index")).unwrap();
    assert_eq!(index, [entry(3), entry(5), entry(7), entry(9)].concat());
    let times = fs.content(&log_dir().join("00000000000000000000.timeindex")).unwrap();
    let time = |offset: u32| {
        [&(1000 + i64::from(offset)).to_be_bytes()[..], &offset.to_be_bytes()[..]].concat()
    };
    assert_eq!(times, [time(3), time(5), time(7), time(9)].concat());
}

#[test]
fn segments_roll_by_time_too() {
    let fs = formatted();
    let limits = crate::RollLimits { segment_ms: 2, ..Default::default() };
    let options = crate::Options { dir: DIR.into(), node: super::NODE, limits };
    let mut store = crate::Store::open(fs.clone(), options).unwrap().store;
    run(&mut store, 1, [election(1), append(opening(0, 1))]).unwrap();
    // Batches are a millisecond apart.
    run(&mut store, 3, (1..7).map(|base| append(data(base, 1, 1, 10)))).unwrap();
    let mut logs = crate::FileSystem::list(&fs, &log_dir()).unwrap();
    logs.retain(|name| name.ends_with(".log"));
    assert_eq!(
        logs,
        ["00000000000000000000.log", "00000000000000000003.log", "00000000000000000006.log"]
    );
}
