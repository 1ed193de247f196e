//! The disk with the power switch: what this process sees, and what the disk has when it is gone.

use std::collections::BTreeSet;
use std::io::IoSlice;
use std::path::Path;
use std::time::Duration;

use quorate_core::Offset;

use super::{META, batches, data, election, open, opening, run};
use crate::power_cut::PowerCutFs;
use crate::{File, FileSystem, OpenHow, RealFs, StoreWrite};

fn switch(seed: u64) -> PowerCutFs {
    PowerCutFs::new(seed, Duration::ZERO)
}

fn content(fs: &impl FileSystem, path: &Path) -> Option<Vec<u8>> {
    let file = fs.open(path, OpenHow::Read).ok()?;
    let mut content = vec![0; 1000];
    let n = file.read_at(&mut content, 0).unwrap();
    content.truncate(n);
    Some(content)
}

#[test]
fn the_process_sees_everything_and_the_disk_what_was_synced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let (mut absent, mut partial, mut whole) = (0, 0, 0);
    for seed in 0..60 {
        let _ = std::fs::remove_file(&path);
        let fs = switch(seed);
        let file = fs.open(&path, OpenHow::Create).unwrap();
        let slices = [IoSlice::new(b"abc"), IoSlice::new(b"defgh")];
        file.write_all_at(&slices, 0).unwrap();
        assert_eq!(content(&fs, &path).unwrap(), b"abcdefgh");
        match content(&RealFs, &path) {
            None => absent += 1,
            Some(left) if left == b"abcdefgh" => whole += 1,
            Some(_) => partial += 1,
        }
        file.sync_data().unwrap();
        fs.sync_dir(dir.path()).unwrap();
        assert_eq!(content(&RealFs, &path).unwrap(), b"abcdefgh");

        // Known to the disk: later changes wait for their sync.
        file.set_len(2).unwrap();
        file.write_all_at(&[IoSlice::new(b"XY")], 4).unwrap();
        assert_eq!(content(&fs, &path).unwrap(), b"ab\0\0XY");
        assert_eq!(file.size().unwrap(), 6);
        file.sync_data().unwrap();
        assert_eq!(content(&RealFs, &path).unwrap(), b"ab\0\0XY");
    }
    assert!(absent > 20 && partial > 3 && whole > 0, "{absent} {partial} {whole}");
}

#[test]
fn a_rename_is_old_or_new_until_the_directory_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let (path, tmp) = (dir.path().join("state"), dir.path().join("state.tmp"));
    let mut found = BTreeSet::new();
    for seed in 0..40 {
        std::fs::write(&path, "old").unwrap();
        let _ = std::fs::remove_file(&tmp);
        let fs = switch(seed);
        let file = fs.open(&tmp, OpenHow::Truncate).unwrap();
        file.write_all_at(&[IoSlice::new(b"new")], 0).unwrap();
        file.sync_data().unwrap();
        fs.rename(&tmp, &path).unwrap();
        assert_eq!(content(&fs, &path).unwrap(), b"new");
        assert_eq!(content(&fs, &tmp), None);
        found.insert(content(&RealFs, &path).unwrap());
        fs.sync_dir(dir.path()).unwrap();
        assert_eq!(content(&RealFs, &path).unwrap(), b"new");
        assert_eq!(RealFs.list(dir.path()).unwrap(), ["state"]);
        fs.remove(&path).unwrap();
        assert_eq!(fs.list(dir.path()).unwrap(), Vec::<String>::new());
        fs.sync_dir(dir.path()).unwrap();
        assert!(!path.exists());
    }
    assert_eq!(found, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
}

