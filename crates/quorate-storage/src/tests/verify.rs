//! Looking a directory over: what is said of a start is what a start does, and nothing is changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use quorate_core::Offset;
use quorate_wire::batch::{encode_control, encode_data};
use quorate_wire::control::ControlRecord;
use quorate_wire::crc::crc32c;

use super::damage::small_log;
use super::{DIR, formatted, log_dir, log_file, open_mem};
use crate::FileSystem;
use crate::mem_fs::MemFs;
use crate::verify::{AtStart, Verified, verify};

fn look(fs: &MemFs) -> Verified {
    verify(fs, Path::new(DIR), &mut |_| ()).unwrap()
}

fn contents(fs: &MemFs) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let of = |dir: &Path| fs.list(dir).unwrap().into_iter().map(|name| dir.join(name)).collect();
    let paths: [Vec<PathBuf>; 2] = [of(Path::new(DIR)), of(&log_dir())];
    paths.into_iter().flatten().map(|path| (path.clone(), fs.content(&path))).collect()
}

#[test]
fn a_closed_log_is_sound() {
    let fs = small_log();
    let found = look(&fs);
    assert_eq!((found.damage.as_slice(), found.remarks.as_slice()), (&[][..], &[][..]));
    assert_eq!((found.log_start, found.log_end), (Offset(0), Offset(12)));
    assert_eq!((found.batches, found.records), (9, 12));
}

#[test]
fn a_start_cuts_what_is_said_to_be_cut() {
    let fs = small_log();
    let mut names = fs.list(&log_dir()).unwrap();
    names.retain(|name| name.ends_with(".log"));
    for name in names {
        let path = log_file(&name);
        let content = fs.content(&path).unwrap();
        for at in 0..content.len() {
            let fs = fs.kill();
            let mut damaged = content.clone();
            damaged[at] ^= 1 << (at % 8);
            fs.install(&path, &damaged);
            let before = contents(&fs);
            let found = look(&fs);
            assert_eq!(contents(&fs), before);

            let what = format!("byte {at} of {name}");
            let cut = found.damage.iter().find_map(|damage| match &damage.at_start {
                AtStart::Cuts(loss) => Some((damage, loss)),
                _ => None,
            });
            let (damage, loss) = cut.unwrap_or_else(|| panic!("{what}: {found:?}"));
            let opened = open_mem(&fs).unwrap();
            let note = opened.notes.iter().find(|note| note.bytes_lost > 0).unwrap();
            assert_eq!(
                (&note.path, Some(note.position)),
                (&damage.path, damage.position),
                "{what}"
            );
            assert_eq!((note.bytes_lost, &note.reason), (loss.bytes, &damage.reason), "{what}");
            assert_eq!((opened.log_end, Some(opened.log_end)), (loss.end, damage.offset), "{what}");
            assert!(loss.readable_to.is_none_or(|end| end > loss.end), "{what}");
        }
    }
}

#[test]
fn small_files_are_looked_at_too() {
    let look_at = |name: &str, content: &[u8]| {
        let fs = small_log();
        fs.install(&log_file(name), content);
        let [damage] = look(&fs).damage.try_into().unwrap();
        assert!(damage.path.ends_with(name), "{damage:?}");
        damage.at_start
    };
    assert_eq!(look_at("quorum-state", b"{}"), AtStart::Refuses);
    assert_eq!(look_at("partition.metadata", b"version: 0\ntopic_id: other"), AtStart::Refuses);
    assert_eq!(look_at("leader-epoch-checkpoint", b"0\n2\n1 0\n7 99\n"), AtStart::Repairs);
    assert_eq!(look_at("leader-epoch-checkpoint", b"x"), AtStart::Repairs);
    // It has nothing, so its footer is missing; nobody opens it before the log is at 12.
    let snapshot = "00000000000000000012-0000000004.checkpoint";
    assert_eq!(look_at(snapshot, b""), AtStart::Ignores);
    assert_eq!(look_at("00000000000000000000-0000000000.checkpoint", b"x"), AtStart::Refuses);

    let fs = small_log();
    fs.remove(&Path::new(DIR).join("meta.properties")).unwrap();
    let [damage] = look(&fs).damage.try_into().unwrap();
    assert!(damage.path.ends_with("meta.properties"));
    fs.remove(&log_file("quorum-state")).unwrap();
    let found = look(&fs);
    assert!(found.remarks[0].contains("may have forgotten a vote"), "{:?}", found.remarks);
}

/// What a start and a look say of a log directory with this file.
fn refusals(name: &str, content: &[u8]) -> Option<(String, String)> {
    let fs = formatted();
    fs.install(&log_file(name), content);
    let seen = look(&fs);
    let refused = seen.damage.iter().find(|damage| damage.at_start == AtStart::Refuses);
    match (open_mem(&fs), refused) {
        (Ok(_), None) => None,
        (Err(error), Some(damage)) => Some((error.to_string(), damage.reason.clone())),
        (opened, damage) => panic!("a start: {:?}, a look: {damage:?}", opened.err()),
    }
}

