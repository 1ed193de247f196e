//! Whose directory it is: not formatted, half formatted, foreign, open elsewhere.

use std::path::Path;

use quorate_core::NodeId;

use super::{DIR, META, election, formatted, log_file, open, open_mem, run};
use crate::mem_fs::MemFs;
use crate::{Options, RealFs, RollLimits, StorageError, Store};

fn meta_file() -> std::path::PathBuf {
    Path::new(DIR).join("meta.properties")
}

fn refusal(fs: &MemFs) -> String {
    open_mem(fs).unwrap_err().to_string()
}

#[test]
fn a_directory_without_meta_properties_is_not_formatted() {
    assert!(refusal(&MemFs::new([DIR])).contains("run `quorate format`"));
    let missing = MemFs::new(["/disk"]);
    assert!(matches!(open_mem(&missing), Err(StorageError::Unformatted { .. })));
    let fs = MemFs::new([DIR]);
    fs.install(&Path::new(DIR).join("notes.txt"), b"hello");
    assert!(matches!(open_mem(&fs), Err(StorageError::Unformatted { .. })));
    assert!(
        fs.content(&Path::new(DIR).join(".lock")).is_none(),
        "a stranger's directory is left alone"
    );
}

#[test]
fn formatting_that_was_interrupted_shows() {
    let fs = MemFs::new([DIR, "/disk/meta/__cluster_metadata-0"]);
    fs.install(&log_file("00000000000000000000-0000000000.checkpoint"), b"");
    let error = refusal(&fs);
    assert!(error.contains("__cluster_metadata-0") && error.contains("format` again"), "{error}");

    let fs = MemFs::new([DIR]);
    fs.install(&Path::new(DIR).join("bootstrap.checkpoint"), b"");
    assert!(refusal(&fs).contains("bootstrap.checkpoint"));

    // A replica ran here: nobody is told to remove its log.
    let fs = MemFs::new([DIR, "/disk/meta/__cluster_metadata-0"]);
    fs.install(&log_file("00000000000000000000.log"), b"");
    let error = refusal(&fs);
    assert!(error.contains("restore meta.properties") && !error.contains("remove that"), "{error}");
}

#[test]
fn another_nodes_directory_is_refused() {
    let fs = formatted();
    let options = Options { dir: DIR.into(), node: NodeId(2), limits: RollLimits::default() };
    let error = Store::open(fs, options).unwrap_err().to_string();
    assert!(error.contains("node.id is 1, but 2 is expected"), "{error}");
}

#[test]
fn another_topics_log_is_refused() {
    let fs = formatted();
    fs.install(&log_file("partition.metadata"), b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw");
    let error = refusal(&fs);
    assert!(error.contains("topic_id is AAECAwQFBgcICQoLDA0ODw"), "{error}");
    for (content, field) in [
        (&b""[..], "version"),
        (b"version: 7\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "version"),
        (b"version: 0\n", "topic_id"),
    ] {
        fs.install(&log_file("partition.metadata"), content);
        let error = refusal(&fs);
        assert!(error.contains(&format!("partition.metadata, {field}:")), "{error}");
    }
    fs.install(&log_file("partition.metadata"), b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ");
    open_mem(&fs).unwrap();
}

#[test]
fn one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("meta.properties"), META).unwrap();
    let mut first = open(&RealFs, dir.path()).unwrap().store;
    let error = open(&RealFs, dir.path()).unwrap_err();
    assert!(matches!(error, StorageError::Locked { .. }), "{error}");
    run(&mut first, 1, [election(1)]).unwrap();
    first.close().unwrap();
    assert!(!dir.path().join(".lock").exists(), "as Kafka leaves it");
    open(&RealFs, dir.path()).unwrap();
}

/// The lock is the one that a JVM takes: seen from another process as an fcntl write lock.
#[test]
fn another_process_sees_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("meta.properties"), META).unwrap();
    let opened = open(&RealFs, dir.path()).unwrap();
    let inode = {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(dir.path().join(".lock")).unwrap().ino()
    };
    let held = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let inode = format!(":{inode}");
        let pid = std::process::id().to_string();
        locks.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.contains(&"POSIX")
                && words.contains(&"WRITE")
                && words.contains(&pid.as_str())
                && words.iter().any(|word| word.ends_with(&inode))
                && words.ends_with(&["0", "EOF"])
        })
    };
    assert!(held());
    drop(opened);
    assert!(!held());
}

