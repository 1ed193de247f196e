//! Core message, bytes, core message: nothing is lost but what the version lacks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use quorate_core::ids::{
    DirectoryId, Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset, OffsetAndEpoch,
    ReplicaKey,
};
use quorate_core::message::*;
use quorate_core::voters::{Voter, VoterSet};
use quorate_rpc::client::{Origin, decode_response, encode_request};
use quorate_rpc::server::{AnswerFormat, Decoded, ServerContext, decode_request, encode_response};
use quorate_rpc::{ApiKey, api_of, records};

const NOW_MS: i64 = 1_800_000_000_000;
const ORIGIN: Origin<'static> = Origin { client_id: "raft-client-1", cluster_id: "cluster" };

fn context() -> ServerContext {
    ServerContext {
        cluster_id: "cluster".to_owned(),
        kraft_version: KRaftVersion(1),
        listeners: Endpoints::new(),
    }
}

/// Sends a request through bytes; none if the version cannot carry it.
fn through(request: &Request, version: i16) -> Option<(Request, AnswerFormat)> {
    let slices = encode_request(request, version, 7, &ORIGIN).ok()?;
    let frame: Bytes = slices.concat().into();
    match decode_request(frame.slice(4..), &context()) {
        Ok(Decoded::Request(request, format)) => Some((request, format)),
        other => panic!("{other:?}"),
    }
}

fn answered(
    request: &Request,
    version: i16,
    response: &Response<LogRange>,
    records: Vec<Bytes>,
) -> Result<Response<Received>, Unreachable> {
    let (_, format) = through(request, version).expect("a version that can carry it");
    let slices = encode_response(format, response, records, &context(), NOW_MS).unwrap();
    let frame: Bytes = slices.concat().into();
    decode_response(api_of(request), version, frame.slice(4..), NOW_MS)
}

fn directory() -> impl Strategy<Value = Option<DirectoryId>> {
    of(any::<[u8; 16]>()).prop_map(|bytes| bytes.and_then(DirectoryId::from_bytes))
}

fn replica() -> impl Strategy<Value = ReplicaKey> {
    (any::<i32>(), directory()).prop_map(|(id, directory)| ReplicaKey::new(NodeId(id), directory))
}

fn voter_key() -> impl Strategy<Value = ReplicaKey> {
    (0..i32::MAX, directory()).prop_map(|(id, directory)| ReplicaKey::new(NodeId(id), directory))
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    ("[a-z0-9.:é]{0,20}", any::<u16>()).prop_map(|(host, port)| Endpoint::new(&host, port))
}

fn endpoints() -> impl Strategy<Value = Endpoints> {
    btree_map("[A-Z_]{1,8}".prop_map(|name| ListenerName::new(&name)), endpoint(), 0..3)
}

fn place() -> impl Strategy<Value = OffsetAndEpoch> {
    (any::<i64>(), any::<i32>())
        .prop_map(|(offset, epoch)| OffsetAndEpoch::new(Offset(offset), Epoch(epoch)))
}

fn valid_place() -> impl Strategy<Value = OffsetAndEpoch> {
    (0..i64::MAX, 0..i32::MAX)
        .prop_map(|(offset, epoch)| OffsetAndEpoch::new(Offset(offset), Epoch(epoch)))
}

fn current() -> impl Strategy<Value = CurrentLeader> {
    (any::<i32>(), of((0..i32::MAX, of(endpoint())))).prop_map(|(epoch, leader)| CurrentLeader {
        epoch: Epoch(epoch),
        leader: leader.as_ref().map(|(id, _)| NodeId(*id)),
        endpoint: leader.and_then(|(_, endpoint)| endpoint),
    })
}

fn error() -> impl Strategy<Value = ErrorCode> {
    any::<i16>().prop_map(ErrorCode)
}

fn known_offset() -> impl Strategy<Value = Option<Offset>> {
    of((0..i64::MAX).prop_map(Offset))
}

