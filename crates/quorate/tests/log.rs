//! `quorate log dump` and `log verify` on directories that Kafka wrote: a dump is what Kafka's own dump tool
//! says, and damage is found where it was put.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Map, Value};

fn trees() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dirs")
}

fn expected(tree: &str) -> Value {
    let text = fs::read_to_string(trees().join(tree).join("expected.json")).expect("expected.json");
    serde_json::from_str(&text).expect("JSON")
}

fn quorate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorate")).args(args).output().expect("the command runs")
}

fn objects(output: &Output) -> Vec<Map<String, Value>> {
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    let parse = |line: &str| serde_json::from_str(line).expect("an object a line");
    text.lines().map(parse).collect()
}

/// What Kafka says of a batch, with its defaults; a record's time stands only where it differs.
fn in_full(batch: &Value, defaults: &Value) -> Map<String, Value> {
    let mut full = defaults.as_object().expect("defaults").clone();
    full.extend(batch.as_object().expect("a batch").clone());
    let time = full["CreateTime"].clone();
    for record in full["records"].as_array_mut().expect("records") {
        let record = record.as_object_mut().expect("a record");
        record.entry("CreateTime").or_insert(time.clone());
    }
    full
}

/// Ours without what Kafka's JSON leaves out, which its text has.
fn as_kafka_has_it(mut batch: Map<String, Value>) -> Map<String, Value> {
    batch.remove("file");
    for record in batch["records"].as_array_mut().expect("records") {
        let record = record.as_object_mut().expect("a record");
        let is_control = record.contains_key("control");
        assert_eq!(record.remove("keySize"), Some((if is_control { 4 } else { -1 }).into()));
        assert_eq!(record.remove("sequence"), Some((-1).into()));
        assert_eq!(record.remove("headerKeys"), Some(Value::Array(Vec::new())));
    }
    batch
}

#[test]
fn a_dump_is_what_kafkas_tool_says() {
    let mut batches = 0;
    for tree in [
        "run-full",
        "run-elections",
        "run-voters",
        "run-static",
        "run-static-upgraded",
        "run-static-upgraded-restarted",
        "run-snapshot-4.0.0",
        "format-4.0.0-scram",
        "damaged-newest-segment",
    ] {
        let expected = expected(tree);
        for (path, dump) in expected["dumps"].as_object().expect("dumps") {
            let file = trees().join(tree).join(path).display().to_string();
            let output = quorate(&["log", "dump", "--json", &file]);
            assert!(output.status.success() && output.stderr.is_empty(), "{path}");
            let ours: Vec<_> = objects(&output).into_iter().map(as_kafka_has_it).collect();
            let theirs = dump["batches"].as_array().expect("batches").iter();
            let theirs: Vec<_> =
                theirs.map(|batch| in_full(batch, &expected["batchDefaults"])).collect();
            assert_eq!(ours.len(), theirs.len(), "{tree} {path}");
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_eq!(ours, theirs, "{tree} {path}");
            }
            batches += ours.len();
        }
    }
    assert!(batches > 800, "only {batches}");
}

#[test]
fn the_text_of_a_dump_is_that_of_kafkas_tool() {
    let file = trees().join(
        "format-4.2.1-standalone/n1/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
    );
    let output = quorate(&["log", "dump", &file.display().to_string()]);
    // kafka-dump-log of 4.2.1 --cluster-metadata-decoder on the same file.
    let expected = r#"Snapshot end offset: 0, epoch: 0
baseOffset: 0 lastOffset: 2 count: 3 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: true deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1795990409125 size: 166 magic: 2 compresscodec: none crc: 1704259510 isvalid: true
| offset: 0 CreateTime: 1795990409125 keySize: 4 valueSize: 11 sequence: -1 headerKeys: [] SnapshotHeader {"version":0,"lastContainedLogTimestamp":1795990409119}
| offset: 1 CreateTime: 1795990409125 keySize: 4 valueSize: 5 sequence: -1 headerKeys: [] KRaftVersion {"version":0,"kRaftVersion":1}
| offset: 2 CreateTime: 1795990409125 keySize: 4 valueSize: 55 sequence: -1 headerKeys: [] KRaftVoters {"version":0,"voters":[{"voterId":1,"voterDirectoryId":"19OsNDoWR_mx2OhTBPFTCw","endpoints":[{"name":"CONTROLLER","host":"127.0.0.1","port":21001}],"kRaftVersionFeature":{"minSupportedVersion":0,"maxSupportedVersion":1}}]}
"#;
    let text = String::from_utf8(output.stdout).expect("text");
    let (first, rest) = text.split_once('\n').expect("lines");
    assert_eq!(first, format!("Dumping {}", file.display()));
    assert!(rest.starts_with(expected), "{rest}");
}