#[test]
fn a_lock_file_that_a_kill_left_is_no_obstacle() {
    let fs = formatted();
    fs.install(&Path::new(DIR).join(".lock"), b"");
    let opened = open_mem(&fs).unwrap();
    assert!(matches!(open_mem(&fs), Err(StorageError::Locked { .. })));
    opened.store.close().unwrap();
    assert!(fs.content(&Path::new(DIR).join(".lock")).is_none());
}

// B120
#[test]
fn directory_ids_are_checked_and_may_be_missing() {
    let fs = formatted();
    let meta = |id: &str| format!("version=1\ncluster.id=C\nnode.id=1\n{id}");
    fs.install(&meta_file(), meta("").as_bytes());
    assert_eq!(open_mem(&fs).unwrap().meta.directory, None, "the caller decides what to do");
    for reserved in [
        "AAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAQ",
        "AAAAAAAAAAAAAAAAAAAAYw",
        "AAAAAAAAAAD__________w",
    ] {
        fs.install(&meta_file(), meta(&format!("directory.id={reserved}\n")).as_bytes());
        let error = refusal(&fs);
        assert!(
            error.contains("directory.id: ") && error.contains("reserved"),
            "{reserved}: {error}"
        );
    }
    for bad in
        ["", "abc", "AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcICQoLDA0ODw=", "AAECAwQFBgcICQoLDA0O+w"]
    {
        fs.install(&meta_file(), meta(&format!("directory.id={bad}\n")).as_bytes());
        let error = refusal(&fs);
        assert!(error.contains("directory.id: ") && error.contains("base64"), "{bad:?}: {error}");
    }
    // Java's decoder takes padding, and ignores bits that are too many.
    for good in [
        "AAECAwQFBgcICQoLDA0ODw",
        "AAECAwQFBgcICQoLDA0ODw==",
        "AAECAwQFBgcICQoLDA0ODx",
        "AAAAAAAAAAAAAAAAAAAAZA",
    ] {
        fs.install(&meta_file(), meta(&format!("directory.id={good}\n")).as_bytes());
        assert!(open_mem(&fs).unwrap().meta.directory.is_some(), "{good}");
    }
}

#[test]
fn meta_properties_that_do_not_read_are_refused_by_field() {
    let fs = formatted();
    for (content, field) in [
        ("", "version"),
        ("version=0\nbroker.id=1\n", "version"),
        ("version=2\nnode.id=1\ncluster.id=C\n", "version"),
        ("version=1\nnode.id=1\n", "cluster.id"),
        ("version=1\ncluster.id=C\n", "node.id"),
        ("version=1\ncluster.id=C\nnode.id=x\n", "node.id"),
        ("version=1\ncluster.id=C\nnode.id=-1\n", "node.id"),
        ("version=1\ncluster.id=\\u12\n", "line 2"),
    ] {
        fs.install(&meta_file(), content.as_bytes());
        let error = refusal(&fs);
        assert!(error.contains(&format!("meta.properties, {field}:")), "{content:?}: {error}");
    }
}

#[test]
fn odd_cluster_ids_survive_a_round_trip() {
    let fs = formatted();
    for cluster in ["a b=c:d#e!f\\g", " leading", "", "grüße €", "-dash", "tab\tnewline\n"] {
        let meta = crate::meta_properties::MetaProperties {
            cluster: cluster.to_owned(),
            node: NodeId(1),
            directory: None,
        };
        crate::meta_properties::write(&fs, Path::new(DIR), &meta, 0).unwrap();
        assert_eq!(crate::meta_properties::read(&fs, Path::new(DIR)).unwrap().unwrap(), meta);
    }
}
