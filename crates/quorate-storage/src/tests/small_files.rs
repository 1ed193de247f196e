//! quorum-state and its like, well or badly written.

use std::path::Path;

use quorate_core::io::ElectionState;
use quorate_core::message::KRaftVersion;
use quorate_core::{DirectoryId, Epoch, NodeId, ReplicaKey};

use super::{DIR, election, formatted, log_dir, log_file, open_mem, run};
use crate::{StorageError, meta_properties, quorum_state};

const V1: &str = r#"{"leaderId":-1,"leaderEpoch":3,"votedId":2,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw","data_version":1}"#;
const V0: &str = r#"{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}"#;

fn read(content: &[u8]) -> Result<ElectionState, StorageError> {
    let fs = formatted();
    fs.install(&log_file("quorum-state"), content);
    quorum_state::read(&fs, &log_dir()).map(Option::unwrap)
}

#[test]
fn both_versions_are_read() {
    let directory = DirectoryId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let v1 = ElectionState {
        epoch: Epoch(3),
        leader: None,
        voted: Some(ReplicaKey::new(NodeId(2), directory)),
        kraft_version: KRaftVersion(1),
        voters: Vec::new(),
    };
    assert_eq!(read(V1.as_bytes()).unwrap(), v1);
    let v0 = ElectionState {
        epoch: Epoch(3),
        leader: Some(NodeId(1)),
        voted: None,
        kraft_version: KRaftVersion(0),
        voters: vec![NodeId(1), NodeId(2)],
    };
    assert_eq!(read(V0.as_bytes()).unwrap(), v0);
    // As Kafka reads them: fields that are too many, a vote beside a leader, a second line.
    let more = V1.replace('{', r#"{"more":[1],"#);
    assert_eq!(read(more.as_bytes()).unwrap(), v1);
    assert_eq!(read(V1.replace("-1", "2").as_bytes()).unwrap().leader, Some(NodeId(2)));
    assert_eq!(read(format!("{V1}\n{V0}\n").as_bytes()).unwrap(), v1);
    assert_eq!(read(format!("{V1}\n").as_bytes()).unwrap(), v1);
}

// B101
#[test]
fn a_file_that_does_not_read_is_refused_by_field_and_never_replaced() {
    let without = |text: &str, field: &str| {
        let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
        value.as_object_mut().unwrap().remove(field).unwrap();
        (value.to_string().into_bytes(), field.to_owned())
    };
    let with = |text: &str, from: &str, to: &str, field: &str| {
        assert!(text.contains(from));
        (text.replace(from, to).into_bytes(), field.to_owned())
    };
    let v1_fields = ["leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "data_version"];
    let v0_fields = [
        "clusterId",
        "leaderId",
        "leaderEpoch",
        "votedId",
        "appliedOffset",
        "currentVoters",
        "data_version",
    ];
    let mut cases: Vec<(Vec<u8>, String)> = Vec::new();
    cases.extend(v1_fields.map(|field| without(V1, field)));
    cases.extend(v0_fields.map(|field| without(V0, field)));
    cases.extend([
        with(V1, r#""data_version":1"#, r#""data_version":2"#, "data_version"),
        with(V1, r#""data_version":1"#, r#""data_version":-1"#, "data_version"),
        with(V1, r#""data_version":1"#, r#""data_version":"1""#, "data_version"),
        with(V1, r#""leaderEpoch":3"#, r#""leaderEpoch":-3"#, "leaderEpoch"),
        with(V1, r#""leaderEpoch":3"#, r#""leaderEpoch":4294967299"#, "leaderEpoch"),
        with(V1, r#""leaderEpoch":3"#, r#""leaderEpoch":3.5"#, "leaderEpoch"),
        with(V1, r#""votedId":2"#, r#""votedId":-2"#, "votedId"),
        with(V1, r#""votedId":2"#, r#""votedId":null"#, "votedId"),
        with(V1, "AAECAwQFBgcICQoLDA0ODw", "AAEC", "votedDirectoryId"),
        with(V0, r#"[{"voterId":1},{"voterId":2}]"#, "null", "currentVoters"),
        with(V0, r#"{"voterId":2}"#, r#"{"id":2}"#, "currentVoters"),
        (Vec::new(), "line 1".to_owned()),
        (vec![0; 105], "line 1".to_owned()),
        (format!("\u{feff}{V1}").into_bytes(), "line 1".to_owned()),
        (V1.replace(',', ",\n").into_bytes(), "line 1".to_owned()),
        (V1.as_bytes()[..40].to_vec(), "line 1".to_owned()),
        (b"[1]".to_vec(), "line 1".to_owned()),
        (b"\xff{}".to_vec(), "byte 0".to_owned()),
    ]);
    for (content, field) in cases {
        let fs = formatted();
        fs.install(&log_file("quorum-state"), &content);
        let error = open_mem(&fs).unwrap_err().to_string();
        let start = format!("{}, {field}: ", log_file("quorum-state").display());
        assert!(error.starts_with(&start), "{:?}: {error}", String::from_utf8_lossy(&content));
        assert_eq!(fs.content(&log_file("quorum-state")).unwrap(), content, "never replaced");
    }
}

#[test]
fn meta_properties_has_no_byte_order_mark() {
    let bad =
        [&b"\xff"[..], b"\xff\xff", b"\xfe", b"\xef\xbb", b"\xff\xfe1", b"\xef\xbb\xbfversion=1\n"];
    for content in bad {
        let fs = formatted();
        fs.install(&Path::new(DIR).join("meta.properties"), content);
        let error = meta_properties::read(&fs, Path::new(DIR)).expect_err("it has no version");
        assert!(
            matches!(&error, StorageError::Unreadable { field, .. } if field == "version"),
            "{error}"
        );
    }
}

#[test]
fn the_versions_follow_kraft_version_both_ways() {
    let fs = formatted();
    let mut opened = open_mem(&fs).unwrap();
    assert_eq!(opened.election, None);
    for version in [1, 0, 1] {
        let state = ElectionState {
            epoch: Epoch(7),
            leader: None,
            voted: Some(ReplicaKey::new(NodeId(3), None)),
            kraft_version: KRaftVersion(version),
            voters: if version == 0 { vec![NodeId(1), NodeId(3)] } else { Vec::new() },
        };
        run(&mut opened.store, 1, [crate::StoreWrite::ElectionState(state.clone())]).unwrap();
        assert_eq!(quorum_state::read(&fs, &log_dir()).unwrap(), Some(state));
    }
    run(&mut opened.store, 4, [election(8)]).unwrap();
    drop(opened);
    assert_eq!(open_mem(&fs).unwrap().election.unwrap().epoch, Epoch(8));
}

#[test]
fn a_missing_file_beside_a_log_is_noted() {
    let fs = formatted();
    let mut store = open_mem(&fs).unwrap().store;
    run(&mut store, 1, [election(1), crate::StoreWrite::Append(super::opening(0, 1))]).unwrap();
    drop(store);
    crate::FileSystem::remove(&fs, &log_file("quorum-state")).unwrap();
    let opened = open_mem(&fs).unwrap();
    let [note] = opened.notes.as_slice() else { panic!("{:?}", opened.notes) };
    assert!(
        note.path.ends_with("quorum-state") && note.to_string().contains("forgotten a vote"),
        "{note}"
    );
}
