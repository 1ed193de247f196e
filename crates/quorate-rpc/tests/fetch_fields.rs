//! The offsets of a captured Fetch answer, each under its own name: a mix-up that both directions share would
//! write the same bytes again.

use std::path::Path;

use bytes::Bytes;
use quorate_core::message::{FetchOutcome, FetchResponse, Response};
use quorate_core::{Epoch, NodeId, Offset};
use quorate_rpc::ApiKey;
use quorate_rpc::client::decode_response;
use serde_json::Value;

/// The Fetch answers that Kafka's controllers sent: version, frame without its length, and partition as JSON.
fn captured() -> Vec<(u64, i16, Bytes, Value)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire/frames.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["message"] == "FetchResponse")
        .map(|line| {
            let hex = line["hex"].as_str().unwrap();
            let bytes = (8..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
                .collect();
            let version = i16::try_from(line["version"].as_i64().unwrap()).unwrap();
            let partition = line["json"]["responses"][0]["partitions"][0].clone();
            (line["pair"].as_u64().unwrap(), version, bytes, partition)
        })
        .collect()
}

fn decode(version: i16, frame: Bytes) -> FetchResponse<quorate_core::message::Received> {
    let Ok(Response::Fetch(fetch)) = decode_response(ApiKey::Fetch, version, frame, 0) else {
        panic!("a Fetch answer")
    };
    fetch
}

#[test]
fn a_captured_answer_has_these_values() {
    let (_, version, frame, _) =
        captured().into_iter().find(|(pair, ..)| *pair == 22).expect("it is in the file");
    let fetch = decode(version, frame);
    assert_eq!(fetch.high_watermark, Some(Offset(17)));
    assert_eq!(fetch.log_start, Some(Offset(0)));
    assert_eq!((fetch.current.leader, fetch.current.epoch), (Some(NodeId(2)), Epoch(1)));
    let FetchOutcome::Records(received) = fetch.outcome else { panic!("records") };
    assert_eq!(received.batches.len(), 1);
    assert_eq!((received.batches[0].base, received.batches[0].end), (Offset(17), Offset(18)));
}

#[test]
fn every_captured_answer_has_the_values_of_its_json() {
    let captured = captured();
    assert_eq!(captured.len(), 26);
    for (pair, version, frame, json) in captured {
        let fetch = decode(version, frame);
        let known = |name: &str| json[name].as_i64().filter(|offset| *offset >= 0).map(Offset);
        assert_eq!(fetch.high_watermark, known("highWatermark"), "pair {pair}");
        assert_eq!(fetch.log_start, known("logStartOffset"), "pair {pair}");
        assert_eq!(i64::from(fetch.error.0), json["errorCode"].as_i64().unwrap(), "pair {pair}");
        let current = &json["currentLeader"];
        assert_eq!(i64::from(fetch.current.epoch.0), current["leaderEpoch"].as_i64().unwrap());
        let leader = current["leaderId"].as_i64().filter(|id| *id >= 0);
        assert_eq!(fetch.current.leader.map(|id| i64::from(id.0)), leader, "pair {pair}");
        let (part, end) = match fetch.outcome {
            FetchOutcome::Diverging(at) => ("divergingEpoch", at),
            FetchOutcome::Snapshot(at) => ("snapshotId", at),
            FetchOutcome::Records(_) => continue,
        };
        assert_eq!(Some(end.offset.0), json[part]["endOffset"].as_i64(), "pair {pair}");
        assert_eq!(Some(i64::from(end.epoch.0)), json[part]["epoch"].as_i64(), "pair {pair}");
    }
}
