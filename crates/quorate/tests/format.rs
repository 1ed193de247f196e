//! `quorate format` and `info` against directories that Kafka's own formatters wrote: equal files
//! but for ids and times, equal output, and refusals where Kafka refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bytes::Bytes;
use quorate_wire::Uuid;
use quorate_wire::batch::{self, Batch};
use quorate_wire::control::ControlRecord;
use quorate_wire::metadata::MetadataRecord;
use serde_json::Value;
use tempfile::TempDir;

/// The trees of each release, and what our command line has that Kafka's had not.
const TREES: [(&str, &[&str], &[&str]); 3] = [
    (
        "4.4.0",
        &[
            "broker",
            "combined",
            "feature-levels",
            "initial-3",
            "none",
            "release-3.3",
            "release-3.9",
            "release-4.0",
            "scram",
            "standalone",
            "static",
            "static-feature-kraft0",
        ],
        &[],
    ),
    (
        "4.2.1",
        &["broker", "initial-3", "none", "standalone", "static"],
        &["--layout", "4.0", "--release-version", "4.2"],
    ),
    (
        "4.0.0",
        &["broker", "initial-3", "none", "scram", "standalone", "static"],
        &["--layout", "4.0"],
    ),
];

/// One golden tree, and a place to make its like.
struct Golden {
    tree: PathBuf,
    expected: Value,
    place: TempDir,
}

impl Golden {
    /// A tree of Kafka 4.4.0.
    fn open(name: &str) -> Golden {
        Golden::of("4.4.0", name)
    }

    fn of(version: &str, name: &str) -> Golden {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../testdata/dirs/format-{version}-{name}"));
        let text = fs::read_to_string(tree.join("expected.json")).expect("expected.json");
        let expected = serde_json::from_str(&text).expect("JSON");
        let place = tempfile::tempdir().expect("a temporary directory");
        Golden { tree, expected, place }
    }

    /// Writes the tree's configuration, with its directories in our place.
    fn configure(&self) -> PathBuf {
        let is_properties = |path: &PathBuf| path.extension().is_some_and(|e| e == "properties");
        let entries = fs::read_dir(&self.tree).expect("the tree").flatten();
        let from = entries.map(|entry| entry.path()).find(is_properties).expect("a configuration");
        let text = fs::read_to_string(from).expect("readable");
        let file = self.place.path().join("controller.properties");
        let root = self.place.path().join("nodes");
        fs::write(&file, text.replace("DIR", &root.display().to_string())).expect("written");
        file
    }

    /// Runs Kafka's command line with our command.
    fn format(&self, command: &str) -> Output {
        self.format_with(command, &[])
    }

    fn format_with(&self, command: &str, more: &[&str]) -> Output {
        let config = self.configure().display().to_string();
        let args = command.split_whitespace().skip(1);
        let args = args.map(|arg| match arg.ends_with("server.properties") {
            true => config.clone(),
            false => arg.to_owned(),
        });
        quorate(args.chain(more.iter().map(|arg| (*arg).to_owned())))
    }

    fn in_place(&self, golden_line: &str) -> String {
        golden_line.replace("DIR", &self.place.path().join("nodes").display().to_string())
    }

    /// `n1/…` or `n1-meta/…` of the tree, in our place.
    fn ours(&self, node: &str, path: &str) -> PathBuf {
        self.place
            .path()
            .join("nodes")
            .join(node.replace('-', "/").replace("data/", "data-"))
            .join(path)
    }
}

fn quorate<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorate")).args(args).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn lines(value: &Value) -> Vec<String> {
    let lines = value.as_array().expect("lines").iter();
    lines.map(|line| line.as_str().expect("a line").to_owned()).collect()
}

