//! Directories that Kafka wrote, opened on copies: what comes out is what Kafka's own log layer and dump
//! tool say in `expected.json`.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_core::io::ElectionState;
use quorate_core::{DirectoryId, NodeId};
use quorate_wire::batch::{Batch, batches as parse_batches, control_records};
use quorate_wire::control::{ControlRecord, VotersRecord};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    FileSystem, LOG_DIR, Opened, Options, RealFs, RollLimits, StorageError, Store, checkpoint,
    read_log,
};

fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dirs").join(name)
}

fn expected(tree_name: &str) -> Value {
    let text = fs::read_to_string(tree(tree_name).join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn trees(prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(tree("")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut trees: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    assert!(!trees.is_empty());
    trees.sort();
    trees
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => fs::write(to, fs::read(entry.path()).unwrap()).unwrap(),
        }
    }
}

/// A copy of a node's directory.
fn copy_of(tree_name: &str, node: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy(&tree(tree_name).join(node), dir.path());
    dir
}

fn open(dir: &Path) -> Result<Opened<RealFs>, StorageError> {
    let node = crate::meta_properties::read(&RealFs, dir).unwrap().unwrap().node;
    Store::open(RealFs, Options { dir: dir.to_owned(), node, limits: RollLimits::default() })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

/// An election state as Kafka prints it.
fn printed(state: &ElectionState) -> String {
    let leader =
        state.leader.map_or("OptionalInt.empty".to_owned(), |id| format!("OptionalInt[{id}]"));
    let voted = state.voted.map_or("Optional.empty".to_owned(), |key| {
        let directory = key.directory.map_or("<undefined>".to_owned(), |id| id.to_string());
        format!("Optional[ReplicaKey(id={}, directoryId={directory})]", key.id)
    });
    let epoch = state.epoch;
    let voters = &state.voters;
    format!("Election(epoch={epoch}, leaderId={leader}, votedKey={voted}, voters={voters:?})")
}

fn voters_json(record: &VotersRecord) -> Value {
    let voters = record.voters.iter().map(|voter| {
        let directory = DirectoryId::from_bytes(voter.voter_directory_id.0).unwrap();
        let endpoints: Vec<Value> = voter
            .endpoints
            .iter()
            .map(|endpoint| json!({"name": endpoint.name, "host": endpoint.host, "port": endpoint.port}))
            .collect();
        let feature = &voter.kraft_version_feature;
        json!({
            "voterId": voter.voter_id,
            "voterDirectoryId": directory.to_string(),
            "endpoints": endpoints,
            "kRaftVersionFeature": {
                "minSupportedVersion": feature.min_supported_version,
                "maxSupportedVersion": feature.max_supported_version,
            },
        })
    });
    Value::Array(voters.collect())
}

/// Compares an open directory with what Kafka found when it opened a copy.
fn check_opened(opened: &Opened<RealFs>, expected: &Value, what: &str) {
    assert_eq!(opened.log_start.0, number(&expected["logStartOffset"]), "{what}");
    assert_eq!(opened.log_end.0, number(&expected["logEndOffset"]), "{what}");
    let election = opened.election.as_ref().map(printed);
    assert_eq!(election.as_deref(), expected["electionState"].as_str(), "{what}");
    let epochs: Vec<String> =
        opened.epochs.iter().map(|(epoch, start)| format!("{epoch} {start}")).collect();
    let checkpoint = expected["leaderEpochCheckpointAfter"].as_array().unwrap();
    let entries: Vec<&str> = checkpoint.iter().skip(2).map(text).collect();
    assert_eq!(epochs, entries, "{what}");

    // The latest record counts; those of the 0-0 checkpoint stand at offset -1.
    let bootstrap = opened.bootstrap.iter().flat_map(|checkpoint| &checkpoint.control);
    let records = || {
        bootstrap
            .clone()
            .map(|record| (-1, record))
            .chain(opened.control.iter().map(|(offset, record)| (offset.0, record)))
    };
    let version = records()
        .filter_map(|(_, record)| match record {
            ControlRecord::KRaftVersion(record) => Some(record.kraft_version),
            _ => None,
        })
        .next_back();
    assert_eq!(i64::from(version.unwrap_or(0)), number(&expected["kraftVersion"]), "{what}");
    let voters = records()
        .filter_map(|(offset, record)| match record {
            ControlRecord::Voters(record) => Some((offset, record)),
            _ => None,
        })
        .next_back();
    assert_eq!(voters.map(|(offset, _)| offset), expected["votersOffset"].as_i64(), "{what}");
    let voters = voters.map_or(json!([]), |(_, record)| voters_json(record));
    let by_id = |value: &Value| {
        let mut voters = value.as_array().unwrap().clone();
        voters.sort_by_key(|voter| number(&voter["voterId"]));
        voters
    };
    assert_eq!(by_id(&voters), by_id(&expected["voters"]), "{what}");
}

#[test]
fn directories_open_as_kafka_opens_them() {
    let mut count = 0;
    let opens = |name: &String| name.starts_with("run-") && !name.contains("snapshot");
    for name in trees("run-").into_iter().filter(opens).chain(trees("format-")) {
        let expected = expected(&name);
        let Some(nodes) = expected["nodes"].as_object() else { continue };
        for (node, expected) in nodes.iter().filter(|(_, node)| !node["opened"].is_null()) {
            let dir = copy_of(&name, node);
            let what = format!("{name}/{node}");
            let opened = open(dir.path()).unwrap();
            assert_eq!(opened.notes, [], "{what}");
            check_opened(&opened, &expected["opened"], &what);
            opened.store.close().unwrap();
            // And once more, after we have closed it.
            let opened = open(dir.path()).unwrap();
            assert_eq!(opened.notes, [], "{what}");
            check_opened(&opened, &expected["opened"], &what);
            count += 1;
        }
    }
    assert!(count >= 28, "only {count}");
}

#[test]
fn directories_without_a_log_folder_open() {
    for (name, node) in
        [("format-4.0.0-none", "n1"), ("format-4.0.0-static", "n1"), ("format-4.4.0-broker", "n4")]
    {
        let dir = copy_of(name, node);
        let opened = open(dir.path()).unwrap();
        assert_eq!((opened.log_end.0, &opened.bootstrap), (0, &None));
        assert!(dir.path().join(LOG_DIR).join("partition.metadata").exists());
    }
}

#[test]
fn a_directory_with_snapshots_is_refused_and_left_alone() {
    let dir = copy_of("run-snapshot-4.4.0", "n1");
    let log_dir = dir.path().join(LOG_DIR);
    let before = RealFs.list(&log_dir).unwrap().len();
    let error = open(dir.path()).unwrap_err();
    assert!(
        matches!(&error, StorageError::HasSnapshots { path, .. } if path.starts_with(&log_dir))
    );
    assert!(error.to_string().contains("cannot yet open a directory with snapshots"), "{error}");
    assert_eq!(RealFs.list(&log_dir).unwrap().len(), before);
}

/// One batch in the words of Kafka's dump tool; only what `expected` has too.
fn check_batch(batch: &Batch, position: u64, expected: &Value, defaults: &Value, what: &str) {
    let header = batch.header();
    let ours = json!({
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset(),
        "count": header.record_count,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isControl": header.is_control(),
        "position": position,
        "CreateTime": header.max_timestamp,
        "size": batch.bytes().len(),
        "crc": header.crc,
        "magic": header.magic,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
    });
    for (field, value) in ours.as_object().unwrap() {
        let expected = expected.get(field).or(defaults.get(field)).unwrap();
        assert_eq!(value, expected, "{field} of {what}");
    }
    let records: Vec<_> = batch.records().unwrap().map(Result::unwrap).collect();
    let expected = expected["records"].as_array().unwrap();
    assert_eq!(records.len(), expected.len(), "{what}");
    for (record, expected) in records.iter().zip(expected) {
        assert_eq!(record.offset, number(&expected["offset"]), "{what}");
        let len = record.value.map(<[u8]>::len);
        assert_eq!(
            len,
            expected["valueSize"].as_u64().and_then(|len| usize::try_from(len).ok()),
            "{what}"
        );
    }
    for ((offset, record), expected) in control_records(batch).unwrap().iter().zip(expected) {
        assert_eq!(*offset, number(&expected["offset"]), "{what}");
        check_control(record, expected, what);
    }
}

fn check_control(record: &ControlRecord, expected: &Value, what: &str) {
    let (kind, value) = (text(&expected["control"]), &expected["value"]);
    let ids = |voters: &[quorate_wire::control::Voter]| {
        voters.iter().map(|voter| json!({"voterId": voter.voter_id})).collect::<Value>()
    };
    let (ours, content) = match record {
        ControlRecord::LeaderChange(change) => {
            let content = json!({
                "version": change.version,
                "leaderId": change.leader_id,
                "voters": ids(&change.voters),
                "grantingVoters": ids(&change.granting_voters),
            });
            ("LeaderChange", content)
        }
        ControlRecord::SnapshotHeader(header) => {
            let time = header.last_contained_log_timestamp;
            (
                "SnapshotHeader",
                json!({"version": header.version, "lastContainedLogTimestamp": time}),
            )
        }
        ControlRecord::SnapshotFooter(footer) => {
            ("SnapshotFooter", json!({"version": footer.version}))
        }
        ControlRecord::KRaftVersion(version) => (
            "KRaftVersion",
            json!({"version": version.version, "kRaftVersion": version.kraft_version}),
        ),
        ControlRecord::Voters(voters) => {
            ("KRaftVoters", json!({"version": voters.version, "voters": voters_json(voters)}))
        }
    };
    assert_eq!((ours, &content), (kind, value), "{what}");
}

#[test]
fn every_batch_is_read_as_kafkas_dump_tool_reads_it() {
    let mut count = 0;
    for name in ["run-full", "run-elections", "run-voters", "run-killed", "run-static-upgraded"] {
        let expected = expected(name);
        for (node, files) in expected["nodes"].as_object().unwrap() {
            let dir = tree(name).join(node);
            let dump = |file: &str| {
                let entry = text(&files["files"][file]["dump"]);
                expected["dumps"][entry]["batches"].as_array().unwrap().clone()
            };
            let mut found = read_log(&RealFs, &dir.join(LOG_DIR)).unwrap();
            let mut segments: Vec<String> = files["files"]
                .as_object()
                .unwrap()
                .keys()
                .filter(|file| file.ends_with(".log"))
                .cloned()
                .collect();
            segments.sort();
            for segment in segments {
                for expected_batch in dump(&segment) {
                    let what = format!("{name}/{node}/{segment} {}", expected_batch["baseOffset"]);
                    let found = found.next().unwrap().unwrap();
                    assert_eq!(*found.path, dir.join(&segment), "{what}");
                    let (batch, position) = (found.batch.batch(), found.batch.position());
                    check_batch(
                        batch,
                        position,
                        &expected_batch,
                        &expected["batchDefaults"],
                        &what,
                    );
                    count += 1;
                }
            }
            assert!(found.next().is_none(), "{name}/{node}");
        }
    }
    assert!(count > 1000, "only {count}");
}

#[test]
fn checkpoints_are_read_and_written_as_kafka_has_them() {
    let mut count = 0;
    for name in trees("format-").into_iter().chain(trees("run-")) {
        let expected = expected(&name);
        let Some(nodes) = expected["nodes"].as_object() else { continue };
        for (node, files) in nodes {
            for (file, entry) in files["files"].as_object().unwrap() {
                let Some(dump) = entry["dump"].as_str().filter(|_| file.ends_with(".checkpoint"))
                else {
                    continue;
                };
                let Some(dump) = expected["dumps"][dump]["batches"].as_array() else { continue };
                let path = tree(&name).join(node).join(file);
                let content = fs::read(&path).unwrap();
                let found: Vec<Batch> =
                    parse_batches(content.clone().into()).map(Result::unwrap).collect();
                assert_eq!(found.len(), dump.len());
                let mut position = 0;
                for (batch, expected_batch) in found.iter().zip(dump) {
                    let what = format!("{}", path.display());
                    check_batch(batch, position, expected_batch, &expected["batchDefaults"], &what);
                    position += batch.bytes().len() as u64;
                }
                let read = checkpoint::read(&RealFs, &path).unwrap().unwrap();
                let counts = |control: bool| -> usize {
                    let records = dump.iter().filter(|batch| batch["isControl"] == control);
                    records.map(|batch| usize::try_from(number(&batch["count"])).unwrap()).sum()
                };
                assert_eq!((read.control.len(), read.data.len()), (counts(true), counts(false)));

                let dir = tempfile::tempdir().unwrap();
                let batches: Vec<_> = found.iter().map(|batch| batch.bytes().clone()).collect();
                let written =
                    checkpoint::write(&RealFs, dir.path(), checkpoint::BOOTSTRAP, &batches)
                        .unwrap();
                assert_eq!(fs::read(&written).unwrap(), content);
                assert_eq!(
                    RealFs.list(dir.path()).unwrap(),
                    ["00000000000000000000-0000000000.checkpoint"]
                );
                use std::os::unix::fs::PermissionsExt;
                assert_eq!(fs::metadata(&written).unwrap().permissions().mode() & 0o777, 0o400);
                count += 1;
            }
        }
    }
    assert!(count > 20, "only {count}");
}

#[test]
fn damage_is_cut_where_kafka_cuts_it_or_better() {
    // In the first two Kafka cuts nothing, in the third it leaves a hole.
    let own = [
        ("damaged-epoch-higher", 223),
        ("damaged-epoch-lower", 223),
        ("damaged-first-segment-no-index", 39),
    ];
    for name in trees("damaged-") {
        let dir = copy_of(&name, "n1");
        let opened = open(dir.path()).unwrap();
        let expected = expected(&name);
        match own.iter().find(|(own, _)| *own == name) {
            Some((_, end)) => assert_eq!(opened.log_end.0, *end, "{name}"),
            None => check_opened(&opened, &expected["nodes"]["n1"]["opened"], &name),
        }
        assert_eq!(opened.epochs, [(quorate_core::Epoch(1), quorate_core::Offset(0))], "{name}");
        let [note] = opened.notes.as_slice() else { panic!("{name}: {:?}", opened.notes) };
        let damage = &expected["damage"];
        assert!(note.path.ends_with(text(&damage["file"])), "{name}: {note}");
        let at = damage["batch"]["position"].as_u64().or(damage["zerosFrom"].as_u64()).unwrap();
        assert_eq!(note.position, at, "{name}: {note}");
        assert_eq!(note.bytes_lost > 0, name != "damaged-zero-tail", "{name}: {note}");
        let end = opened.log_end;
        drop(opened);
        let again = open(dir.path()).unwrap();
        assert_eq!((again.log_end, again.notes.as_slice()), (end, [].as_slice()), "{name}");
    }
}

#[test]
fn quorum_state_files_are_read_and_written_letter_by_letter() {
    let expected = expected("quorum-state");
    let kinds = expected["kinds"].as_object().unwrap();
    assert!(kinds.len() >= 17);
    for (kind, expected) in kinds {
        let dir = copy_of("quorum-state", kind);
        let state = crate::quorum_state::read(&RealFs, dir.path()).unwrap().unwrap();
        assert_eq!(printed(&state), text(&expected["electionState"]), "{kind}");
        let version = i64::from(state.kraft_version.0);
        assert_eq!(version, number(&expected["fields"]["data_version"]), "{kind}");
        crate::quorum_state::write(&RealFs, dir.path(), &state).unwrap();
        let written = fs::read_to_string(dir.path().join("quorum-state")).unwrap();
        assert_eq!(written, text(&expected["text"]), "{kind}");
    }
}

#[test]
fn meta_properties_are_read_and_written_letter_by_letter() {
    for name in trees("format-") {
        let expected = expected(&name);
        let Some(nodes) = expected["nodes"].as_object() else { continue };
        for (node, expected) in nodes {
            let dir = copy_of(&name, node);
            let path = dir.path().join("meta.properties");
            let meta = crate::meta_properties::read(&RealFs, dir.path()).unwrap().unwrap();
            let properties = &expected["metaProperties"];
            assert_eq!(meta.cluster, text(&properties["cluster.id"]));
            assert_eq!(meta.node, NodeId(text(&properties["node.id"]).parse().unwrap()));
            assert_eq!(meta.directory.unwrap().to_string(), text(&properties["directory.id"]));
            let kafkas = fs::read_to_string(&path).unwrap();
            // `#Sun Nov 29 22:11:08 UTC 2026`: that day, at that time.
            let time = kafkas.lines().nth(1).unwrap().get(12..20).unwrap();
            let parts: Vec<i64> = time.split(':').map(|part| part.parse().unwrap()).collect();
            let day = 1_795_910_400;
            let seconds = day + parts[0] * 3600 + parts[1] * 60 + parts[2];
            crate::meta_properties::write(&RealFs, dir.path(), &meta, seconds * 1000).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), kafkas, "{name}/{node}");
        }
    }
}
