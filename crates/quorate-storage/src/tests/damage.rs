//! Bits that flip and files that go missing: found and cut, or harmless; never believed.

use std::path::Path;

use bytes::Bytes;
use quorate_core::{Epoch, Offset};

use super::{DIR, batches, data, election, formatted, log_dir, log_file, open_mem, opening, run};
use crate::mem_fs::MemFs;
use crate::{FileSystem, StorageError, StoreWrite};

/// Three segments, three epochs; the last batch is data.
pub(super) fn small_log() -> MemFs {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    let append = StoreWrite::Append;
    run(
        &mut store,
        1,
        [
            election(1),
            append(opening(0, 1)),
            append(data(1, 1, 2, 30)),
            append(data(3, 1, 1, 250)),
            append(data(4, 1, 1, 60)),
            election(3),
            append(opening(5, 3)),
            append(data(6, 3, 1, 180)),
            append(data(7, 3, 1, 100)),
            election(4),
            append(opening(8, 4)),
            append(data(9, 4, 3, 20)),
        ],
    )
    .unwrap();
    store.close().unwrap();
    fs
}

fn segments(fs: &MemFs) -> Vec<String> {
    let mut names = fs.list(&log_dir()).unwrap();
    names.retain(|name| name.ends_with(".log"));
    names
}

// B098
#[test]
fn every_flipped_bit_of_a_log_is_found() {
    let fs = small_log();
    let good = batches(&fs, Path::new(DIR));
    let names = segments(&fs);
    assert_eq!(names.len(), 3);
    for name in &names {
        let path = log_file(name);
        let content = fs.content(&path).unwrap();
        for at in 0..content.len() {
            for mask in [1 << (at % 8), 0x80, 0xff] {
                let fs = fs.kill();
                let mut damaged = content.clone();
                damaged[at] ^= mask;
                fs.install(&path, &damaged);
                let what = format!("byte {at} of {name} with {mask:#04x}");
                let opened = open_mem(&fs).unwrap_or_else(|error| panic!("{what}: {error}"));
                let left = batches(&fs, Path::new(DIR));
                assert!(left.len() < good.len() && good.starts_with(&left), "{what}");
                let cut = opened.notes.iter().find(|note| note.bytes_lost > 0).unwrap();
                let length =
                    |batches: &[Bytes]| batches.iter().map(|b| b.len() as u64).sum::<u64>();
                assert_eq!(cut.bytes_lost, length(&good) - length(&left), "{what}");
                assert_eq!(cut.path.parent().unwrap(), log_dir());
            }
        }
    }
}

/// A log with the leader's record of epoch 1 alone, whose epoch has become this one on disk.
fn with_only_epoch(epoch: u8) -> MemFs {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), StoreWrite::Append(opening(0, 1))]).unwrap();
    drop(store);
    let path = log_file("00000000000000000000.log");
    let mut content = fs.content(&path).unwrap();
    content[15] = epoch;
    fs.install(&path, &content);
    fs
}

#[test]
fn a_raised_epoch_of_the_last_batch_is_found_by_quorum_state() {
    let fs = with_only_epoch(9);
    let error = open_mem(&fs).unwrap_err();
    assert!(
        matches!(&error, StorageError::Unreadable { path, field, .. }
            if path.ends_with("quorum-state") && field == "leaderEpoch"),
        "{error}"
    );
}

#[test]
fn a_first_batch_of_no_leader_is_cut() {
    let fs = with_only_epoch(0);
    let opened = open_mem(&fs).unwrap();
    let lost = opened.notes.iter().find(|note| note.bytes_lost > 0).unwrap();
    assert!(lost.reason.contains("epoch 0, which has no leader"), "{}", lost.reason);
    assert!(batches(&fs, Path::new(DIR)).is_empty());
}

#[test]
fn a_log_cut_at_any_byte_keeps_every_whole_batch_before_it() {
    let fs = small_log();
    let good = batches(&fs, Path::new(DIR));
    let mut before = 0;
    for name in segments(&fs) {
        let path = log_file(&name);
        let content = fs.content(&path).unwrap();
        for len in 0..content.len() {
            let fs = fs.kill();
            fs.install(&path, &content[..len]);
            let opened = open_mem(&fs).unwrap();
            let left = batches(&fs, Path::new(DIR));
            assert!(good.starts_with(&left));
            let size: usize = left.iter().map(Bytes::len).sum();
            let next = good.get(left.len()).map_or(0, Bytes::len);
            assert!(size <= before + len && before + len < size + next, "{name} at {len}");
            let end = left
                .last()
                .map_or(0, |last| quorate_wire::batch::Batch::parse(last).unwrap().0.end_offset());
            assert_eq!(opened.log_end, Offset(end));
        }
        before += content.len();
    }
}