#[test]
fn a_new_directory_is_there_or_not_until_its_parent_is_synced() {
    let (mut absent, mut there) = (0, 0);
    for seed in 0..40 {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("log");
        let path = dir.join("state");
        let fs = switch(seed);
        fs.create_dir(&dir).unwrap();
        fs.create_dir(&dir).unwrap();
        assert_eq!(fs.list(place.path()).unwrap(), ["log"]);
        assert_eq!(fs.list(&dir).unwrap(), Vec::<String>::new());
        let file = fs.open(&path, OpenHow::Create).unwrap();
        file.write_all_at(&[IoSlice::new(b"abc")], 0).unwrap();
        file.sync_data().unwrap();
        fs.sync_dir(&dir).unwrap();
        assert_eq!(content(&fs, &path).unwrap(), b"abc");
        assert_eq!(fs.list(&dir).unwrap(), ["state"]);
        if dir.exists() {
            there += 1;
            assert_eq!(content(&RealFs, &path).unwrap(), b"abc");
        } else {
            absent += 1;
        }
        fs.sync_dir(place.path()).unwrap();
        assert_eq!(content(&RealFs, &path).unwrap(), b"abc");
        assert_eq!(fs.list(place.path()).unwrap(), ["log"]);

        // It is a directory like any other from here on.
        fs.rename(&path, &dir.join("renamed")).unwrap();
        fs.sync_dir(&dir).unwrap();
        assert_eq!(RealFs.list(&dir).unwrap(), ["renamed"]);
        let inside = place.path().join("none").join("dir");
        assert!(fs.create_dir(&inside).is_err() && fs.create_dir(&dir.join("renamed")).is_err());
    }
    assert!(absent > 10 && there > 3, "{absent} {there}");
}

/// Both views of the same disk through many random changes; synced, they are equal.
#[test]
fn after_syncs_both_views_are_the_same() {
    for seed in 0..15 {
        let dir = tempfile::tempdir().unwrap();
        let fs = switch(seed);
        let mut random = crate::random::Random::new(seed);
        let name = |n: usize| dir.path().join(format!("f{n}"));
        for _ in 0..200 {
            let (path, other) = (name(random.below(4)), name(random.below(4)));
            match random.below(8) {
                0 => drop(fs.remove(&path)),
                1 if path != other => drop(fs.rename(&path, &other)),
                2 => drop(fs.open(&path, OpenHow::Truncate).unwrap()),
                3 => fs
                    .open(&path, OpenHow::Create)
                    .unwrap()
                    .set_len(random.below(60) as u64)
                    .unwrap(),
                4 => fs.sync_dir(dir.path()).unwrap(),
                5 => fs.open(&path, OpenHow::Create).unwrap().sync_data().unwrap(),
                _ => {
                    let bytes = vec![u8::try_from(random.below(256)).unwrap(); random.below(30)];
                    let file = fs.open(&path, OpenHow::Create).unwrap();
                    file.write_all_at(&[IoSlice::new(&bytes)], random.below(50) as u64).unwrap();
                }
            }
        }
        for n in 0..4 {
            if let Ok(file) = fs.open(&name(n), OpenHow::Write) {
                file.sync_data().unwrap();
            }
        }
        fs.sync_dir(dir.path()).unwrap();
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        assert_eq!(sorted(fs.list(dir.path()).unwrap()), sorted(RealFs.list(dir.path()).unwrap()));
        for n in 0..4 {
            assert_eq!(content(&fs, &name(n)), content(&RealFs, &name(n)), "seed {seed} file {n}");
        }
    }
}

#[test]
fn a_store_keeps_what_it_reported_when_the_power_goes() {
    for seed in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("meta.properties"), META).unwrap();
        let mut log = Vec::new();
        for life in 0..6 {
            let fs = switch(seed * 100 + life);
            let mut opened = open(&fs, dir.path()).unwrap();
            assert_eq!(batches(&fs, dir.path()), log, "seed {seed} life {life}");
            assert_eq!(
                opened.election.map_or(0, |state| state.epoch.0),
                i32::try_from(life).unwrap()
            );
            let epoch = i32::try_from(life).unwrap() + 1;
            let end = opened.log_end.0;
            let appends = (1..6).map(|n| StoreWrite::Append(data(end + n, epoch, 1, 100)));
            let writes = [election(epoch), StoreWrite::Append(opening(end, epoch))];
            run(&mut opened.store, 1, writes.into_iter().chain(appends)).unwrap();
            if life % 2 == 1 {
                run(&mut opened.store, 8, [StoreWrite::Truncate { to: Offset(end + 2) }]).unwrap();
            }
            log = batches(&fs, dir.path());
            // Gone without closing: only the lock, which a kill releases too.
        }
    }
}
