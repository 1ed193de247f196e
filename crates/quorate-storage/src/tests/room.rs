//! Room ahead of many appends: when there is some, who gives it back, and what a crash makes of it.

use std::io::ErrorKind;
use std::path::Path;

use quorate_core::Offset;

use super::{DIR, batches, data, election, formatted, log_dir, log_file, open_mem, opening, run};
use crate::mem_fs::{Fault, MemFs, OperationKind};
use crate::verify::{AtStart, Verified, verify};
use crate::{EncodedBatch, Options, RollLimits, Store, StoreWrite};

const ROOM: u64 = 4096;
const FIRST: &str = "00000000000000000000.log";

fn opened(fs: &MemFs, segment_bytes: u64) -> Store<MemFs> {
    let limits = RollLimits { segment_bytes, preallocate_bytes: ROOM, ..RollLimits::default() };
    Store::open(fs.clone(), Options { dir: DIR.into(), node: super::NODE, limits }).unwrap().store
}

/// A batch of one record, made at this time.
fn at(base: i64, time: i64) -> EncodedBatch {
    EncodedBatch { max_timestamp: time, ..data(base, 1, 1, 30) }
}

/// Opens, begins an epoch and appends until room is made. Returns the log end.
fn busy(fs: &MemFs, segment_bytes: u64) -> (Store<MemFs>, i64) {
    let mut store = opened(fs, segment_bytes);
    run(&mut store, 1, [election(1), StoreWrite::Append(opening(0, 1))]).unwrap();
    for base in 1..=20 {
        run(&mut store, 10, [StoreWrite::Append(at(base, 1000 + base))]).unwrap();
    }
    (store, 21)
}

/// How long a segment is, and how much of it is batches.
fn lengths(fs: &MemFs, name: &str) -> (u64, u64) {
    let content = fs.content(&log_file(name)).unwrap();
    // Each batch ends with its record's count of headers, 0.
    let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 2);
    (content.len() as u64, used as u64)
}

fn looked_over(fs: &MemFs) -> Verified {
    verify(fs, Path::new(DIR), &mut |_| ()).unwrap()
}

#[test]
fn many_appends_get_room_and_few_do_not() {
    let fs = formatted();
    let (mut store, end) = busy(&fs, 1 << 20);
    let (len, used) = lengths(&fs, FIRST);
    assert!(len > used && len <= used + ROOM, "{len} {used}");
    fs.start_record();
    run(&mut store, 40, [StoreWrite::Append(at(end, 1100))]).unwrap();
    let kinds: Vec<_> = fs.record().iter().map(|operation| operation.kind).collect();
    assert_eq!(kinds, [OperationKind::Write, OperationKind::SyncData], "the file is long enough");

    // Two a second: one more second may pass before that shows.
    for n in 1..=6 {
        run(&mut store, 50, [StoreWrite::Append(at(end + n, 2000 + n * 500))]).unwrap();
    }
    let (len, used) = lengths(&fs, FIRST);
    assert_eq!(len, used);
}

#[test]
fn room_is_given_back_in_quiet_at_a_roll_at_a_cut_and_at_the_end() {
    let fs = formatted();
    let (mut store, end) = busy(&fs, 1 << 20);
    store.committer().tidy().unwrap();
    assert!(!store.committer().is_untidy());
    run(&mut store, 50, [StoreWrite::Append(at(end, 1100))]).unwrap();
    assert!(store.committer().is_untidy(), "for its room alone");
    store.committer().tidy().unwrap();
    let (len, used) = lengths(&fs, FIRST);
    assert_eq!(len, used);
    assert!(!store.committer().is_untidy());

    let fs = formatted();
    let (mut store, end) = busy(&fs, 3000);
    assert_eq!(lengths(&fs, FIRST).0, 3000, "no room beyond what a segment takes");
    for base in end..end + 20 {
        run(&mut store, 50, [StoreWrite::Append(at(base, 1000 + base))]).unwrap();
    }
    let (len, used) = lengths(&fs, FIRST);
    assert!(len == used && len < 3000);

    let fs = formatted();
    let (mut store, end) = busy(&fs, 1 << 20);
    for to in [Offset(end), Offset(10)] {
        run(&mut store, 50, [StoreWrite::Truncate { to }]).unwrap();
        let (len, used) = lengths(&fs, FIRST);
        assert_eq!(len, used);
        run(&mut store, 60, [StoreWrite::Append(at(to.0, 1500))]).unwrap();
        assert!(lengths(&fs, FIRST).0 > len);
    }

    let fs = formatted();
    let (store, _) = busy(&fs, 1 << 20);
    store.close().unwrap();
    for seed in 0..10 {
        let fs = fs.crash(seed);
        let (len, used) = lengths(&fs, FIRST);
        assert_eq!(len, used, "durably");
        assert_eq!(open_mem(&fs).unwrap().notes, []);
    }
}