/// What a broken file system could make of a log: any piece of one segment put anywhere in another.
#[test]
fn pieces_in_the_wrong_place_are_found() {
    use proptest::prelude::*;
    let fs = small_log();
    let good = batches(&fs, Path::new(DIR));
    let names = segments(&fs);
    let content = |n: usize| fs.content(&log_file(&names[n])).unwrap();
    let contents = [content(0), content(1), content(2)];
    let place = (0usize..3, any::<prop::sample::Index>(), 0usize..200);
    proptest!(|((from, start, len) in place.clone(), (to, at, gone) in place)| {
        let piece = &contents[from][start.index(contents[from].len())..];
        let mut damaged = contents[to].clone();
        let at = at.index(damaged.len());
        let end = (at + gone).min(damaged.len());
        damaged.splice(at..end, piece[..len.min(piece.len())].iter().copied());
        let fs = fs.kill();
        fs.install(&log_file(&names[to]), &damaged);
        open_mem(&fs).unwrap();
        let left = batches(&fs, Path::new(DIR));
        prop_assert!(good.starts_with(&left));
    });
}

/// Files of any content are refused or repaired; nothing panics, and what opens can be written.
#[test]
fn files_of_any_content_do_no_harm() {
    use proptest::prelude::*;
    let fs = small_log();
    let names = [
        "00000000000000000000.log",
        "00000000000000000000-0000000000.checkpoint",
        "quorum-state",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "00000000000000000000.index",
    ];
    proptest!(|(name in prop::sample::select(names.to_vec()), content in prop::collection::vec(any::<u8>(), 0..300))| {
        let fs = fs.kill();
        fs.install(&log_file(name), &content);
        if let Ok(mut opened) = open_mem(&fs) {
            let end = opened.log_end.0;
            let writes = [election(9), StoreWrite::Append(opening(end, 9))];
            run(&mut opened.store, 1, writes).unwrap();
        }
    });
}

#[test]
fn a_missing_segment_ends_the_log() {
    let fs = small_log();
    let names = segments(&fs);
    fs.remove(&log_file(&names[1])).unwrap();
    let opened = open_mem(&fs).unwrap();
    assert_eq!(
        opened.log_end.0.to_string(),
        names[1].trim_start_matches('0').trim_end_matches(".log")
    );
    let notes = format!("{:?}", opened.notes);
    assert!(notes.contains("the segment before it ends at offset"), "{notes}");
    assert_eq!(segments(&fs), names[..1]);
}

#[test]
fn a_missing_first_segment_is_not_taken_for_an_empty_log() {
    let fs = small_log();
    let names = segments(&fs);
    fs.remove(&log_file(&names[0])).unwrap();
    let error = open_mem(&fs).unwrap_err();
    assert!(matches!(error, StorageError::HasSnapshots { .. }), "{error}");
    assert_eq!(segments(&fs), names[1..], "nothing is removed");
}

// B105: index files are never needed; Kafka preallocates them with zeros and leaves those after kill -9.
#[test]
fn index_files_may_be_missing_or_full_of_zeros() {
    let fs = small_log();
    let good = batches(&fs, Path::new(DIR));
    let is_index = |name: &String| name.ends_with("index");
    let indexes: Vec<String> = fs.list(&log_dir()).unwrap().into_iter().filter(is_index).collect();
    assert_eq!(indexes.len(), 6);
    let content = |fs: &MemFs, name: &String| fs.content(&log_file(name)).unwrap();
    let before: Vec<_> = indexes.iter().map(|name| content(&fs, name)).collect();
    for kind in ["missing", "zeros", "garbage"] {
        for name in &indexes {
            match kind {
                "missing" => fs.remove(&log_file(name)).unwrap(),
                "zeros" => fs.install(&log_file(name), &vec![0; 10 << 20]),
                _ => fs.install(&log_file(name), b"some garbage"),
            }
        }
        let opened = open_mem(&fs).unwrap();
        assert_eq!(opened.notes, [], "{kind}");
        assert_eq!(batches(&fs, Path::new(DIR)), good, "{kind}");
        let after: Vec<_> = indexes.iter().map(|name| content(&fs, name)).collect();
        assert_eq!(after, before, "{kind}: written anew from the log");
    }
}