#[test]
fn a_start_takes_the_checkpoints_that_are_whole() {
    let header = ControlRecord::SnapshotHeader(Default::default());
    let footer = ControlRecord::SnapshotFooter(Default::default());
    let control = |base, record: &ControlRecord| {
        encode_control(base, 0, 0, std::slice::from_ref(record)).unwrap()
    };
    let data = |base| encode_data(base, 0, 0, &[Bytes::from_static(b"feature")]);
    let name = "00000000000000000000-0000000000.checkpoint";
    let whole = [control(0, &header), data(1), control(2, &footer)];
    assert_eq!(refusals(name, &whole.concat()), None);
    let bad: [(&[Bytes], &str); 4] = [
        (&whole[..2], "without a snapshot footer"),
        (&[], "without a snapshot footer"),
        (&[control(0, &header), data(2), control(3, &footer)], "begins at offset 2, not 1"),
        (&[data(0), control(1, &footer)], "no snapshot header"),
    ];
    for (batches, expected) in bad {
        let (at_start, seen) = refusals(name, &batches.concat()).expect(expected);
        assert!(at_start.contains(expected) && seen.contains(expected), "{at_start}; {seen}");
    }
}

#[test]
fn a_control_record_counts_within_its_batch_or_not_at_all() {
    let level = ControlRecord::KRaftVersion(Default::default());
    let mut batch = Vec::from(encode_control(0, 1, 0, &[level.clone(), level]).unwrap());
    let name = "00000000000000000000.log";
    assert_eq!(refusals(name, &batch), None);
    // The last offset less the first: the second record now lies behind the end.
    batch[23..27].copy_from_slice(&0i32.to_be_bytes());
    sign(&mut batch);
    let (at_start, seen) = refusals(name, &batch).expect("refused");
    assert!(at_start.contains("do not ascend") && seen.contains("do not ascend"), "{at_start}");
}

/// Corrects the checksum of a batch that was changed on purpose.
fn sign(batch: &mut [u8]) {
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

#[test]
fn damage_anywhere_in_a_checkpoint_is_found() {
    let control = |base, record| encode_control(base, 0, 0, std::slice::from_ref(&record)).unwrap();
    let batches = [
        control(0, ControlRecord::SnapshotHeader(Default::default())),
        encode_data(1, 0, 0, &[Bytes::from_static(b"one"), Bytes::from_static(b"two")]),
        control(3, ControlRecord::SnapshotFooter(Default::default())),
    ];
    let content = batches.concat();
    let name = "00000000000000000012-0000000004.checkpoint";
    let look_at = |content: &[u8]| {
        let fs = small_log();
        fs.install(&log_file(name), content);
        look(&fs).damage
    };
    assert_eq!(look_at(&content), []);
    let mut at = 0;
    for batch in &batches {
        for byte in 0..batch.len() {
            let mut damaged = content.clone();
            damaged[at + byte] ^= 1 << (byte % 8);
            let found = look_at(&damaged);
            // The epoch is neither checked by the sum nor does it mean anything in a checkpoint.
            if (12..16).contains(&byte) {
                assert_eq!(found, []);
                continue;
            }
            let [damage] = found.as_slice() else { panic!("byte {}: {found:?}", at + byte) };
            let position = Some(u64::try_from(at).unwrap());
            assert!(damage.path.ends_with(name) && damage.position == position, "{damage:?}");
            assert_eq!(damage.at_start, AtStart::Ignores);
        }
        at += batch.len();
    }
}

#[test]
fn what_stops_kafkas_reader_is_said_though_a_start_takes_it() {
    let records = [Bytes::from_static(b"one"), Bytes::from_static(b"two")];
    let good = encode_data(0, 1, 1, &records);
    // The first record, behind the header: length, attributes, timestamp delta, offset delta, key length, value length,
    // three bytes of value, count of headers.
    let changes: [(usize, u8, &str); 3] =
        [(63, 2, "timestamp delta"), (64, 2, "do not ascend"), (70, 1, "headers")];
    for (at, to, reason) in changes {
        let mut batch = good.to_vec();
        batch[at] = to;
        if reason == "headers" {
            // One header takes two bytes more: an empty key and no value.
            batch.splice(71..71, [0, 1]);
            batch[61] += 4;
            let length = i32::try_from(batch.len() - 12).unwrap();
            batch[8..12].copy_from_slice(&length.to_be_bytes());
        }
        sign(&mut batch);
        let fs = formatted();
        let log = [batch.as_slice(), &encode_data(2, 1, 1, &records)].concat();
        fs.install(&log_file("00000000000000000000.log"), &log);
        let seen = look(&fs);
        let [damage] = seen.damage.as_slice() else { panic!("{reason}: {seen:?}") };
        assert!(damage.reason.contains(reason) && damage.reason.contains("Kafka's"), "{damage:?}");
        assert_eq!((damage.position, damage.offset), (Some(0), Some(Offset(0))));
        assert_eq!((damage.at_start.clone(), seen.log_end), (AtStart::Ignores, Offset(4)));
        assert_eq!(open_mem(&fs).unwrap().log_end, Offset(4));
    }
}
