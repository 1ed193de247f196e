//! Requests and answers that speak of another cluster, topic or partition, and clients that introduce
//! themselves badly.

use bytes::Bytes;
use quorate_core::ids::Endpoints;
use quorate_core::message::{ErrorCode, KRaftVersion, Unreachable};
use quorate_rpc::ApiKey;
use quorate_rpc::api_versions::{self, Answer, SOFTWARE_NAME, Versions};
use quorate_rpc::client::{decode_answer, decode_response};
use quorate_rpc::server::{Decoded, RequestError, ServerContext, decode_request};
use quorate_wire::frame::{encode_request, encode_response};
use quorate_wire::message::*;
use quorate_wire::{Message, Uuid};

fn context() -> ServerContext {
    ServerContext {
        cluster_id: "ours".to_owned(),
        kraft_version: KRaftVersion(1),
        listeners: Endpoints::new(),
    }
}

fn unframed(slices: Vec<Bytes>) -> Bytes {
    Bytes::from(slices.concat()).slice(4..)
}

fn ask<R: Request>(version: i16, request: &R) -> Result<Decoded, RequestError> {
    let frame = unframed(encode_request(version, 5, "client", request).unwrap());
    decode_request(frame, &context())
}

/// The answer that needs no replica.
fn refused<R: Request>(version: i16, request: &R) -> R::Response {
    let Ok(Decoded::Answer(slices)) = ask(version, request) else { panic!("not refused") };
    decode_answer(R::API, version, unframed(slices)).unwrap()
}