#[test]
fn an_empty_newest_segment_is_kept() {
    let fs = small_log();
    let last = segments(&fs).pop().unwrap();
    let end = open_mem(&fs).unwrap().log_end;
    let next = log_file(&format!("{:020}.log", end.0));
    fs.install(&next, b"");
    let mut opened = open_mem(&fs).unwrap();
    assert_eq!((opened.log_end, opened.notes.as_slice()), (end, [].as_slice()), "{last}");
    run(&mut opened.store, 1, [StoreWrite::Append(data(end.0, 4, 1, 10))]).unwrap();
    assert_eq!(fs.content(&next).unwrap(), data(end.0, 4, 1, 10).bytes);
}

// B104
#[test]
fn the_epoch_checkpoint_is_written_anew_from_the_log() {
    let fs = small_log();
    let path = log_file("leader-epoch-checkpoint");
    let right = b"0\n3\n1 0\n3 5\n4 8\n";
    assert_eq!(fs.content(&path).unwrap(), right);
    let cases: [(&str, &[u8]); 9] = [
        ("half a line", b"0\n3\n1 0\n3"),
        ("out of order", b"0\n3\n3 5\n1 0\n4 8\n"),
        ("a wrong count", b"0\n7\n1 0\n3 5\n4 8\n"),
        ("an epoch that the log does not have", b"0\n4\n1 0\n3 5\n4 8\n9 20\n"),
        ("an epoch that hides others", b"0\n2\n1 0\n7 99\n"),
        ("another start", b"0\n3\n1 0\n3 4\n4 8\n"),
        ("another version", b"1\n0\n"),
        ("zeros", &[0; 20]),
        ("no text", b"\xff\xfe"),
    ];
    for (what, content) in cases {
        let fs = fs.kill();
        fs.install(&path, content);
        let opened = open_mem(&fs).unwrap();
        let epochs = [(Epoch(1), Offset(0)), (Epoch(3), Offset(5)), (Epoch(4), Offset(8))];
        assert_eq!(opened.epochs, epochs, "{what}");
        assert_eq!(opened.notes.len(), 1, "{what}");
        // Durably, and before anything is appended.
        assert_eq!(fs.crash(0).content(&path).unwrap(), right, "{what}");
    }
    // A file that is merely behind is no news; it is brought up to date later.
    for content in [&b""[..], b"0\n0\n", b"0\n1\n1 0\n"] {
        let fs = fs.kill();
        fs.install(&path, content);
        let mut opened = open_mem(&fs).unwrap();
        assert_eq!(opened.notes, []);
        assert_eq!(fs.content(&path).unwrap(), content);
        opened.store.committer().tidy().unwrap();
        assert_eq!(fs.content(&path).unwrap(), right);
    }
}

#[test]
fn leftovers_go_and_strangers_stay() {
    let fs = small_log();
    let gone = [
        "00000000000000000099.log.deleted",
        "00000000000000000000.log.cleaned",
        "00000000000000000077.index",
        "00000000000000000009-0000000001.checkpoint.deleted",
        "00000000000000000009-0000000001-4711.checkpoint.part",
        "quorum-state.tmp",
        "leader-epoch-checkpoint.tmp",
    ];
    let stay = ["foo.rust", "00000000000000000012.snapshot", "my.checkpoint"];
    for name in gone.iter().chain(&stay) {
        fs.install(&log_file(name), b"x");
    }
    let opened = open_mem(&fs).unwrap();
    let names = fs.list(&log_dir()).unwrap();
    assert!(gone.iter().all(|name| !names.iter().any(|there| there == name)), "{names:?}");
    assert!(stay.iter().all(|name| names.iter().any(|there| there == name)), "{names:?}");
    let [note] = opened.notes.as_slice() else { panic!("{:?}", opened.notes) };
    assert!(note.path.ends_with("my.checkpoint"));

    drop(opened);
    fs.install(&log_file("00000000000000000000.log.swap"), b"x");
    assert!(open_mem(&fs).unwrap_err().to_string().contains(".swap"));
}

#[test]
fn a_cut_is_durable_before_the_store_is_used() {
    let fs = small_log();
    let names = segments(&fs);
    let path = log_file(&names[0]);
    let mut content = fs.content(&path).unwrap();
    content[200] ^= 1;
    fs.install(&path, &content);
    let opened = open_mem(&fs).unwrap();
    for seed in 0..20 {
        let fs = fs.crash(seed);
        assert_eq!(segments(&fs), names[..1]);
        assert_eq!(open_mem(&fs).unwrap().notes, []);
        assert_eq!(open_mem(&fs).unwrap().log_end, opened.log_end);
    }
}