fn files_under(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        match entry.path().is_dir() {
            true => files.extend(files_under(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files.sort();
    files
}

#[test]
fn a_formatted_directory_is_kafkas_but_for_ids_and_times() {
    for (version, names, more) in TREES {
        for name in names {
            let golden = Golden::of(version, name);
            compare(&golden, &format!("{version}-{name}"), more);
        }
    }
}

fn compare(golden: &Golden, name: &str, more: &[&str]) {
    let nodes = golden.expected["nodes"].as_object().expect("nodes");
    let format = nodes.values().find_map(|node| node.get("format")).expect("how it was made");
    let output = golden.format_with(format["command"].as_str().expect("a command"), more);
    assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{name}");
    let theirs: Vec<String> =
        lines(&format["out"]).iter().map(|line| neutral(&golden.in_place(line))).collect();
    let mut ours: Vec<String> = text(&output.stdout).lines().map(neutral).collect();
    if name.starts_with("4.0.0") {
        // That release does not say which records it writes.
        assert!(ours.remove(0).starts_with("Bootstrap metadata: "), "{name}");
    }
    assert_eq!(ours, theirs, "{name}");

    let mut paths = Vec::new();
    for (node, content) in nodes {
        for (path, file) in content["files"].as_object().expect("files") {
            let ours = golden.ours(node, path);
            let theirs = golden.tree.join(node).join(path);
            let metadata = fs::metadata(&ours).unwrap_or_else(|e| panic!("{ours:?}: {e}"));
            let mode = format!("{:04o}", metadata.permissions().mode() & 0o7777);
            assert_eq!(mode, file["mode"].as_str().expect("a mode"), "{name} {path}");
            if !name.ends_with("scram") {
                // A salt that was drawn may be a byte longer.
                assert_eq!(Some(metadata.len()), file["size"].as_u64(), "{name} {path}");
            }
            match path.ends_with(".checkpoint") {
                true => assert_same_checkpoint(name, &theirs, &ours),
                false => assert_same_properties(name, &theirs, &ours),
            }
            paths.push(ours);
        }
    }
    paths.sort();
    assert_eq!(files_under(&golden.place.path().join("nodes")), paths, "{name}");
}

/// A line without what hangs on the salt that was drawn for alice.
fn neutral(line: &str) -> String {
    let Some((head, tail)) = line.split_once("(name='alice', mechanism=1, salt=[") else {
        return line.to_owned();
    };
    let (_, tail) = tail.split_once("iterations=").expect("iterations");
    format!("{head}(alice, iterations={tail}")
}

/// Whether the golden id was given on the command line rather than made up.
fn is_given(id: &str) -> bool {
    id.starts_with("QuorateDirOfNode")
}

fn assert_same_properties(name: &str, theirs: &Path, ours: &Path) {
    let split = |path: &Path| -> Vec<(String, String)> {
        let content = fs::read_to_string(path).expect("readable");
        assert!(content.ends_with('\n'), "{path:?}");
        let pair = |line: &str| {
            let (key, value) = line.split_once('=').unwrap_or(("", line));
            (key.to_owned(), value.to_owned())
        };
        content.lines().map(pair).collect()
    };
    let (theirs, ours) = (split(theirs), split(ours));
    assert_eq!(ours[0].1, "#");
    // `#Sun Nov 29 22:11:08 UTC 2026`
    let date: Vec<&str> = ours[1].1.split(' ').collect();
    assert!(date.len() == 6 && date[0].starts_with('#') && date[4] == "UTC", "{date:?}");
    assert_eq!(theirs.len(), ours.len(), "{name}");
    for ((key, value), (our_key, our_value)) in theirs.iter().zip(&ours).skip(2) {
        assert_eq!(key, our_key, "{name}: the order of the keys");
        if key != "directory.id" || is_given(value) {
            assert_eq!(value, our_value, "{name}: {key}");
        } else {
            let id: Uuid = our_value.parse().expect("a uuid");
            assert!(id != Uuid::ZERO && our_value != value, "{name}: {our_value}");
        }
    }
}

/// All fields of all batches, with times set to zero, and directory ids that were made up.
fn assert_same_checkpoint(name: &str, theirs: &Path, ours: &Path) {
    let read = |path: &Path| -> Vec<Batch> {
        let bytes = Bytes::from(fs::read(path).expect("readable"));
        batch::batches(bytes).map(|batch| batch.expect("a batch with its CRC")).collect()
    };
    let (theirs, ours) = (read(theirs), read(ours));
    assert_eq!(theirs.len(), ours.len(), "{name}: batches");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let fields = |batch: &Batch| {
            let mut header = *batch.header();
            assert_eq!(header.base_timestamp, header.max_timestamp);
            assert!(header.base_timestamp > 1_700_000_000_000, "a time of our day");
            (header.crc, header.base_timestamp, header.max_timestamp) = (0, 0, 0);
            if name.ends_with("scram") && !batch.is_control() {
                header.batch_length = 0;
            }
            header
        };
        assert_eq!(fields(theirs), fields(ours), "{name}");
        ours.raft_check().expect("what Kafka's log reader demands");
        match ours.is_control() {
            true => assert_eq!(control(theirs), control(ours), "{name}"),
            false => assert_eq!(values(theirs), values(ours), "{name}"),
        }
    }
}

fn control(batch: &Batch) -> Vec<(i64, ControlRecord)> {
    let mut records = batch::control_records(batch).expect("control records");
    for (_, record) in &mut records {
        match record {
            // It is 0 in bootstrap.checkpoint.
            ControlRecord::SnapshotHeader(header) if header.last_contained_log_timestamp > 0 => {
                assert!(header.last_contained_log_timestamp > 1_700_000_000_000);
                header.last_contained_log_timestamp = 1;
            }
            ControlRecord::Voters(voters) => {
                for voter in &mut voters.voters {
                    if !is_given(&voter.voter_directory_id.to_string()) {
                        assert_ne!(voter.voter_directory_id, Uuid::ZERO);
                        voter.voter_directory_id = Uuid::ZERO;
                    }
                }
            }
            _ => {}
        }
    }
    records
}

fn values(batch: &Batch) -> Vec<(i64, MetadataRecord)> {
    let records = batch.records().expect("records");
    records
        .map(|record| {
            let record = record.expect("a record");
            let value = Bytes::copy_from_slice(record.value.expect("a value"));
            let (mut decoded, version) = MetadataRecord::decode(value).expect("a record");
            assert_eq!(version, 0);
            if let MetadataRecord::UserScramCredential(user) = &mut decoded
                && user.name == "alice"
            {
                assert!(user.salt.len() >= 20 && user.salt.is_ascii());
                assert_eq!((user.stored_key.len(), user.server_key.len()), (32, 32));
                (user.salt, user.stored_key, user.server_key) = Default::default();
            }
            (record.offset, decoded)
        })
        .collect()
}

#[test]
fn users_need_a_release_that_has_them() {
    let golden = Golden::open("initial-3");
    let config = golden.configure().display().to_string();
    let user = "SCRAM-SHA-256=[name=a,password=b]";
    let output = again(&config, &["-r", "3.5-IV1", "-S", user]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "SCRAM is only supported in metadata.version 3.5-IV2 or later.\n";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
    assert!(again(&config, &["-r", "3.5-IV2", "-S", user]).status.success());
}

#[test]
fn the_standalone_voter_has_the_id_of_its_directory() {
    let golden = Golden::open("standalone");
    assert!(golden.format("kafka-storage format -t c -c server.properties -s").status.success());
    let dir = golden.place.path().join("nodes/n1");
    let properties = fs::read_to_string(dir.join("meta.properties")).expect("readable");
    let id = properties.lines().find_map(|line| line.strip_prefix("directory.id=")).expect("an id");
    let path = dir.join("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint");
    let bytes = Bytes::from(fs::read(path).expect("readable"));
    let first = batch::batches(bytes).next().expect("one").expect("good");
    let records = batch::control_records(&first).expect("control records");
    let voters = records.iter().find_map(|(_, record)| match record {
        ControlRecord::Voters(voters) => Some(&voters.voters),
        _ => None,
    });
    assert_eq!(voters.expect("a voter set")[0].voter_directory_id.to_string(), id);
}

#[test]
fn what_kafka_refuses_is_refused() {
    for name in ["initial-feature-kraft0", "static-feature-kraft1"] {
        let golden = Golden::open(name);
        let refused = &golden.expected["refused"];
        let output = golden.format(refused["command"].as_str().expect("a command"));
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert_eq!(text(&output.stdout), "", "{name}");
        let theirs = &lines(&refused["err"])[0];
        let first = text(&output.stderr).lines().next().unwrap_or_default().to_owned();
        assert!(!first.is_empty() && theirs.starts_with(&first), "{first}\n{theirs}");
        assert!(!golden.place.path().join("nodes").exists(), "{name} wrote something");
    }
}

#[test]
fn info_prints_what_kafkas_tool_prints() {
    for name in ["initial-3", "combined", "release-4.0"] {
        let golden = Golden::open(name);
        let nodes = golden.expected["nodes"].as_object().expect("nodes");
        let node = nodes.values().find(|node| node.get("info").is_some_and(|i| !i.is_null()));
        let node = node.expect("one with info");
        assert!(golden.format(node["format"]["command"].as_str().expect("it")).status.success());
        let config = golden.place.path().join("controller.properties").display().to_string();
        let output = quorate(["info", "-c", &config]);
        assert_eq!(output.status.code(), Some(0), "{name}");
        // The id of an empty data directory is made up.
        let neutral = |line: &str| match line.split_once("directory.id=") {
            Some((head, tail)) if !is_given(tail) => format!("{head}{}", &tail[22..]),
            _ => line.to_owned(),
        };
        let ours: Vec<String> = text(&output.stdout).lines().map(neutral).collect();
        let theirs = lines(&node["info"]["out"]);
        let theirs: Vec<String> =
            theirs.iter().map(|line| neutral(&golden.in_place(line))).collect();
        assert_eq!(ours, theirs, "{name}");

        let json: Value =
            serde_json::from_slice(&quorate(["info", "-c", &config, "--json"]).stdout)
                .expect("JSON");
        assert_eq!(json["metadata"]["cluster.id"], "QuorateGoldenClusterAA");
        assert_eq!(json["problems"], Value::Array(Vec::new()));
    }
}

#[test]
fn info_lists_problems() {
    let golden = Golden::open("combined");
    let config = golden.configure().display().to_string();
    let root = golden.place.path().join("nodes/n1");
    fs::create_dir_all(root.join("data-b")).expect("made");
    fs::write(root.join("meta"), "a file").expect("written");
    let output = quorate(["info", "-c", &config]);
    assert_eq!(output.status.code(), Some(1));
    let root = root.display();
    assert_eq!(
        text(&output.stdout),
        format!(
            "Found log directory:\n  {root}/data-b\n\nFound problems:\n  {root}/data-a does not exist\n  \
             {root}/data-b is not formatted.\n  {root}/meta is not a directory\n\n"
        )
    );
}

/// A formatted node, to be formatted again.
fn formatted() -> (Golden, String) {
    let golden = Golden::open("initial-3");
    let config = golden.configure().display().to_string();
    let output = again(&config, &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    (golden, config)
}

const VOTER: &str = "1@127.0.0.1:21001:QuorateDirOfNode001AAA";

fn again(config: &str, more: &[&str]) -> Output {
    let args = ["format", "-t", "QuorateGoldenClusterAA", "-c", config, "-I", VOTER];
    quorate(args.iter().chain(more))
}

#[test]
fn a_formatted_directory_is_left_alone() {
    let (golden, config) = formatted();
    let before: Vec<Vec<u8>> =
        files_under(golden.place.path()).iter().map(|f| fs::read(f).expect("readable")).collect();
    let output = again(&config, &[]);
    assert_eq!(output.status.code(), Some(1));
    let dir = golden.place.path().join("nodes/n1");
    assert_eq!(
        text(&output.stderr),
        format!(
            "Log directory {} is already formatted. Use --ignore-formatted to ignore this directory and format the others.\n",
            dir.display()
        )
    );
    let output = again(&config, &["-g"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "All of the log directories are already formatted.\n");

    let other = quorate(["format", "-t", "other", "-c", &config, "-I", VOTER, "-g"]);
    assert_eq!(other.status.code(), Some(1));
    let expected = format!(
        "Invalid cluster.id in: {}/meta.properties. Expected other, but read QuorateGoldenClusterAA\n",
        dir.display()
    );
    assert!(text(&other.stderr).starts_with(&expected), "{}", text(&other.stderr));

    let text_of = fs::read_to_string(&config).expect("readable");
    fs::write(&config, text_of.replace("node.id=1", "node.id=2")).expect("written");
    let other = again(&config, &["-g"]);
    assert_eq!(other.status.code(), Some(1));
    let expected = "Stored node id 1 doesn't match previous node id 2 in ";
    assert!(text(&other.stderr).starts_with(expected), "{}", text(&other.stderr));
    fs::write(&config, text_of).expect("written");

    let after: Vec<Vec<u8>> =
        files_under(golden.place.path()).iter().map(|f| fs::read(f).expect("readable")).collect();
    assert_eq!(before, after);
}

#[test]
fn formatting_that_was_cut_off_can_be_done_again_but_a_lost_identity_is_not_replaced() {
    let (golden, config) = formatted();
    let dir = golden.place.path().join("nodes/n1");
    // Cut off between the checkpoint and meta.properties, which comes last.
    fs::remove_file(dir.join("meta.properties")).expect("removed");
    let output = again(&config, &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(dir.join("meta.properties").exists());

    fs::remove_file(dir.join("meta.properties")).expect("removed");
    fs::write(dir.join("__cluster_metadata-0/00000000000000000000.log"), "records")
        .expect("written");
    let output = again(&config, &[]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(
        message.contains("has no meta.properties but holds 00000000000000000000.log"),
        "{message}"
    );
    assert!(!dir.join("meta.properties").exists());
}

#[test]
fn arguments_are_checked() {
    let golden = Golden::open("initial-3");
    let config = golden.configure().display().to_string();
    let id = "QuorateDirOfNode001AAA";
    let twice = format!("1@h:1:{id},1@h:2:{id}");
    for (args, expected) in [
        (vec![], "you must specify one of the following: --standalone"),
        (vec!["-s", "-N"], "cannot be used with"),
        (vec!["-I", "1@h:9093"], "No colon following port could be found.\n"),
        (vec!["-I", "1@h:9093:short"], "Failed to parse directory ID in dynamic voter string.\n"),
        (vec!["-I", &twice], "Node id 1 was specified more than once.\n"),
        (
            vec!["-s", "-r", "9.9"],
            "Unknown metadata.version '9.9'. Supported metadata.version are: 3.3-IV3, ",
        ),
        (vec!["-s", "-r", "4.5"], "metadata.version 4.5-IV0 is not yet stable.\n"),
        (vec!["-s", "-f", "foo=1"], "Unsupported feature: foo. Supported features are: eligible."),
        (vec!["-s", "-f", "share.version=9"], "No feature:share.version with feature level 9\n"),
        (
            vec!["-s", "-f", "metadata.version=99"],
            "No MetadataVersion with feature level 99. Valid feature levels are from 7 to 34.",
        ),
        (
            vec!["-s", "-r", "4.0", "-f", "metadata.version=25"],
            "Use --release-version instead of --feature metadata.version=25 to avoid ambiguity.\n",
        ),
    ] {
        let output = quorate(["format", "-t", "c", "-c", &config].iter().chain(&args));
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{args:?}: {message}");
        assert!(!golden.place.path().join("nodes").exists(), "{args:?} wrote something");
    }
    let missing = quorate(["format", "-t", "c", "-c", "/no/such/file", "-s"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).starts_with("/no/such/file: cannot be opened"));
}

#[test]
fn a_misspelt_key_is_named_beside_kafkas_output() {
    let golden = Golden::open("initial-3");
    let config = golden.configure().display().to_string();
    let properties = fs::read_to_string(&config).expect("readable");
    fs::write(&config, format!("{properties}\ncontroller.quorum.fetch.timeout=1\n"))
        .expect("written");
    let output = again(&config, &[]);
    assert_eq!(text(&output.stdout).lines().count(), 2);
    assert_eq!(
        text(&output.stderr),
        format!(
            "{config}: unknown keys are ignored: controller.quorum.fetch.timeout \
             (did you mean controller.quorum.fetch.timeout.ms?)\n"
        )
    );
}

#[test]
fn random_uuid_prints_one() {
    let output = quorate(["random-uuid"]);
    let line = text(&output.stdout);
    assert!(output.status.success() && line.trim_end().parse::<Uuid>().is_ok(), "{line}");
    assert_ne!(line, text(&quorate(["random-uuid"]).stdout));
}
