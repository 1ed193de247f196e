//! What is odd and comes from every Java peer ("Expect from Java" of the protocol reference, section 10): it gets an ordinary
//! answer.

use std::time::Duration;

use quorate_core::message::{
    BeginQuorumEpochRequest, CurrentLeader, EndQuorumEpochRequest, ErrorCode, FetchRequest,
    FetcherHighWatermark, QuorumEpochResponse, Request, Response, VoteRequest, VoteResponse,
};
use quorate_core::{Endpoints, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey};
use quorate_rpc::client::decode_answer;
use quorate_wire::Uuid;
use quorate_wire::frame::encode_request;
use quorate_wire::message as wire;
use quorate_wire::message::ApiKey;

use crate::fake::{Answer, Asker, Fake};
use crate::nodes::{Pair, Running, endpoints, free_port, run, start};

const TOPIC: &str = "__cluster_metadata";

fn begin(leader: i32, epoch: i32, port: u16) -> Request {
    Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
        voter: None,
        leader: NodeId(leader),
        epoch: Epoch(epoch),
        endpoints: endpoints(port),
    })
}

fn vote(replica: i32, epoch: i32, pre_vote: bool) -> Request {
    Request::Vote(VoteRequest {
        voter: None,
        replica: ReplicaKey::new(NodeId(replica), None),
        epoch: Epoch(epoch),
        log_end: OffsetAndEpoch::new(Offset(0), Epoch(0)),
        pre_vote,
    })
}

async fn ask_to_vote(port: u16, replica: i32, epoch: i32, pre_vote: bool) -> VoteResponse {
    match Asker::connect(port).await.ask(&vote(replica, epoch, pre_vote)).await {
        Some(Ok(Response::Vote(answer))) => answer,
        other => panic!("{other:?}"),
    }
}

async fn announce(port: u16, request: &Request) -> QuorumEpochResponse {
    match Asker::connect(port).await.ask(request).await {
        Some(Ok(Response::BeginQuorumEpoch(answer) | Response::EndQuorumEpoch(answer))) => answer,
        other => panic!("{other:?}"),
    }
}

/// A node that follows a fake leader 2 of epoch 5, whose third voter grants everything.
async fn follower() -> (Running, Fake) {
    let leader = Fake::start(|_| Answer::Close).await;
    let third = Fake::start(|request| match request {
        Request::Vote(request) => {
            let current = CurrentLeader { epoch: request.epoch, leader: None, endpoint: None };
            let (error, granted) = (ErrorCode::NONE, true);
            let response = VoteResponse { error, current, granted };
            Answer::Say(Response::Vote(response), Vec::new())
        }
        _ => Answer::Close,
    })
    .await;
    let minute = Duration::from_secs(60);
    let voters = [(1, free_port()), (2, leader.port), (3, third.port)];
    let victim = start(1, &voters, minute, minute);
    let answer = announce(victim.port, &begin(2, 5, leader.port)).await;
    assert_eq!(answer.error, ErrorCode::NONE);
    victim.wait_for("it follows", |now| now.role == "follower" && now.epoch == Epoch(5)).await;
    (victim, leader)
}

