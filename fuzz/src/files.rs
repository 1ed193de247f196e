//! Arbitrary bytes as one of the small files, or as a checkpoint. The first byte chooses which.

use quorate_storage::checkpoint;
use quorate_storage::mem_fs::MemFs;
use quorate_storage::verify::verify;
use quorate_storage::{BatchFile, StorageError, Unsound, meta_properties, quorum_state};

use crate::log::{check_directory, dir, formatted, log_dir};
use crate::source::{DECODER, Source, mend_crcs, within_bounds};

/// The target.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let kind = source.byte();
    let content = source.rest();
    match kind % 6 {
        0 => read_checkpoint(content.to_vec(), false),
        1 => read_checkpoint(content.to_vec(), true),
        2 => read_election(content),
        3 => read_meta(content),
        4 => in_directory("partition.metadata", content),
        _ => in_directory("leader-epoch-checkpoint", content),
    }
}

/// A file of the log directory that only a start reads.
fn in_directory(name: &str, content: &[u8]) {
    let fs = formatted();
    fs.install(&log_dir().join(name), content);
    if let Some(opened) = check_directory(&fs, content.len()) {
        opened.store.close().expect("the disk is sound");
        let verified = verify(&fs, &dir(), &mut |_| ()).expect("the disk is sound");
        assert_eq!(verified.damage, [], "after a start");
    }
}

fn read_checkpoint(mut content: Vec<u8>, mend: bool) {
    if mend {
        mend_crcs(&mut content);
    }
    let fs = formatted();
    let path = log_dir().join(checkpoint::file_name(checkpoint::BOOTSTRAP));
    fs.install(&path, &content);
    const BUFFERS: u64 = 16 << 20;
    let read = within_bounds(content.len(), BUFFERS, || checkpoint::read(&fs, &path));
    match read {
        Ok(checkpoint) => assert!(!checkpoint.expect("it is there").control.is_empty()),
        Err(error) => assert!(matches!(error, StorageError::Corrupt { .. }), "{error}"),
    }
    // What verify finds nothing against, a start takes.
    check_directory(&fs, content.len());
    walk(&fs, &path, content.len());
}

/// A tool that goes on behind damage reaches the end.
fn walk(fs: &MemFs, path: &std::path::Path, len: usize) {
    let mut file = BatchFile::open(fs, path, 0).expect("it is there");
    for _ in 0..=len {
        let before = file.position();
        match file.next_batch() {
            Ok(Some(batch)) => assert_eq!(batch.position(), before),
            Ok(None) => return,
            Err(_) => match file.step_over().expect("the disk is sound") {
                Unsound::Batch(_) => assert!(file.position() > before),
                Unsound::CutShort | Unsound::NoBatch => return,
            },
        }
    }
    panic!("more batches than bytes");
}

fn read_election(content: &[u8]) {
    let fs = formatted();
    fs.install(&log_dir().join(quorum_state::FILE_NAME), content);
    // A JSON value takes far more than its text.
    let read = within_bounds(content.len(), 64 * DECODER, || quorum_state::read(&fs, &log_dir()));
    match read {
        Ok(state) => {
            let state = state.expect("it is there");
            quorum_state::write(&fs, &log_dir(), &state).expect("the disk is sound");
            let again = quorum_state::read(&fs, &log_dir());
            assert_eq!(again.expect("written by us"), Some(state));
        }
        Err(error) => assert!(matches!(error, StorageError::Unreadable { .. }), "{error}"),
    }
    check_directory(&fs, content.len());
}

fn read_meta(content: &[u8]) {
    let fs = MemFs::new([log_dir()]);
    fs.install(&dir().join(meta_properties::FILE_NAME), content);
    let read = within_bounds(content.len(), 64 * DECODER, || meta_properties::read(&fs, &dir()));
    // Before it is written anew: what a start makes of it.
    check_directory(&fs.kill(), content.len());
    match read {
        Ok(meta) => {
            let meta = meta.expect("it is there");
            meta_properties::write(&fs, &dir(), &meta, 1_800_000_000_000).expect("a sound disk");
            assert_eq!(meta_properties::read(&fs, &dir()).expect("written by us"), Some(meta));
        }
        Err(error) => assert!(matches!(error, StorageError::Unreadable { .. }), "{error}"),
    }
}