fn vote() -> impl Strategy<Value = VoteRequest> {
    (of(voter_key()), replica(), any::<i32>(), place(), any::<bool>()).prop_map(
        |(voter, replica, epoch, log_end, pre_vote)| VoteRequest {
            voter,
            replica,
            epoch: Epoch(epoch),
            log_end,
            pre_vote,
        },
    )
}

fn begin() -> impl Strategy<Value = BeginQuorumEpochRequest> {
    (of(voter_key()), any::<i32>(), any::<i32>(), endpoints()).prop_map(
        |(voter, leader, epoch, endpoints)| BeginQuorumEpochRequest {
            voter,
            leader: NodeId(leader),
            epoch: Epoch(epoch),
            endpoints,
        },
    )
}

fn end() -> impl Strategy<Value = EndQuorumEpochRequest> {
    (any::<i32>(), any::<i32>(), vec(replica(), 0..4), endpoints()).prop_map(
        |(leader, epoch, preferred_candidates, endpoints)| EndQuorumEpochRequest {
            leader: NodeId(leader),
            epoch: Epoch(epoch),
            preferred_candidates,
            endpoints,
        },
    )
}

fn fetch() -> impl Strategy<Value = FetchRequest> {
    let high_watermark = prop_oneof![
        Just(FetcherHighWatermark::Unsaid),
        Just(FetcherHighWatermark::Unknown),
        (0..i64::MAX).prop_map(|offset| FetcherHighWatermark::Known(Offset(offset))),
    ];
    let numbers = (any::<i32>(), any::<i64>(), any::<i32>(), any::<i32>(), any::<i32>());
    (replica(), numbers, high_watermark).prop_map(|(replica, numbers, high_watermark)| {
        let (epoch, offset, last, max_wait_ms, max_bytes) = numbers;
        FetchRequest {
            replica,
            epoch: Epoch(epoch),
            offset: Offset(offset),
            last_fetched_epoch: Epoch(last),
            max_wait_ms,
            max_bytes,
            high_watermark,
        }
    })
}

fn snapshot() -> impl Strategy<Value = FetchSnapshotRequest> {
    (replica(), any::<i32>(), place(), any::<i64>(), any::<i32>()).prop_map(
        |(replica, epoch, snapshot, position, max_bytes)| FetchSnapshotRequest {
            replica,
            epoch: Epoch(epoch),
            snapshot,
            position,
            max_bytes,
        },
    )
}

/// What is left of an answer's leader in versions without node endpoints.
fn without_endpoint(current: &CurrentLeader) -> CurrentLeader {
    CurrentLeader { endpoint: None, ..current.clone() }
}

fn any_vote() -> Request {
    Request::Vote(VoteRequest {
        voter: None,
        replica: ReplicaKey::new(NodeId(1), None),
        epoch: Epoch(1),
        log_end: OffsetAndEpoch::default(),
        pre_vote: false,
    })
}

fn any_fetch() -> Request {
    Request::Fetch(FetchRequest {
        replica: ReplicaKey::new(NodeId(1), None),
        epoch: Epoch(1),
        offset: Offset(0),
        last_fetched_epoch: Epoch(0),
        max_wait_ms: 500,
        max_bytes: 1 << 20,
        high_watermark: FetcherHighWatermark::Unknown,
    })
}

fn range() -> LogRange {
    LogRange { from: Offset(0), to: Offset(0), max_bytes: 0, generation: 0 }
}