/// Java fills neither the leader's endpoints nor the partition index of EndQuorumEpoch; without a cluster id too, the named
/// successor takes over at once, long before any timeout of its own.
#[test]
fn the_end_of_an_epoch_without_endpoints() {
    run(async {
        let (victim, _leader) = follower().await;
        let successor = wire::ReplicaInfo { candidate_id: 1, ..Default::default() };
        let request = wire::EndQuorumEpochRequest {
            topics: vec![wire::EndQuorumEpochRequestTopic {
                topic_name: TOPIC.to_owned(),
                partitions: vec![wire::EndQuorumEpochRequestPartition {
                    leader_id: 2,
                    leader_epoch: 5,
                    preferred_candidates: vec![successor],
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let bytes = encode_request(1, 1, "fake", &request).unwrap().concat();
        let frame = Asker::connect(victim.port).await.exchange(&bytes).await.expect("an answer");
        let answer: wire::EndQuorumEpochResponse =
            decode_answer(ApiKey::EndQuorumEpoch, 1, frame).unwrap();
        assert_eq!((answer.error_code, answer.topics[0].partitions[0].error_code), (0, 0));
        victim.wait_for("it takes over", |now| now.role == "leader" && now.epoch == Epoch(6)).await;
    });
}

/// A leader that announces itself for a whole epoch, and late duplicates of older ones: nothing changes.
#[test]
fn heartbeats_and_late_duplicates() {
    run(async {
        let (victim, leader) = follower().await;
        let before = victim.describe().await;
        for _ in 0..100 {
            let answer = announce(victim.port, &begin(2, 5, leader.port)).await;
            assert_eq!((answer.error, answer.current.leader), (ErrorCode::NONE, Some(NodeId(2))));
        }
        let end = Request::EndQuorumEpoch(EndQuorumEpochRequest {
            leader: NodeId(3),
            epoch: Epoch(4),
            preferred_candidates: vec![ReplicaKey::new(NodeId(1), None)],
            endpoints: Endpoints::new(),
        });
        for late in [begin(3, 4, 9), end] {
            let answer = announce(victim.port, &late).await;
            assert_eq!(answer.error, ErrorCode::FENCED_LEADER_EPOCH, "{late:?}");
            assert_eq!(answer.current.leader, Some(NodeId(2)));
        }
        let late = ask_to_vote(victim.port, 3, 4, false).await;
        assert_eq!((late.error, late.granted), (ErrorCode::FENCED_LEADER_EPOCH, false));
        let after = victim.describe().await;
        assert_eq!((after.role, after.epoch, after.leader), ("follower", Epoch(5), before.leader));
        assert_eq!(after.voted, before.voted);
    });
}

/// Pre-votes of a node that knows a leader, votes of ids that are no voters, or none any more. A pre-vote moves nobody; a
/// vote moves the epoch, as in Kafka, and whoever has the log leads again.
#[test]
fn votes_from_anybody() {
    run(async {
        let fake = Fake::start(|_| Answer::Close).await;
        let pair = Pair::start(fake.port);
        pair.commit().await;
        let (_, token) = pair.leader().await;
        let epoch = token.epoch().0;
        for target in &pair.nodes {
            for replica in [3, 9, 1000] {
                for epoch in [epoch, epoch - 1] {
                    let answer = ask_to_vote(target.port, replica, epoch, true).await;
                    assert!(!answer.granted && answer.current.epoch >= token.epoch());
                }
            }
        }
        pair.commit().await;
        for target in &pair.nodes {
            // An election that comes just then is ahead of it.
            loop {
                let now = target.describe().await.epoch.0;
                let answer = ask_to_vote(target.port, 9, now + 1, false).await;
                assert!(!answer.granted, "{answer:?}");
                pair.commit().await;
                if answer.error == ErrorCode::NONE {
                    break;
                }
                assert_eq!(answer.error, ErrorCode::FENCED_LEADER_EPOCH);
            }
        }
    });
}

/// A Fetch to whoever does not lead is not parked, and learns who does.
#[test]
fn fetches_to_who_does_not_lead() {
    run(async {
        let fake = Fake::start(|_| Answer::Close).await;
        let pair = Pair::start(fake.port);
        pair.commit().await;
        let mut learnt = 0;
        while learnt < 20 {
            let (leader, token) = pair.leader().await;
            let (leader_id, leader_port) = (leader.describe().await.key.id, leader.port);
            let other = pair.nodes.iter().find(|node| node.port != leader_port).unwrap();
            for replica in [3, 9, -1] {
                let request = Request::Fetch(FetchRequest {
                    replica: ReplicaKey::new(NodeId(replica), None),
                    epoch: token.epoch(),
                    offset: Offset(0),
                    last_fetched_epoch: Epoch(0),
                    max_wait_ms: i32::MAX,
                    max_bytes: 1000,
                    high_watermark: FetcherHighWatermark::Unknown,
                });
                let answer = Asker::connect(other.port).await.ask(&request).await;
                let Some(Ok(Response::Fetch(answer))) = answer else { panic!("{answer:?}") };
                assert_ne!(answer.error, ErrorCode::NONE);
                if answer.current.epoch == token.epoch() && answer.current.leader.is_some() {
                    assert_eq!(answer.error, ErrorCode::NOT_LEADER_OR_FOLLOWER);
                    assert_eq!(answer.current.leader, Some(leader_id));
                    assert_eq!(answer.current.endpoint.map(|at| at.port), Some(leader_port));
                    learnt += 1;
                }
            }
        }
    });
}

/// Admin tools name no cluster.
#[test]
fn requests_without_a_cluster_id() {
    run(async {
        let fake = Fake::start(|_| Answer::Close).await;
        let pair = Pair::start(fake.port);
        pair.commit().await;
        let (leader, _) = pair.leader().await;
        let mut asker = Asker::connect(leader.port).await;
        let fetch = wire::FetchRequest {
            replica_state: wire::FetchReplicaState { replica_id: -1, ..Default::default() },
            max_bytes: 1000,
            topics: vec![wire::FetchTopic {
                topic_id: Uuid::METADATA_TOPIC,
                partitions: vec![wire::FetchPartition::default()],
                ..Default::default()
            }],
            ..Default::default()
        };
        let bytes = encode_request(17, 1, "fake", &fetch).unwrap().concat();
        let frame = asker.exchange(&bytes).await.expect("an answer");
        let answer: wire::FetchResponse = decode_answer(ApiKey::Fetch, 17, frame).unwrap();
        assert_eq!((answer.error_code, answer.responses.len()), (0, 1));
        let vote = wire::VoteRequest {
            voter_id: -1,
            topics: vec![wire::VoteRequestTopic {
                topic_name: TOPIC.to_owned(),
                partitions: vec![wire::VoteRequestPartition {
                    replica_id: 3,
                    pre_vote: true,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let bytes = encode_request(2, 1, "fake", &vote).unwrap().concat();
        let frame = asker.exchange(&bytes).await.expect("an answer");
        let answer: wire::VoteResponse = decode_answer(ApiKey::Vote, 2, frame).unwrap();
        assert_eq!((answer.error_code, answer.topics.len()), (0, 1));
        assert!(matches!(
            asker.ask(&Request::DescribeQuorum).await,
            Some(Ok(Response::DescribeQuorum(_)))
        ));
    });
}
