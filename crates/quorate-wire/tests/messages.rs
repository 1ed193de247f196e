//! The messages as a whole: any bytes decode or give an error, what decodes encodes again, and what
//! the golden vectors do not have.

use std::path::Path;
use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_wire::control::*;
use quorate_wire::frame::{encode_request, encode_response, next_frame};
use quorate_wire::message::*;
use quorate_wire::metadata::{FeatureLevelRecord, MetadataRecord, NoOpRecord};
use quorate_wire::{
    DecodeError, DecodeErrorKind, EncodeError, Message, Records, UnknownTags, Uuid, json,
};

/// Decodes; what decodes must encode, at the size computed, and decode to the same again.
fn survive<M: Message + PartialEq + std::fmt::Debug>(version: i16, bytes: &Bytes) -> bool {
    let Ok(message) = M::decode(version, &mut bytes.clone()) else { return false };
    let encoded = encode(version, &message);
    assert_eq!(M::decode_exact(version, encoded), Ok(message));
    true
}

fn encode<M: Message>(version: i16, message: &M) -> Bytes {
    let mut buf = BytesMut::new();
    message.encode(version, &mut buf).expect("the version can carry it");
    let parts = message.encode_vectored(version).expect("the version can carry it");
    assert_eq!(parts.concat(), buf);
    buf.freeze()
}

macro_rules! messages {
    ($($message:ident),* $(,)?) => {
        /// Runs [`survive`] for the message of this name.
        fn survive_named(name: &str, version: i16, bytes: &Bytes) -> Option<bool> {
            match name {
                $($message::NAME => Some(survive::<$message>(version, bytes)),)*
                _ => None,
            }
        }

        /// Runs [`survive`] for every message at every version.
        fn survive_all(bytes: &Bytes) {
            $(for version in $message::VERSIONS {
                survive::<$message>(version, bytes);
            })*
        }
    };
}

messages![
    RequestHeader,
    ResponseHeader,
    FetchRequest,
    FetchResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    VoteRequest,
    VoteResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    DescribeReplicaRequest,
    DescribeReplicaResponse,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    SnapshotFooterRecord,
    KRaftVersionRecord,
    VotersRecord,
    FeatureLevelRecord,
    NoOpRecord,
];

/// Name, version and body of every golden message that is built.
static GOLDEN: LazyLock<Vec<(String, i16, Vec<u8>)>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire");
    let mut found = Vec::new();
    for file in ["rpc-raft.jsonl", "control-records.jsonl", "metadata-records.jsonl"] {
        let text = std::fs::read_to_string(folder.join(file)).expect("it is in the repository");
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let name = line["message"].as_str().expect("a name");
            let version = line["version"].as_i64().and_then(|v| v.try_into().ok()).expect("int16");
            let Some(hex) = line["hex"].as_str() else { continue };
            let digits =
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
            let bytes: Vec<u8> = digits.collect::<Result<_, _>>().expect("hex");
            if survive_named(name, version, &bytes.clone().into()).is_some() {
                found.push((name.to_owned(), version, bytes));
            }
        }
    }
    found
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn golden_bytes_with_some_changed_decode_or_err(
        line: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..4),
        other_version: bool,
    ) {
        let (name, version, bytes) = line.get(&GOLDEN);
        let mut bytes = bytes.clone();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len() + 1);
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        survive_named(name, version ^ i16::from(other_version), &bytes.into());
    }
}