#[test]
fn a_start_after_a_crash_takes_room_for_no_damage_and_a_torn_batch_for_as_long_as_it_was() {
    let fs = formatted();
    let (mut store, end) = busy(&fs, 1 << 20);
    let before = batches(&fs, Path::new(DIR));
    let used = lengths(&fs, FIRST).1;
    let looked = looked_over(&fs);
    assert_eq!(looked.damage, []);
    assert!(looked.remarks.iter().any(|remark| remark.contains("room for more")), "{looked:?}");

    // Half of it reaches the disk, in front of the room.
    fs.fail_at(0, Fault::Once(ErrorKind::StorageFull));
    let torn = EncodedBatch { max_timestamp: 1100, ..data(end, 1, 1, 300) };
    let half = torn.bytes.len() as u64 / 2;
    run(&mut store, 50, [StoreWrite::Append(torn)]).unwrap_err();
    drop(store);
    let [damage] = &looked_over(&fs).damage[..] else { panic!("one torn batch") };
    let AtStart::Cuts(loss) = &damage.at_start else { panic!("{damage:?}") };
    assert_eq!(loss.bytes, half);
    for fs in [fs.kill(), fs.crash(4)] {
        let opened = open_mem(&fs).unwrap();
        assert_eq!(batches(&fs, Path::new(DIR)), before);
        assert!(opened.notes[0].bytes_lost <= half, "{:?}", opened.notes);
        assert_eq!(lengths(&fs, FIRST), (used, used));
    }
}

#[test]
fn zeros_behind_a_log_that_was_closed_are_damage() {
    let fs = formatted();
    let (store, end) = busy(&fs, 1 << 20);
    store.close().unwrap();
    let mut content = fs.content(&log_file(FIRST)).unwrap();
    let used = content.len() as u64;
    content.extend([0; 100]);
    fs.install(&log_file(FIRST), &content);
    let [damage] = &looked_over(&fs).damage[..] else { panic!("zeros") };
    assert_eq!((damage.position, damage.offset), (Some(used), Some(Offset(end))));
    assert_eq!(verify(&fs, &log_dir(), &mut |_| ()).unwrap().damage.len(), 1);
    let opened = open_mem(&fs).unwrap();
    assert_eq!(opened.log_end, Offset(end));
    assert_eq!((opened.notes.len(), opened.notes[0].bytes_lost), (1, 0));
}

#[test]
fn a_disk_without_room_ahead_still_takes_what_fits() {
    let fs = formatted();
    let mut store = opened(&fs, 1 << 20);
    run(&mut store, 1, [election(1), StoreWrite::Append(opening(0, 1))]).unwrap();
    for base in 1..=14 {
        run(&mut store, 10, [StoreWrite::Append(at(base, 1000 + base))]).unwrap();
    }
    fs.start_record();
    fs.fail_at(0, Fault::Once(ErrorKind::StorageFull));
    for base in 15..=30 {
        run(&mut store, 40, [StoreWrite::Append(at(base, 1000 + base))]).unwrap();
    }
    let asked = fs.record().iter().filter(|op| op.kind == OperationKind::Allocate).count();
    assert_eq!(asked, 1, "and it is not asked again");
    let (len, used) = lengths(&fs, FIRST);
    assert_eq!(len, used);
    assert_eq!(batches(&fs, Path::new(DIR)).len(), 31);

    // Any other error is one of the disk, and final.
    let fs = formatted();
    let mut store = opened(&fs, 1 << 20);
    run(&mut store, 1, [election(1), StoreWrite::Append(opening(0, 1))]).unwrap();
    for base in 1..=14 {
        run(&mut store, 10, [StoreWrite::Append(at(base, 1000 + base))]).unwrap();
    }
    fs.fail_at(0, Fault::Once(ErrorKind::Other));
    run(&mut store, 40, [StoreWrite::Append(at(15, 1015))]).unwrap_err();
}