proptest! {
    #[test]
    fn vote_requests(request in vote()) {
        for version in 0..=2 {
            let mut expected = request.clone();
            if version < 1 {
                expected.voter = None;
                expected.replica.directory = None;
            }
            let got = through(&Request::Vote(request.clone()), version).map(|(got, _)| got);
            // A pre-vote must never arrive as a vote.
            let can_carry = version >= 2 || !request.pre_vote;
            prop_assert_eq!(got, can_carry.then_some(Request::Vote(expected)));
        }
    }

    #[test]
    fn begin_quorum_epoch_requests(request in begin()) {
        for version in 0..=1 {
            let mut expected = request.clone();
            if version < 1 {
                expected.voter = None;
                expected.endpoints.clear();
            }
            let got = through(&Request::BeginQuorumEpoch(request.clone()), version).unwrap().0;
            prop_assert_eq!(got, Request::BeginQuorumEpoch(expected));
        }
    }

    #[test]
    fn end_quorum_epoch_requests(request in end()) {
        for version in 0..=1 {
            let mut expected = request.clone();
            if version < 1 {
                expected.endpoints.clear();
                expected.preferred_candidates.iter_mut().for_each(|key| key.directory = None);
            }
            let got = through(&Request::EndQuorumEpoch(request.clone()), version).unwrap().0;
            prop_assert_eq!(got, Request::EndQuorumEpoch(expected));
        }
    }

    #[test]
    fn fetch_requests(request in fetch()) {
        for version in 4..=18 {
            let mut expected = request.clone();
            if version < 17 {
                expected.replica.directory = None;
            }
            if version < 18 {
                expected.high_watermark = FetcherHighWatermark::Unsaid;
            }
            let got = through(&Request::Fetch(request.clone()), version).map(|(got, _)| got);
            prop_assert_eq!(got, (version >= 13).then_some(Request::Fetch(expected)));
        }
    }

    #[test]
    fn fetch_snapshot_requests(request in snapshot()) {
        for version in 0..=1 {
            let mut expected = request.clone();
            if version < 1 {
                expected.replica.directory = None;
            }
            let got = through(&Request::FetchSnapshot(request.clone()), version).unwrap().0;
            prop_assert_eq!(got, Request::FetchSnapshot(expected));
        }
    }

    #[test]
    fn vote_responses(error in error(), current in current(), granted: bool) {
        for version in 0..=2 {
            let expected = if version < 1 { without_endpoint(&current) } else { current.clone() };
            let response = Response::Vote(VoteResponse { error, current: current.clone(), granted });
            let got = answered(&any_vote(), version, &response, Vec::new()).unwrap();
            prop_assert_eq!(got, Response::Vote(VoteResponse { error, current: expected, granted }));
        }
    }

    #[test]
    fn quorum_epoch_responses(error in error(), current in current(), b in begin(), e in end()) {
        for version in 0..=1 {
            let expected = if version < 1 { without_endpoint(&current) } else { current.clone() };
            let expected = QuorumEpochResponse { error, current: expected };
            let sent = QuorumEpochResponse { error, current: current.clone() };

            let request = Request::BeginQuorumEpoch(b.clone());
            let response = Response::BeginQuorumEpoch(sent.clone());
            let got = answered(&request, version, &response, Vec::new()).unwrap();
            prop_assert_eq!(got, Response::BeginQuorumEpoch(expected.clone()));

            let request = Request::EndQuorumEpoch(e.clone());
            let response = Response::EndQuorumEpoch(sent);
            let got = answered(&request, version, &response, Vec::new()).unwrap();
            prop_assert_eq!(got, Response::EndQuorumEpoch(expected));
        }
    }

    #[test]
    fn fetch_responses(
        error in error(),
        current in current(),
        high_watermark in known_offset(),
        log_start in known_offset(),
        place in of((any::<bool>(), valid_place())),
    ) {
        for version in 13..=18 {
            let expected = if version < 17 { without_endpoint(&current) } else { current.clone() };
            let (out, back) = match place {
                None => (FetchOutcome::Records(range()), FetchOutcome::Records(Received::default())),
                Some((true, end)) => (FetchOutcome::Diverging(end), FetchOutcome::Diverging(end)),
                Some((false, id)) => (FetchOutcome::Snapshot(id), FetchOutcome::Snapshot(id)),
            };
            let response = Response::Fetch(FetchResponse {
                error, current: current.clone(), high_watermark, log_start, outcome: out,
            });
            let got = answered(&any_fetch(), version, &response, Vec::new()).unwrap();
            prop_assert_eq!(got, Response::Fetch(FetchResponse {
                error, current: expected, high_watermark, log_start, outcome: back,
            }));
        }
    }

    #[test]
    fn fetch_snapshot_responses(
        error in error(), current in current(), id in place(), request in snapshot(),
    ) {
        for version in 0..=1 {
            let expected = if version < 1 { without_endpoint(&current) } else { current.clone() };
            let response = Response::FetchSnapshot(FetchSnapshotResponse {
                error, current: current.clone(), snapshot: id,
            });
            let request = Request::FetchSnapshot(request.clone());
            let got = answered(&request, version, &response, Vec::new()).unwrap();
            prop_assert_eq!(got, Response::FetchSnapshot(FetchSnapshotResponse {
                error, current: expected, snapshot: id,
            }));
        }
    }

    #[test]
    fn a_refusal_as_a_whole(code in 1..i16::MAX, version in 0i16..=1, b in begin(), s in snapshot()) {
        let error = ErrorCode(code);
        for request in [
            any_vote(),
            Request::BeginQuorumEpoch(b.clone()),
            Request::FetchSnapshot(s.clone()),
            Request::DescribeQuorum,
        ] {
            let got = answered(&request, version, &Response::TopLevel(error), Vec::new());
            prop_assert_eq!(got, Err(Unreachable::TopLevel(error)));
        }
        for (request, version) in [(any_fetch(), 13 + version), (Request::DescribeReplica, 0)] {
            let got = answered(&request, version, &Response::TopLevel(error), Vec::new());
            prop_assert_eq!(got, Err(Unreachable::TopLevel(error)));
        }
    }

    #[test]
    fn quorum_descriptions(
        voters in vec((voter_key(), known_offset(), of(0u64..1 << 40), of(0u64..1 << 40)), 0..4),
        nodes in btree_map((0..i32::MAX).prop_map(NodeId), endpoints(), 0..3),
        high_watermark in known_offset(),
    ) {
        let progress = |(key, log_end, fetch, caught_up): &(_, _, Option<u64>, Option<u64>)| {
            ReplicaProgress {
                key: *key,
                log_end: *log_end,
                last_fetch: fetch.map(Duration::from_millis),
                last_caught_up: caught_up.map(Duration::from_millis),
            }
        };
        let sent = QuorumDescription {
            leader: NodeId(3),
            epoch: Epoch(4),
            high_watermark,
            voters: voters.iter().map(progress).collect(),
            observers: voters.iter().rev().map(progress).collect(),
            nodes,
        };
        for version in 0..=2 {
            let mut expected = sent.clone();
            for replica in expected.voters.iter_mut().chain(&mut expected.observers) {
                if version < 2 {
                    replica.key.directory = None;
                }
                if version < 1 {
                    (replica.last_fetch, replica.last_caught_up) = (None, None);
                }
            }
            if version < 2 {
                expected.nodes.clear();
            }
            let response = Response::DescribeQuorum(Ok(sent.clone()));
            let got = answered(&Request::DescribeQuorum, version, &response, Vec::new()).unwrap();
            prop_assert_eq!(got, Response::DescribeQuorum(Ok(expected)));
        }
    }

    #[test]
    fn replica_descriptions(
        key in voter_key(),
        voted in of(voter_key()),
        places in (valid_place(), valid_place()),
        high_watermark in known_offset(),
        voters in btree_map((0..i32::MAX).prop_map(NodeId), (any::<[u8; 16]>(), endpoints()), 1..4),
        ages in (of(0u64..1 << 40), of(0u64..1 << 40)),
        round in of((any::<bool>(), of(any::<bool>()), any::<i16>())),
        fault in of("[a-z ]{1,20}"),
        reason in 0usize..6,
    ) {
        let levels = KRaftVersion::SUPPORTED;
        let voters = voters.into_iter().map(|(id, (directory, endpoints))| {
            let directory = DirectoryId::from_bytes(directory);
            (id, Voter { directory, endpoints, kraft_versions: levels })
        });
        let reasons = [
            Unreachable::Refused, Unreachable::Reset, Unreachable::TimedOut,
            Unreachable::UnsupportedVersion, Unreachable::Malformed,
            Unreachable::TopLevel(ErrorCode(104)),
        ];
        let description = ReplicaDescription {
            key,
            role: "prospective",
            epoch: Epoch(9),
            leader: voted.map(|voted| voted.id),
            voted,
            is_voter: voted.is_some(),
            log_start: places.0.offset,
            log_end: places.1,
            durable_end: places.1.offset,
            high_watermark,
            kraft_version: KRaftVersion(1),
            voters: VoterSet::new(voters).unwrap(),
            voters_offset: Some(places.0.offset),
            leaderless: ages.0.map(Duration::from_millis),
            oldest_unfinished_write: ages.1.map(Duration::from_millis),
            last_round: round.map(|(pre_vote, won, code)| ElectionRound {
                epoch: Epoch(9),
                pre_vote,
                log_end: places.1,
                won,
                answers: BTreeMap::from([
                    (NodeId(1), VoterAnswer::None),
                    (NodeId(2), VoterAnswer::Granted),
                    (NodeId(3), VoterAnswer::Unreachable(reasons[reason])),
                    (NodeId(4), VoterAnswer::Refused {
                        error: ErrorCode(code), epoch: Epoch(8), leader: Some(NodeId(2)),
                    }),
                ]),
            }),
            integrity_fault: fault,
            unreachable: reasons.map(|r| (NodeId(1), r, Duration::from_millis(5))).to_vec(),
        };
        let response = Response::DescribeReplica(Box::new(description));
        let got = answered(&Request::DescribeReplica, 0, &response, Vec::new()).unwrap();
        let Response::DescribeReplica(expected) = response else { unreachable!() };
        prop_assert_eq!(got, Response::DescribeReplica(expected));
    }

    #[test]
    fn rubbish_is_refused(bytes in vec(any::<u8>(), 0..200), key in any::<bool>()) {
        let mut bytes = bytes;
        if key && bytes.len() > 4 {
            let api = ApiKey::ALL[usize::from(bytes[0]) % ApiKey::ALL.len()];
            bytes[..2].copy_from_slice(&api.code().to_be_bytes());
            bytes[2] = 0;
            bytes[3] %= 19;
        }
        let bytes = Bytes::from(bytes);
        let _ = decode_request(bytes.clone(), &context());
        for api in ApiKey::ALL {
            let _ = decode_response(*api, *api.versions().end(), bytes.clone(), 0);
        }
        let received = records::check(bytes);
        prop_assert!(received.batches.is_empty());
    }
}

