//! What is reported as done outlasts a power cut right after it.

use std::path::Path;

use bytes::Bytes;
use quorate_core::{Epoch, Offset, OffsetAndEpoch};

use super::{DIR, META, batches, data, election, log_dir, open_mem, opening, run};
use crate::mem_fs::MemFs;
use crate::{LOG_DIR, StoreWrite, checkpoint};

/// So many power cuts; some leave nearly everything, some nearly nothing.
const CUTS: u64 = 60;

/// As `quorate format` leaves it without a bootstrap checkpoint: the log directory is yet to be made.
fn without_log_dir() -> MemFs {
    let fs = MemFs::new([DIR]);
    fs.install(&Path::new(DIR).join("meta.properties"), META.as_bytes());
    fs
}

#[test]
fn a_log_directory_that_an_open_made_outlasts_a_power_cut() {
    let fs = without_log_dir();
    let mut opened = open_mem(&fs).unwrap();
    for seed in 0..CUTS {
        let left = fs.crash(seed);
        assert!(left.content(&log_dir().join("partition.metadata")).is_some(), "seed {seed}");
        assert_eq!(open_mem(&left).unwrap().log_end, Offset(0));
    }
    let writes =
        [election(1), StoreWrite::Append(opening(0, 1)), StoreWrite::Append(data(1, 1, 2, 9))];
    assert_eq!(run(&mut opened.store, 1, writes).unwrap(), 3);
    let log = batches(&fs, Path::new(DIR));
    for seed in 0..CUTS {
        let left = fs.crash(seed);
        let reopened = open_mem(&left).unwrap();
        assert_eq!(reopened.election.map(|state| state.epoch), Some(Epoch(1)), "seed {seed}");
        assert_eq!(batches(&left, Path::new(DIR)), log, "seed {seed}");
    }
}

#[test]
fn a_checkpoint_that_was_written_outlasts_a_power_cut_whole() {
    let dir = format!("{DIR}/{LOG_DIR}");
    let id = OffsetAndEpoch::new(Offset(42), Epoch(3));
    let content = [Bytes::from(vec![1; 700]), Bytes::from(vec![2; 5])];
    // An attempt before this one may have left its unfinished file.
    for leftover in [None, Some("00000000000000000042-0000000003-0.checkpoint.part")] {
        let fs = MemFs::new([&dir]);
        if let Some(name) = leftover {
            fs.install(&Path::new(&dir).join(name), b"part of another one");
        }
        let path = checkpoint::write(&fs, Path::new(&dir), id, &content).unwrap();
        assert!(path.ends_with("00000000000000000042-0000000003.checkpoint"), "{path:?}");
        for seed in 0..CUTS {
            let left = fs.crash(seed);
            assert_eq!(left.content(&path).unwrap_or_default(), content.concat(), "seed {seed}");
        }
    }
}
