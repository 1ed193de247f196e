//! Frames that Kafka's own controllers sent: each is understood, and written again with the same bytes.

use std::path::Path;

use bytes::Bytes;
use quorate_core::ids::{Endpoints, Offset};
use quorate_core::message::{
    FetchOutcome, FetchResponse, KRaftVersion, LogRange, Received, Request, Response,
};
use quorate_rpc::client::{Origin, correlation_id, decode_response, encode_request};
use quorate_rpc::server::{Decoded, ServerContext, decode_request, encode_response};
use quorate_rpc::{ApiKey, api_of, api_versions};
use serde_json::Value;

/// An exchange as it was captured; the frames without their lengths.
struct Pair {
    number: u64,
    api: ApiKey,
    version: i16,
    client_id: String,
    cluster_id: String,
    request: Bytes,
    response: Bytes,
}

fn pairs() -> Vec<Pair> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire/frames.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let number = |line: &Value, name: &str| line[name].as_i64().unwrap();
    lines
        .chunks(2)
        .filter_map(|pair| {
            let [request, response] = pair else { panic!("an odd line") };
            let key = i16::try_from(number(request, "apiKey")).unwrap();
            Some(Pair {
                number: request["pair"].as_u64().unwrap(),
                api: api_versions::SERVED.into_iter().find(|api| api.code() == key)?,
                version: i16::try_from(number(request, "version")).unwrap(),
                client_id: request["clientId"].as_str().unwrap().to_owned(),
                cluster_id: request["json"]["clusterId"].as_str().unwrap_or("any").to_owned(),
                request: unhex(request),
                response: unhex(response),
            })
        })
        .collect()
}

fn unhex(line: &Value) -> Bytes {
    let hex = line["hex"].as_str().unwrap();
    let bytes = (8..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap());
    bytes.collect()
}

fn context(cluster_id: &str) -> ServerContext {
    ServerContext {
        cluster_id: cluster_id.to_owned(),
        kraft_version: KRaftVersion(1),
        listeners: Endpoints::new(),
    }
}

/// Without the length in front.
fn body(slices: Vec<Bytes>) -> Bytes {
    let whole: Bytes = slices.concat().into();
    assert_eq!(whole.len() - 4, usize::try_from(correlation_id(&whole).unwrap()).unwrap());
    whole.slice(4..)
}

/// What a server would have to send for a client to receive this.
fn sent(response: Response<Received>) -> (Response<LogRange>, Vec<Bytes>) {
    let mut records = Vec::new();
    let response = match response {
        Response::Vote(response) => Response::Vote(response),
        Response::BeginQuorumEpoch(response) => Response::BeginQuorumEpoch(response),
        Response::EndQuorumEpoch(response) => Response::EndQuorumEpoch(response),
        Response::FetchSnapshot(response) => Response::FetchSnapshot(response),
        Response::DescribeQuorum(response) => Response::DescribeQuorum(response),
        Response::DescribeReplica(response) => Response::DescribeReplica(response),
        Response::TopLevel(error) => panic!("never comes in: {error:?}"),
        Response::Fetch(FetchResponse { error, current, high_watermark, log_start, outcome }) => {
            let outcome = match outcome {
                FetchOutcome::Diverging(end) => FetchOutcome::Diverging(end),
                FetchOutcome::Snapshot(id) => FetchOutcome::Snapshot(id),
                FetchOutcome::Records(received) => {
                    assert_eq!(received.rejected, None);
                    records = received.batches.into_iter().map(|batch| batch.bytes).collect();
                    let (from, to) = (Offset(0), Offset(0));
                    FetchOutcome::Records(LogRange { from, to, max_bytes: 0, generation: 0 })
                }
            };
            Response::Fetch(FetchResponse { error, current, high_watermark, log_start, outcome })
        }
    };
    (response, records)
}