fn vote(cluster_id: Option<&str>, topics: &[&str], partitions: &[i32]) -> VoteRequest {
    let partition =
        |index: &i32| VoteRequestPartition { partition_index: *index, ..Default::default() };
    VoteRequest {
        cluster_id: cluster_id.map(str::to_owned),
        topics: topics
            .iter()
            .map(|name| VoteRequestTopic {
                topic_name: (*name).to_owned(),
                partitions: partitions.iter().map(partition).collect(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

const METADATA: &str = "__cluster_metadata";

#[test]
fn the_cluster_id_comes_before_the_partition() {
    for version in 0..=2 {
        for (cluster_id, topics, partitions, expected) in [
            (Some("theirs"), &[METADATA][..], &[0][..], Some(104)),
            (Some("theirs"), &["other"], &[0], Some(104)),
            (Some(""), &[METADATA], &[0], Some(104)),
            (Some("ours"), &["other"], &[0], Some(42)),
            (None, &[METADATA], &[1], Some(42)),
            (None, &[METADATA], &[0, 0], Some(42)),
            (None, &[METADATA, METADATA], &[0], Some(42)),
            (None, &[], &[], Some(42)),
            (None, &[METADATA], &[], Some(42)),
            (None, &[METADATA], &[0], None),
            (Some("ours"), &[METADATA], &[0], None),
        ] {
            let request = vote(cluster_id, topics, partitions);
            match expected {
                None => assert!(matches!(ask(version, &request), Ok(Decoded::Request(..)))),
                Some(code) => {
                    let refusal = refused(version, &request);
                    assert_eq!((refusal.error_code, refusal.topics.len()), (code, 0));
                }
            }
        }
    }
}

#[test]
fn fetch_names_the_topic_by_its_id() {
    let fetch = |topic_id| FetchRequest {
        topics: vec![FetchTopic {
            topic_id,
            partitions: vec![FetchPartition::default()],
            ..Default::default()
        }],
        ..Default::default()
    };
    for version in 13..=18 {
        let other = refused(version, &fetch(Uuid([9; 16])));
        assert_eq!((other.error_code, other.responses.len()), (42, 0));
        assert!(matches!(ask(version, &fetch(Uuid::METADATA_TOPIC)), Ok(Decoded::Request(..))));
    }
    // By name nobody can ask for it: an error at the top level, which versions below 7 have no field for.
    for version in 4..=12 {
        let mut request = fetch(Uuid::ZERO);
        request.topics[0].topic = METADATA.to_owned();
        let refusal = refused(version, &request);
        assert_eq!(refusal.error_code, if version < 7 { 0 } else { 42 });
        assert!(refusal.responses.is_empty());
    }
}

#[test]
fn fetch_snapshot_and_describe_quorum_answer_for_the_partition_that_was_asked() {
    let partition = FetchSnapshotRequestPartition { partition: 3, ..Default::default() };
    let request = FetchSnapshotRequest {
        topics: vec![FetchSnapshotRequestTopic {
            name: "other".to_owned(),
            partitions: vec![partition.clone()],
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = refused(1, &request);
    assert_eq!((answer.error_code, answer.topics[0].name.as_str()), (0, "other"));
    assert_eq!(answer.topics[0].partitions[0].index, 3);
    assert_eq!(answer.topics[0].partitions[0].error_code, 3);
    assert_eq!(refused(1, &FetchSnapshotRequest::default()).error_code, 42);
    let mut two = request;
    two.topics[0].partitions.push(partition);
    assert_eq!(refused(1, &two).error_code, 42);

    let request = DescribeQuorumRequest {
        topics: vec![DescribeQuorumRequestTopic {
            topic_name: METADATA.to_owned(),
            partitions: [0, 1]
                .map(|partition_index| DescribeQuorumRequestPartition {
                    partition_index,
                    ..Default::default()
                })
                .to_vec(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = refused(2, &request);
    let codes: Vec<_> = answer.topics[0].partitions.iter().map(|p| p.error_code).collect();
    assert_eq!((answer.error_code, codes), (0, vec![3, 3]));
}

#[test]
fn answers_that_speak_of_another_partition_are_malformed() {
    let answer = |topic: &str, index| VoteResponse {
        topics: vec![VoteResponseTopic {
            topic_name: topic.to_owned(),
            partitions: vec![VoteResponsePartition {
                partition_index: index,
                vote_granted: true,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let decode = |response: &VoteResponse| {
        let frame = unframed(encode_response(ApiKey::Vote, 2, 5, response).unwrap());
        decode_response(ApiKey::Vote, 2, frame, 0)
    };
    assert!(decode(&answer(METADATA, 0)).is_ok());
    for wrong in [answer("other", 0), answer(METADATA, 1), VoteResponse::default()] {
        assert_eq!(decode(&wrong), Err(Unreachable::Malformed));
    }
}

#[test]
fn half_a_snapshot_id_and_a_port_that_is_none_are_malformed() {
    let mut response = FetchResponse {
        responses: vec![FetchableTopicResponse {
            topic_id: Uuid::METADATA_TOPIC,
            partitions: vec![FetchPartitionData::default()],
            ..Default::default()
        }],
        ..Default::default()
    };
    let decode = |response: &FetchResponse| {
        let frame = unframed(encode_response(ApiKey::Fetch, 18, 5, response).unwrap());
        decode_response(ApiKey::Fetch, 18, frame, 0)
    };
    assert!(decode(&response).is_ok());
    response.responses[0].partitions[0].snapshot_id.epoch = 3;
    assert_eq!(decode(&response), Err(Unreachable::Malformed));
    response.responses[0].partitions[0].snapshot_id.epoch = -1;
    response.responses[0].partitions[0].current_leader.leader_id = 4;
    response.node_endpoints =
        vec![FetchNodeEndpoint { node_id: 4, port: 70_000, ..Default::default() }];
    assert_eq!(decode(&response), Err(Unreachable::Malformed));
}

fn introduction(name: &str) -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: name.to_owned(),
        client_software_version: "4.4.0".to_owned(),
        ..Default::default()
    }
}

fn listed(response: &ApiVersionsResponse) -> Vec<(i16, i16, i16)> {
    response.api_keys.iter().map(|api| (api.api_key, api.min_version, api.max_version)).collect()
}

#[test]
fn what_is_private_is_listed_for_our_own_clients_alone() {
    let kafka =
        [(1, 4, 18), (18, 0, 5), (52, 0, 2), (53, 0, 1), (54, 0, 1), (55, 0, 2), (59, 0, 1)];
    assert_eq!(listed(&refused(5, &introduction("apache-kafka-java"))), kafka);
    let ours = listed(&refused(5, &introduction(SOFTWARE_NAME)));
    assert_eq!((&ours[..7], &ours[7..]), (&kafka[..], &[(31000, 0, 0)][..]));
    assert_eq!(listed(&refused(0, &ApiVersionsRequest::default())), kafka);
}

#[test]
fn features_that_start_at_zero_are_hidden_from_old_clients() {
    for version in 3..=5 {
        let response = refused(version, &introduction("apache-kafka-java"));
        let features: Vec<_> = response
            .supported_features
            .iter()
            .map(|f| (f.name.as_str(), f.min_version, f.max_version))
            .collect();
        let all = [("metadata.version", 7, 33), ("kraft.version", 0, 1)];
        assert_eq!(features, if version < 4 { &all[..1] } else { &all[..] });
        let finalized = &response.finalized_features[0];
        assert_eq!((finalized.name.as_str(), finalized.max_version_level), ("kraft.version", 1));
    }
}

#[test]
fn clients_must_introduce_themselves_properly() {
    for (name, fine) in [
        ("a", true),
        ("apache-kafka.java9", true),
        ("", false),
        ("-a", false),
        ("a.", false),
        ("a b", false),
        ("é", false),
    ] {
        let error = refused(3, &introduction(name)).error_code;
        assert_eq!(error, if fine { 0 } else { 42 }, "{name}");
    }
    for (cluster_id, node_id, fine) in
        [(None, -1, true), (Some("any"), 3, true), (Some("any"), -1, false), (None, 3, false)]
    {
        let request = ApiVersionsRequest {
            cluster_id: cluster_id.map(str::to_owned),
            node_id,
            ..introduction("a")
        };
        assert_eq!(refused(5, &request).error_code, if fine { 0 } else { 42 });
    }
}

#[test]
fn an_unknown_version_of_api_versions_gets_an_answer_that_anybody_can_read() {
    let request = introduction("future");
    let mut frame = unframed(encode_request(5, 5, "client", &request).unwrap()).to_vec();
    frame[3] = 9;
    let Ok(Decoded::Answer(slices)) = decode_request(frame.into(), &context()) else {
        panic!("no answer")
    };
    let frame = unframed(slices);
    let answer = decode_answer::<ApiVersionsResponse>(ApiKey::ApiVersions, 0, frame.clone());
    let answer = answer.unwrap();
    assert_eq!((answer.error_code, listed(&answer)), (35, vec![(18, 0, 5)]));
    assert_eq!(api_versions::decode_response(9, frame), Ok(Answer::AskAgain(5)));
}

#[test]
fn what_is_served_is_what_is_listed() {
    for api in ApiKey::ALL {
        let [high, low] = api.code().to_be_bytes();
        let version = api.versions().end().to_be_bytes();
        // The body is missing, so what is served comes to be malformed.
        let frame = [[high, low].as_slice(), &version, &[0, 0, 0, 1, 0xff, 0xff, 0]].concat();
        let error = decode_request(frame.into(), &context());
        let not_served =
            matches!(error, Err(RequestError::NotServed { api: named }) if named == *api);
        assert_eq!(!not_served, api_versions::SERVED.contains(api), "{api:?}: {error:?}");
    }
}

#[test]
fn unknown_apis_and_other_unknown_versions_end_the_connection() {
    let request = vote(None, &[METADATA], &[0]);
    let good = unframed(encode_request(2, 5, "client", &request).unwrap());
    for (at, value) in [(1, 3), (0, 0x7f), (3, 3), (2, 0xff)] {
        let mut bytes = good.to_vec();
        bytes[at] = value;
        assert!(decode_request(bytes.into(), &context()).is_err());
    }
    let mut longer = good.to_vec();
    longer.push(0);
    assert!(decode_request(longer.into(), &context()).is_err());
}

#[test]
fn versions_are_the_highest_that_both_sides_have() {
    let answer = |apis: &[(i16, i16, i16)]| {
        let response = ApiVersionsResponse {
            api_keys: apis
                .iter()
                .map(|(api_key, min_version, max_version)| ApiVersion {
                    api_key: *api_key,
                    min_version: *min_version,
                    max_version: *max_version,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let frame = unframed(encode_response(ApiKey::ApiVersions, 4, 5, &response).unwrap());
        match api_versions::decode_response(4, frame) {
            Ok(Answer::Versions(versions)) => versions,
            other => panic!("{other:?}"),
        }
    };
    let versions = answer(&[(52, 0, 1), (1, 17, 99), (59, 5, 6)]);
    assert_eq!(versions.choose(ApiKey::Vote), Some(1));
    assert_eq!(versions.choose(ApiKey::Fetch), Some(18));
    assert_eq!(versions.choose(ApiKey::FetchSnapshot), None);
    assert_eq!(versions.choose(ApiKey::DescribeQuorum), None);
    assert_eq!(Versions::default().choose(ApiKey::Vote), None);
    assert_eq!(answer(&[(52, 2, 1)]).choose(ApiKey::Vote), None);
}

#[test]
fn a_peer_without_a_common_version_of_api_versions_is_named_so() {
    let answer =
        |error_code, api_keys| ApiVersionsResponse { error_code, api_keys, ..Default::default() };
    let decode = |version, response: &ApiVersionsResponse| {
        let bytes = unframed(encode_response(ApiKey::ApiVersions, 0, 5, response).unwrap());
        api_versions::decode_response(version, bytes)
    };
    let only = |min_version, max_version| {
        vec![ApiVersion { api_key: 18, min_version, max_version, ..Default::default() }]
    };
    assert_eq!(decode(5, &answer(35, only(0, 4))), Ok(Answer::AskAgain(4)));
    assert_eq!(decode(5, &answer(35, Vec::new())), Ok(Answer::AskAgain(0)));
    let none = Err(Unreachable::UnsupportedVersion);
    assert_eq!(decode(5, &answer(35, only(6, 9))), none);
    assert_eq!(decode(0, &answer(35, only(0, 4))), none);
    assert_eq!(decode(0, &answer(35, Vec::new())), none);
    assert_eq!(decode(0, &answer(42, Vec::new())), Err(Unreachable::TopLevel(ErrorCode(42))));
    assert_eq!(ApiVersionsResponse::VERSIONS, 0..=5);
}
