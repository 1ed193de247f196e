//! Voters whose answers to Vote, BeginQuorumEpoch and EndQuorumEpoch are hazards: items 1 to 4, 12, 13, 15 and 17.

use std::time::Duration;

use quorate_core::message::{
    CurrentLeader, ErrorCode, QuorumEpochResponse, Request, Response, VoteResponse,
};
use quorate_core::{Endpoint, Epoch, NodeId};
use quorate_wire::message as wire;

use crate::fake::{Answer, Fake};
use crate::nodes::{Pair, free_port, run, start};

/// Leader and epoch as an answer has them; an unknown leader is -1.
fn current(leader: i32, epoch: i32) -> CurrentLeader {
    CurrentLeader {
        epoch: Epoch(epoch),
        leader: (leader >= 0).then_some(NodeId(leader)),
        endpoint: (leader >= 0).then(|| Endpoint::new("127.0.0.1", 9)),
    }
}

fn vote(error: i16, leader: i32, epoch: i32) -> Answer {
    let response =
        VoteResponse { error: ErrorCode(error), current: current(leader, epoch), granted: true };
    Answer::Say(Response::Vote(response), Vec::new())
}

fn odd_vote(change: impl Fn(&mut wire::VoteResponse)) -> Answer {
    let mut answer = wire::VoteResponse {
        topics: vec![wire::VoteResponseTopic {
            topic_name: "__cluster_metadata".to_owned(),
            partitions: vec![wire::VoteResponsePartition {
                leader_id: -1,
                vote_granted: true,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    change(&mut answer);
    Answer::Vote(answer)
}

/// However it is said that a vote is granted beside one of these, it is none.
#[test]
fn votes() {
    run(async {
        let fakes = [Fake::start(|_| Answer::Close).await, Fake::start(|_| Answer::Close).await];
        let voters = [(1, free_port()), (2, fakes[0].port), (3, fakes[1].port)];
        let victim = start(1, &voters, Duration::from_millis(200), Duration::from_secs(1));
        let mut hazards: Vec<(String, Answer)> = [42, -1, 1, 3, 8, 999, 6, 74, 125]
            .map(|error| (format!("partition error {error}"), vote(error, -1, 0)))
            .to_vec();
        hazards.extend([42, 31, 104, -1].map(|error| {
            let error_code = ErrorCode(error);
            (
                format!("top-level error {error}"),
                Answer::Say(Response::TopLevel(error_code), Vec::new()),
            )
        }));
        hazards.extend(
            [
                ("the nominee leads", vote(0, 1, 0)),
                ("the nominee leads a later epoch", vote(0, 1, 9)),
                ("the end of epochs", vote(0, -1, i32::MAX)),
                ("an older epoch", vote(0, -1, -1)),
                ("no topic", odd_vote(|answer| answer.topics.clear())),
                ("two topics", odd_vote(|answer| answer.topics.push(answer.topics[0].clone()))),
                ("another topic", odd_vote(|answer| answer.topics[0].topic_name = "t".to_owned())),
                (
                    "another partition",
                    odd_vote(|answer| {
                        answer.topics[0].partitions[0].partition_index = 1;
                    }),
                ),
                ("an empty body", Answer::Raw(Vec::new())),
                ("rubbish", Answer::Raw(vec![0xff; 80])),
                ("a closed connection", Answer::Close),
            ]
            .map(|(name, answer)| (name.to_owned(), answer)),
        );
        for (at, (name, hazard)) in hazards.into_iter().enumerate() {
            for fake in &fakes {
                let hazard = hazard.clone();
                fake.answer(move |request| match request {
                    Request::Vote(_) => hazard.clone(),
                    _ => Answer::Close,
                });
            }
            let is_vote = |request: &Request| matches!(request, Request::Vote(_));
            // One of the two in turn: the other is asked in the same way.
            let fake = &fakes[at % 2];
            while !fake.is_asked_with_pauses(&name).await.iter().any(is_vote) {}
            let now = victim.describe().await;
            assert!(
                now.role != "leader" && now.epoch == Epoch(0),
                "{name}: {} {:?}",
                now.role,
                now.epoch
            );
        }
        for fake in &fakes {
            fake.answer(|request| match request {
                Request::Vote(request) => vote(0, -1, request.epoch.0),
                _ => Answer::Close,
            });
        }
        victim.wait_for("elected", |now| now.role == "leader").await;
    });
}

/// A voter answers every request so, while the other two elect, announce themselves, commit and resign.
#[test]
fn a_voter_that_answers_everything_so() {
    run(async {
        let fake = Fake::start(|_| Answer::Close).await;
        let pair = Pair::start(fake.port);
        type Make = Box<dyn Fn(&Request) -> Answer + Send>;
        let both = |error: i16, leader: fn(i32) -> i32, epoch: fn(i32) -> i32| -> Make {
            Box::new(move |request| {
                let (own, now) = match request {
                    Request::Vote(request) => (request.replica.id.0, request.epoch.0),
                    Request::BeginQuorumEpoch(request) => (request.leader.0, request.epoch.0),
                    Request::EndQuorumEpoch(request) => (request.leader.0, request.epoch.0),
                    _ => return Answer::Close,
                };
                let current = current(leader(own), epoch(now));
                let error = ErrorCode(error);
                let response = match request {
                    Request::Vote(_) => {
                        Response::Vote(VoteResponse { error, current, granted: false })
                    }
                    Request::BeginQuorumEpoch(_) => {
                        Response::BeginQuorumEpoch(QuorumEpochResponse { error, current })
                    }
                    _ => Response::EndQuorumEpoch(QuorumEpochResponse { error, current }),
                };
                Answer::Say(response, Vec::new())
            })
        };
        let top = |error: i16| -> Make {
            Box::new(move |_| Answer::Say(Response::TopLevel(ErrorCode(error)), Vec::new()))
        };
        let hazards: Vec<(&str, Make)> = vec![
            ("INVALID_REQUEST", both(42, |own| own, |now| now)),
            ("UNKNOWN_SERVER_ERROR", both(-1, |own| own, |now| now)),
            ("error 999", both(999, |own| own, |now| now)),
            ("FENCED_LEADER_EPOCH without news", both(74, |_| -1, |now| now)),
            ("INVALID_VOTER_KEY", both(125, |own| own, |now| now)),
            ("an older epoch", both(0, |own| own, |now| now - 1)),
            ("another leader of the epoch", both(0, |own| own % 2 + 1, |now| now)),
            ("an unknown leader of the epoch", both(6, |_| 7, |now| now)),
            ("the voter itself leads", both(6, |_| 3, |now| now)),
            ("the asker leads a later epoch", both(6, |own| own, |now| now + 1)),
            ("the end of epochs", both(6, |_| 3, |_| i32::MAX)),
            ("top-level INVALID_REQUEST", top(42)),
            ("top-level CLUSTER_AUTHORIZATION_FAILED", top(31)),
            ("top-level INCONSISTENT_CLUSTER_ID", top(104)),
            ("an empty body", Box::new(|_| Answer::Raw(Vec::new()))),
            ("rubbish", Box::new(|_| Answer::Raw(vec![0xff; 80]))),
            ("a closed connection", Box::new(|_| Answer::Close)),
        ];
        for (name, hazard) in hazards {
            fake.answer(hazard);
            fake.take_asked();
            let start = std::time::Instant::now();
            let (leader, token) = pair.leader().await;
            pair.commit().await;
            leader.node.handle().resign(&token).await;
            // The next leader announces itself, at the latest after half a fetch timeout.
            let mut asked = Vec::new();
            while !asked.iter().any(|request| matches!(request, Request::BeginQuorumEpoch(_))) {
                pair.commit().await;
                asked.extend(fake.take_asked());
                assert!(start.elapsed() < Duration::from_secs(30), "{name}: never announced");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            asked.extend(fake.take_asked());
            let per_second = asked.len() as f64 / start.elapsed().as_secs_f64();
            assert!(per_second < 300.0, "{name}: {per_second} requests a second");
            pair.commit().await;
        }
        // A leader that resigns tells this voter too, unless another has won before it could be reached.
        fake.answer(both(0, |own| own, |now| now));
        let told = |request: &Request| matches!(request, Request::EndQuorumEpoch(_));
        let mut resignations = 0;
        while !fake.take_asked().iter().any(told) {
            let (leader, token) = pair.leader().await;
            leader.node.handle().resign(&token).await;
            pair.commit().await;
            resignations += 1;
            assert!(resignations < 50, "EndQuorumEpoch is never asked");
        }
    });
}