#[test]
fn captured_exchanges_are_written_again_byte_for_byte() {
    let mut count = 0;
    for pair in pairs().into_iter().filter(|pair| pair.api != ApiKey::ApiVersions) {
        count += 1;
        let (context, what) = (context(&pair.cluster_id), format!("pair {}", pair.number));
        let decoded = decode_request(pair.request.clone(), &context).unwrap();
        let Decoded::Request(request, format) = decoded else { panic!("{what} needs the replica") };
        assert_eq!((api_of(&request), format.api), (pair.api, pair.api), "{what}");
        let origin = Origin { client_id: &pair.client_id, cluster_id: &pair.cluster_id };
        let id = correlation_id(&pair.response).unwrap();
        let again = encode_request(&request, pair.version, id, &origin).unwrap();
        assert_eq!(body(again), pair.request, "{what}: {request:?}");

        let now_ms = 1_900_000_000_000;
        let response =
            decode_response(pair.api, pair.version, pair.response.clone(), now_ms).unwrap();
        if pair.api == ApiKey::FetchSnapshot {
            // Its slice of a snapshot is not the core's.
            continue;
        }
        let shown = format!("{what}: {response:?}");
        let (response, records) = sent(response);
        let again = encode_response(format, &response, records, &context, now_ms).unwrap();
        assert_eq!(body(again), pair.response, "{shown}");
    }
    assert_eq!(count, 50);
}

#[test]
fn captured_fetches_carry_batches_and_control_records() {
    let (mut batches, mut control) = (0, 0);
    for pair in pairs().into_iter().filter(|pair| pair.api == ApiKey::Fetch) {
        let response = decode_response(pair.api, pair.version, pair.response, 0).unwrap();
        let Response::Fetch(FetchResponse { outcome: FetchOutcome::Records(received), .. }) =
            response
        else {
            continue;
        };
        batches += received.batches.len();
        control += received.batches.iter().map(|batch| batch.control.len()).sum::<usize>();
    }
    assert!(batches > 5 && control > 1, "{batches} batches, {control} control records");
}

#[test]
fn captured_api_versions_lead_to_the_highest_common_versions() {
    let mut asked_again = 0;
    for pair in pairs().into_iter().filter(|pair| pair.api == ApiKey::ApiVersions) {
        let decoded = decode_request(pair.request, &context("any")).unwrap();
        let Decoded::Answer(answer) = decoded else { panic!("it needs no state") };
        assert_eq!(correlation_id(&body(answer)), correlation_id(&pair.response));
        match api_versions::decode_response(pair.version, pair.response).unwrap() {
            api_versions::Answer::AskAgain(version) => {
                assert_eq!((pair.version, version), (5, 4));
                asked_again += 1;
            }
            api_versions::Answer::Versions(versions) => {
                assert_eq!(versions.choose(ApiKey::Vote), Some(2));
                assert!(matches!(versions.choose(ApiKey::Fetch), Some(17 | 18)));
                assert_eq!(versions.choose(ApiKey::DescribeReplica), None);
                assert_eq!(versions.feature("kraft.version"), Some((0, 1)));
            }
        }
    }
    assert_eq!(asked_again, 1);
}

#[test]
fn a_request_of_another_cluster_is_refused_at_the_top_level() {
    for pair in pairs() {
        let wrong = context("another");
        let decoded = decode_request(pair.request, &wrong).unwrap();
        let has_no_cluster_id = matches!(
            decoded,
            Decoded::Request(Request::DescribeQuorum | Request::DescribeReplica, _)
        );
        if has_no_cluster_id || pair.api == ApiKey::ApiVersions {
            continue;
        }
        let Decoded::Answer(answer) = decoded else { panic!("pair {}", pair.number) };
        assert_eq!(
            decode_response(pair.api, pair.version, body(answer), 0),
            Err(quorate_core::message::Unreachable::TopLevel(
                quorate_core::message::ErrorCode::INCONSISTENT_CLUSTER_ID
            )),
            "pair {}",
            pair.number
        );
    }
}

/// Every byte of every captured frame may be wrong, and every frame may end early.
#[test]
fn damaged_frames_are_refused_or_understood_but_never_fatal() {
    for pair in pairs() {
        let context = context(&pair.cluster_id);
        for at in 0..pair.request.len() {
            let _ = decode_request(pair.request.slice(..at), &context);
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = pair.request.to_vec();
                bytes[at] ^= flip;
                let _ = decode_request(bytes.into(), &context);
            }
        }
        for at in 0..pair.response.len().min(400) {
            let cut = pair.response.slice(..at);
            if pair.api == ApiKey::ApiVersions {
                let _ = api_versions::decode_response(pair.version, cut);
                continue;
            }
            assert!(decode_response(pair.api, pair.version, cut, 0).is_err());
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = pair.response.to_vec();
                bytes[at] ^= flip;
                let _ = decode_response(pair.api, pair.version, bytes.into(), 0);
            }
        }
    }
}