#[test]
fn an_error_instead_of_a_description() {
    for version in 0..=2 {
        let response = Response::DescribeQuorum(Err(ErrorCode::NOT_LEADER_OR_FOLLOWER));
        let got = answered(&Request::DescribeQuorum, version, &response, Vec::new()).unwrap();
        assert_eq!(got, Response::DescribeQuorum(Err(ErrorCode::NOT_LEADER_OR_FOLLOWER)));
    }
}

#[test]
fn an_answer_to_another_request_is_not_sent() {
    let (_, format) = through(&any_vote(), 2).unwrap();
    let response = Response::DescribeQuorum(Err(ErrorCode::NONE));
    assert!(encode_response(format, &response, Vec::new(), &context(), NOW_MS).is_err());
}

#[test]
fn records_are_passed_on_without_a_copy() {
    let (_, format) = through(&any_fetch(), 18).unwrap();
    let records = vec![Bytes::from(vec![1; 100]), Bytes::from(vec![2; 100])];
    let current = CurrentLeader { epoch: Epoch(1), leader: None, endpoint: None };
    let response = Response::Fetch(FetchResponse {
        error: ErrorCode::NONE,
        current,
        high_watermark: None,
        log_start: None,
        outcome: FetchOutcome::Records(range()),
    });
    let slices = encode_response(format, &response, records.clone(), &context(), NOW_MS).unwrap();
    for part in &records {
        assert!(slices.iter().any(|slice| slice.as_ptr() == part.as_ptr()), "copied");
    }
}

#[test]
fn names_of_listeners_and_hosts_survive() {
    let endpoints = Endpoints::from([(
        ListenerName::new("controller"),
        Endpoint { host: Arc::from("::1"), port: 65535 },
    )]);
    let request = Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
        voter: None,
        leader: NodeId(1),
        epoch: Epoch(1),
        endpoints,
    });
    assert_eq!(through(&request, 1).unwrap().0, request);
}
