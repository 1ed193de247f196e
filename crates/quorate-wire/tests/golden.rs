//! Every golden vector, both ways.

use std::path::Path;

use quorate_wire::vectors::check_file;

/// The lines that a file has of messages that are built; fewer would mean that the check looks away.
fn check(file: &str, passed: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire").join(file);
    let text = std::fs::read_to_string(&path).expect("the vectors are in the repository");
    let report = check_file(&text);
    assert!(report.failed.is_empty(), "{file}: {:#?}", report.failed);
    assert_eq!(report.passed, passed, "{file}: left out {:?}", report.left_out);
}

#[test]
fn rpcs() {
    check("rpc-raft.jsonl", 336);
}

#[test]
fn control_records() {
    check("control-records.jsonl", 30);
}

#[test]
fn metadata_records() {
    check("metadata-records.jsonl", 8);
}

#[test]
fn batches() {
    check("batches.jsonl", 54);
}

#[test]
fn edge_cases() {
    check("edge-cases.jsonl", 20);
}

#[test]
fn frames() {
    check("frames.jsonl", 110);
}