proptest! {
    #[test]
    fn any_bytes_decode_or_err(bytes: Vec<u8>) {
        let bytes = Bytes::from(bytes);
        survive_all(&bytes);
        let _ = RequestHeader::read(&mut bytes.clone());
        let _ = MetadataRecord::decode(bytes.clone());
        let _ = ControlRecord::decode(&bytes, bytes.clone());
    }

    #[test]
    fn votes_round_trip(
        cluster_id: Option<String>,
        ids: (i32, i32, i32, i32),
        directories: ([u8; 16], [u8; 16]),
        log_end: (i32, i64),
        pre_vote: bool,
        tag in (8u32.., prop::collection::vec(any::<u8>(), 0..20)),
    ) {
        let mut unknown = UnknownTags::default();
        unknown.push(tag.0, tag.1.into());
        let partition = VoteRequestPartition {
            partition_index: ids.0,
            replica_epoch: ids.1,
            replica_id: ids.2,
            replica_directory_id: Uuid(directories.0),
            voter_directory_id: Uuid(directories.1),
            last_offset_epoch: log_end.0,
            last_offset: log_end.1,
            pre_vote,
            unknown: unknown.clone(),
        };
        let topic = VoteRequestTopic {
            topic_name: "t".into(),
            partitions: vec![partition],
            unknown: unknown.clone(),
        };
        let request = VoteRequest { cluster_id, voter_id: ids.3, topics: vec![topic], unknown };
        prop_assert_eq!(VoteRequest::decode_exact(2, encode(2, &request)), Ok(request.clone()));
        // A pre-vote must not pass for a vote.
        prop_assert_eq!(request.encoded_len(1).is_err(), pre_vote);
    }

    #[test]
    fn records_round_trip_however_they_are_cut(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..5),
        version in 12i16..=18,
        endpoint: bool,
    ) {
        let records = Records(chunks.iter().cloned().map(Bytes::from).collect());
        let partition = FetchPartitionData {
            records: Some(records),
            current_leader: LeaderIdAndEpoch { leader_id: 3, ..Default::default() },
            ..FetchPartitionData::default()
        };
        let topic = FetchableTopicResponse { partitions: vec![partition], ..Default::default() };
        let node = FetchNodeEndpoint { node_id: 3, port: 9093, ..Default::default() };
        let node_endpoints = if endpoint && version >= 16 { vec![node] } else { Vec::new() };
        let response = FetchResponse { responses: vec![topic], node_endpoints, ..Default::default() };
        let decoded = FetchResponse::decode_exact(version, encode(version, &response));
        let mut decoded = decoded.expect("sound");
        prop_assert_eq!(&decoded, &response);
        let records = decoded.responses.remove(0).partitions.remove(0).records.expect("records");
        prop_assert_eq!(records.into_bytes(), chunks.concat());
    }

    #[test]
    fn uuids_round_trip_as_text(bytes: [u8; 16]) {
        let text = Uuid(bytes).to_string();
        prop_assert_eq!(text.len(), 22);
        prop_assert_eq!(text.parse(), Ok(Uuid(bytes)));
        prop_assert_eq!(format!("{text}==").parse(), Ok(Uuid(bytes)));
    }
}

