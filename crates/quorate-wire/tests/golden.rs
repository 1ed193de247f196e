//! Every golden vector, both ways.

use std::path::Path;

use quorate_wire::vectors::check_file;

/// As many lines as a file has; fewer would mean that the check looks away.
fn check(file: &str, passed: usize, left_out: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire").join(file);
    let text = std::fs::read_to_string(&path).expect("the vectors are in the repository");
    let report = check_file(&text);
    assert!(report.failed.is_empty(), "{file}: {:#?}", report.failed);
    assert_eq!(report.passed, passed, "{file}: left out {:?}", report.left_out);
    assert_eq!(report.left_out_count(), left_out, "{file}: {:?}", report.left_out);
}

#[test]
fn raft_rpcs() {
    check("rpc-raft.jsonl", 376, 0);
}

#[test]
fn controller_rpcs() {
    check("rpc-controller.jsonl", 272, 0);
}

#[test]
fn admin_rpcs() {
    check("rpc-admin.jsonl", 723, 0);
}

#[test]
fn control_records() {
    // The others are quorum-state files, which are storage's affair; `cargo xtask vectors` reads them.
    check("control-records.jsonl", 40, 12);
}

#[test]
fn metadata_records() {
    check("metadata-records.jsonl", 186, 0);
}

#[test]
fn batches() {
    check("batches.jsonl", 54, 0);
}

#[test]
fn edge_cases() {
    check("edge-cases.jsonl", 27, 0);
}

#[test]
fn frames() {
    check("frames.jsonl", 214, 0);
}