#[test]
fn a_dump_goes_as_far_as_it_can_and_says_so() {
    let segment = |tree: &str| {
        let path = format!("{tree}/n1/__cluster_metadata-0/00000000000000000198.log");
        trees().join(path).display().to_string()
    };
    let torn = quorate(&["log", "dump", &segment("damaged-torn-tail")]);
    assert_eq!(torn.status.code(), Some(0));
    let text = String::from_utf8(torn.stdout).expect("text");
    assert!(text.ends_with("Found 160 invalid bytes at the end of 00000000000000000198.log\n"));

    // Not as Kafka's tool: a node makes room for more, so zeros behind the last batch end no dump with an error.
    let zeros = quorate(&["log", "dump", &segment("damaged-zero-tail")]);
    assert_eq!(zeros.status.code(), Some(0));
    let text = String::from_utf8(zeros.stdout).expect("text");
    let said = "4096 zero bytes at the end of 00000000000000000198.log are room for more\n";
    assert!(text.ends_with(said), "{text}");
    let zeros = quorate(&["log", "dump", "--json", &segment("damaged-zero-tail")]);
    let last = objects(&zeros).pop().expect("objects");
    assert_eq!(last["lastOffset"], 244);

    let index = segment("damaged-zero-tail").replace(".log", ".index");
    let output = quorate(&["log", "dump", &index]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no segment and no checkpoint"));
}

#[test]
fn damage_is_found_where_it_was_put() {
    let mut count = 0;
    for entry in fs::read_dir(trees()).expect("the trees").flatten() {
        let tree = entry.file_name().into_string().expect("text");
        let Some(kind) = tree.strip_prefix("damaged-") else { continue };
        count += 1;
        let dir = entry.path().join("n1").display().to_string();
        let output = quorate(&["log", "verify", "--json", &dir]);
        let [found] = objects(&output).try_into().expect("one object");
        if kind == "zero-tail" {
            // Its lock file is there, as a killed node leaves it; and what such a node leaves may end with zeros.
            assert_eq!((output.status.code(), found["sound"].as_bool()), (Some(0), Some(true)));
            let remark = found["remarks"][0].as_str().expect("a remark");
            assert!(remark.contains("position 3675: 4096 zero bytes"), "{remark}");
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{tree}");
        assert_eq!(found["sound"], false);
        let [damage] = &found["damage"].as_array().expect("damage")[..] else {
            panic!("{found:?}")
        };
        let put = &expected(&tree)["damage"];
        let (file, name) =
            (damage["file"].as_str().expect("it"), put["file"].as_str().expect("it"));
        assert!(file.ends_with(name), "{file}");
        let at = put["batch"]["position"].as_u64();
        assert_eq!(damage["position"].as_u64(), at, "{tree}");
        let offset = put["batch"]["baseOffset"].as_i64().or(Some(245));
        assert_eq!(damage["offset"].as_i64(), offset, "{tree}");
        assert_eq!(
            (damage["atStart"].as_str(), damage["endAfterCut"].as_i64()),
            (Some("cut"), offset)
        );
        let readable = match kind {
            "torn-tail" => None,
            _ => Some(245),
        };
        assert_eq!(damage["readableTo"].as_i64(), readable, "{tree}");

        let text = quorate(&["log", "verify", &dir]);
        let text = String::from_utf8(text.stdout).expect("text");
        assert!(text.contains("a start cuts the log there: it then ends at offset "), "{text}");
    }
    assert_eq!(count, 7);
}

#[test]
fn what_kafka_left_is_sound() {
    for dir in
        ["run-full/n1", "run-snapshot-4.4.0/n1", "run-killed-in-roll/n2", "format-4.0.0-none/n1"]
    {
        let dir = trees().join(dir).display().to_string();
        let output = quorate(&["log", "verify", "--json", &dir]);
        assert!(output.status.success(), "{dir}: {}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(objects(&output)[0]["sound"], true);
    }
    let output = quorate(&["log", "verify", "/no/such/directory"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}