#[test]
fn uuids_are_read_as_java_reads_them() {
    assert_eq!(Uuid::METADATA_TOPIC.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
    assert_eq!("AAAAAAAAAAAAAAAAAAAAAA".parse(), Ok(Uuid::ZERO));
    // A well-known cluster id whose last character has stray bits.
    assert!("MkU3OEVBNTcwNTJENDM2Qk".parse::<Uuid>().is_ok());
    for bad in [
        "",
        "AAAA",
        "AAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAAAAA",
        "é",
        "+/+/+/+/+/+/+/+/+/+/+w",
    ] {
        assert!(bad.parse::<Uuid>().is_err(), "{bad}");
    }
}

#[test]
fn a_replica_describes_itself() {
    let listener = Listener { name: "L".into(), host: "h".into(), port: 1, ..Default::default() };
    let answer = |voter_id, kind: &str| DescribedAnswer {
        voter_id,
        kind: kind.into(),
        ..DescribedAnswer::default()
    };
    let response = DescribeReplicaResponse {
        node_id: 1,
        directory_id: Uuid([1; 16]),
        role: "prospective".into(),
        epoch: 4,
        listeners: vec![listener.clone()],
        voters: vec![DescribedVoter {
            voter_id: 2,
            endpoints: vec![listener],
            max_kraft_version: 1,
            ..DescribedVoter::default()
        }],
        last_round: Some(DescribedRound {
            epoch: 4,
            pre_vote: true,
            outcome: "lost".into(),
            answers: vec![answer(2, "refused"), answer(3, "timed-out")],
            ..DescribedRound::default()
        }),
        integrity_fault: Some("the leader's log parts from ours".into()),
        unreachable: vec![UnreachablePeer {
            node_id: 3,
            reason: "refused".into(),
            since_ms: 10,
            ..UnreachablePeer::default()
        }],
        ..DescribeReplicaResponse::default()
    };
    for response in [response, DescribeReplicaResponse::default()] {
        let bytes = encode(0, &response);
        assert_eq!(DescribeReplicaResponse::decode_exact(0, bytes), Ok(response.clone()));
        let shown = json::to_json(&response, 0);
        assert_eq!(shown["highWatermark"], -1);
        assert_eq!(json::from_json(0, &shown), Ok(response));
    }
}

#[test]
fn json_must_fit_the_version() {
    let read = |version, text: &str| {
        let value = serde_json::from_str(text).expect("JSON");
        json::from_json::<VoteRequest>(version, &value).map_err(|error| error.to_string())
    };
    assert!(read(0, r#"{"clusterId":null,"topics":[]}"#).is_ok());
    assert_eq!(read(0, r#"{"topics":[]}"#), Err("clusterId: is missing".into()));
    let surplus = read(0, r#"{"clusterId":null,"topics":[],"voterId":1}"#);
    assert_eq!(surplus, Err("voterId: is not in this version".into()));
    let typed = read(0, r#"{"clusterId":null,"topics":[{"topicName":1,"partitions":[]}]}"#);
    assert_eq!(typed, Err("topics[0].topicName: expected a string, found 1".into()));
}

#[test]
fn header_versions_follow_the_body_but_for_api_versions() {
    let versions = |api, version| {
        (request_header_version(api, version), response_header_version(api, version))
    };
    assert_eq!(versions(ApiKey::Fetch, 11), (1, 0));
    assert_eq!(versions(ApiKey::Fetch, 12), (2, 1));
    assert_eq!(versions(ApiKey::BeginQuorumEpoch, 0), (1, 0));
    assert_eq!(versions(ApiKey::Vote, 0), (2, 1));
    assert_eq!(versions(ApiKey::ApiVersions, 2), (1, 0));
    assert_eq!(versions(ApiKey::ApiVersions, 3), (2, 0));
    assert_eq!(versions(ApiKey::ApiVersions, 99), (2, 0));
}

#[test]
fn every_api_is_found_by_its_key() {
    let listed: Vec<_> = ApiKey::ALL.iter().map(|api| (api.code(), api.versions())).collect();
    let expected = [
        (1, 4..=18),
        (3, 0..=13),
        (17, 0..=1),
        (18, 0..=5),
        (19, 2..=7),
        (20, 1..=6),
        (29, 1..=3),
        (30, 1..=3),
        (31, 1..=3),
        (32, 1..=4),
        (33, 0..=2),
        (36, 0..=2),
        (37, 0..=3),
        (38, 1..=3),
        (39, 1..=2),
        (40, 1..=2),
        (41, 1..=3),
        (43, 0..=2),
        (44, 0..=1),
        (45, 0..=1),
        (46, 0..=0),
        (48, 0..=1),
        (49, 0..=1),
        (50, 0..=0),
        (51, 0..=0),
        (52, 0..=2),
        (53, 0..=1),
        (54, 0..=1),
        (55, 0..=2),
        (56, 2..=3),
        (57, 0..=2),
        (58, 0..=0),
        (59, 0..=1),
        (60, 0..=2),
        (62, 0..=4),
        (63, 0..=2),
        (64, 0..=0),
        (67, 0..=0),
        (70, 0..=0),
        (73, 0..=0),
        (74, 0..=1),
        (75, 0..=0),
        (80, 0..=1),
        (81, 0..=0),
        (82, 0..=0),
        (94, 0..=0),
        (31_000, 0..=0),
    ];
    assert_eq!(listed, expected);
    for api in ApiKey::ALL {
        assert_eq!(ApiKey::from_code(api.code()), Some(*api));
        assert_eq!(api.is_private(), api.name() == "DescribeReplica");
    }
    assert_eq!(ApiKey::from_code(0), None);
}

#[test]
fn a_request_header_is_read_at_the_version_that_it_names() {
    let read = |bytes: &'static [u8]| RequestHeader::read(&mut Bytes::from_static(bytes));
    let old = read(b"\0\x01\0\x04\0\0\0\x07\0\x01c").expect("v1");
    assert_eq!((old.correlation_id, old.client_id.as_deref()), (7, Some("c")));
    let new = read(b"\0\x34\0\x02\0\0\0\x07\xff\xff\0").expect("v2");
    assert_eq!((new.request_api_version, new.client_id), (2, None));
    // Whoever speaks a newer ApiVersions must be told so.
    assert!(read(b"\0\x12\0\x63\0\0\0\x07\0\x01c\0").is_ok());
    let unknown = read(b"\x7f\xff\0\0\0\0\0\0").expect_err("no such API");
    assert_eq!(unknown.kind, DecodeErrorKind::UnknownKey { key: 32_767 });
    assert_eq!(
        unknown.to_string(),
        "RequestHeader.requestApiKey at byte 0: type 32767 is not known"
    );
    let cut = read(b"\0\x12\0").expect_err("cut");
    assert_eq!(cut.kind, DecodeErrorKind::Truncated { needed: 4, left: 3 });
}

#[test]
fn whole_frames_read_back() -> Result<(), Box<dyn std::error::Error>> {
    let request = FetchRequest { max_wait_ms: 500, ..FetchRequest::default() };
    let parts = encode_request(17, 42, "client", &request)?;
    let mut buf = BytesMut::from(&parts.concat()[..]);
    let mut frame = next_frame(&mut buf, 1000)?.ok_or("not whole")?;
    let header = RequestHeader::read(&mut frame)?;
    assert_eq!((header.request_api_key, header.request_api_version), (1, 17));
    assert_eq!((header.correlation_id, header.client_id.as_deref()), (42, Some("client")));
    assert_eq!(FetchRequest::decode_exact(17, frame)?, request);

    let response = VoteResponse { error_code: 104, ..VoteResponse::default() };
    let parts = encode_response(ApiKey::Vote, 2, 43, &response)?;
    let mut buf = BytesMut::from(&parts.concat()[..]);
    let mut frame = next_frame(&mut buf, 1000)?.ok_or("not whole")?;
    assert_eq!(ResponseHeader::decode(1, &mut frame)?.correlation_id, 43);
    assert_eq!(VoteResponse::decode_exact(2, frame)?, response);

    let state = FetchReplicaState { replica_id: 1, ..FetchReplicaState::default() };
    let request = FetchRequest { replica_state: state, ..FetchRequest::default() };
    let refused = encode_request(14, 1, "client", &request);
    let expected = EncodeError::UnsupportedVersion {
        message: "FetchRequest",
        field: "replicaState".into(),
        version: 14,
    };
    assert_eq!(refused, Err(expected));
    Ok(())
}

#[test]
fn metadata_records_carry_what_a_java_node_skips() {
    let mut record = NoOpRecord::default();
    assert_eq!(
        MetadataRecord::NoOp(record.clone()).encode(0),
        Ok(Bytes::from_static(b"\x01\x14\0\0"))
    );
    record.unknown.push(1000, Bytes::from_static(b"payload"));
    let record = MetadataRecord::NoOp(record);
    let bytes = record.encode(0).expect("short");
    assert_eq!(MetadataRecord::decode(bytes.clone()), Ok((record, 0)));
    let kind = |bytes: &[u8]| {
        let decoded = MetadataRecord::decode(Bytes::copy_from_slice(bytes));
        decoded.map_err(|error: DecodeError| error.kind)
    };
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert_eq!(kind(&longer), Err(DecodeErrorKind::TrailingBytes { left: 1 }));
    assert_eq!(kind(b"\x01\x06\0\0"), Err(DecodeErrorKind::UnknownKey { key: 6 }));
    assert_eq!(kind(b"\x02\x14\0\0"), Err(DecodeErrorKind::UnsupportedVersion { version: 2 }));
    assert_eq!(kind(b"\0\x14\0\0"), Err(DecodeErrorKind::UnsupportedVersion { version: 0 }));
    assert_eq!(kind(b"\x01\x14\x01\0"), Err(DecodeErrorKind::UnsupportedVersion { version: 1 }));
    let large = DecodeErrorKind::UnknownKey { key: 32_768 };
    assert_eq!(kind(b"\x01\x80\x80\x02\0\0"), Err(large));
    assert!(MetadataRecord::FeatureLevel(FeatureLevelRecord::default()).encode(1).is_err());
}