#[test]
fn zeros_end_a_segment_and_no_other_file() {
    let fs = formatted();
    let content = [&opening(0, 1).bytes[..], &[0; 100]].concat();
    for (name, is_sound) in [("a.log", true), ("a.checkpoint", false)] {
        fs.install(&log_file(name), &content);
        let mut file = crate::BatchFile::open(&fs, &log_file(name), 0).unwrap();
        assert!(file.next_batch().unwrap().is_some());
        assert_eq!(file.next_batch().is_ok(), is_sound, "{name}");
    }
}

#[test]
fn no_room_is_kept_from_a_busy_time_long_ago_or_when_clocks_go_back() {
    let fs = formatted();
    let (mut store, end) = busy(&fs, 1 << 20);
    store.committer().tidy().unwrap();
    run(&mut store, 50, [StoreWrite::Append(at(end, 10_000_000))]).unwrap();
    let (len, used) = lengths(&fs, FIRST);
    assert_eq!(len, used);

    let fs = formatted();
    let (mut store, end) = busy(&fs, 1 << 20);
    for n in 1..=3 {
        run(&mut store, 50, [StoreWrite::Append(at(end + n - 1, 1000 - n * 300))]).unwrap();
    }
    let (len, used) = lengths(&fs, FIRST);
    assert_eq!(len, used);
}

#[test]
fn room_that_was_given_back_in_quiet_does_not_come_back_after_the_end() {
    let fs = formatted();
    let (mut store, _) = busy(&fs, 1 << 20);
    store.committer().tidy().unwrap();
    store.close().unwrap();
    for seed in 0..40 {
        assert_eq!(looked_over(&fs.crash(seed)).damage, [], "seed {seed}");
    }
}

#[test]
fn zeros_in_front_of_a_later_segment_lose_nothing_and_are_said_to() {
    let fs = formatted();
    let (store, _) = busy(&fs, 600);
    store.close().unwrap();
    let mut content = fs.content(&log_file(FIRST)).unwrap();
    content.extend([0; 100]);
    fs.install(&log_file(FIRST), &content);
    let looked = looked_over(&fs);
    let [damage] = &looked.damage[..] else { panic!("{looked:?}") };
    let AtStart::Cuts(loss) = &damage.at_start else { panic!("{damage:?}") };
    assert!(crate::read_log(&fs, &log_dir()).unwrap().any(|found| found.is_err()));
    let opened = open_mem(&fs).unwrap();
    assert_eq!((loss.end, loss.bytes), (opened.log_end, 0));
    assert_eq!(looked.log_end, opened.log_end);
}

#[test]
fn room_of_a_segment_that_goes_is_not_lost() {
    let fs = formatted();
    let mut store = opened(&fs, 3000);
    run(&mut store, 1, [election(1), StoreWrite::Append(opening(0, 1))]).unwrap();
    for base in 1..=40 {
        run(&mut store, 10, [StoreWrite::Append(at(base, 1000 + base))]).unwrap();
    }
    drop(store);
    assert!(fs.damage(&log_file(FIRST), 150, 0));
    let [damage] = &looked_over(&fs).damage[..] else { panic!("one flipped bit") };
    let AtStart::Cuts(loss) = &damage.at_start else { panic!("{damage:?}") };
    let opened = open_mem(&fs.kill()).unwrap();
    assert_eq!(loss.bytes, opened.notes.iter().map(|note| note.bytes_lost).sum::<u64>());
}

#[test]
fn of_a_log_directory_alone_nobody_knows_whether_it_was_closed() {
    let fs = formatted();
    let (_store, _) = busy(&fs, 1 << 20);
    let looked = verify(&fs, &log_dir(), &mut |_| ()).unwrap();
    assert_eq!(looked.damage, []);
    let alone = MemFs::new([Path::new("/copy").join(crate::LOG_DIR)]);
    let copy = Path::new("/copy").join(crate::LOG_DIR);
    alone.install(&copy.join(FIRST), &fs.content(&log_file(FIRST)).unwrap());
    let looked = verify(&alone, &copy, &mut |_| ()).unwrap();
    assert!(looked.damage.iter().all(|damage| !damage.path.ends_with(FIRST)), "{looked:?}");
}
