//! A fake voter that asks hazards: items 3 to 5, 8, 13 and 17.

use quorate_core::message::{
    BeginQuorumEpochRequest, CurrentLeader, EndQuorumEpochRequest, ErrorCode, FetchRequest,
    FetchSnapshotRequest, FetcherHighWatermark, Received, Request, Response, VoteRequest,
};
use quorate_core::{Endpoints, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey};

use quorate_wire::frame::encode_request;
use quorate_wire::message as wire;

use crate::fake::{Answer, Asker, Fake};
use crate::nodes::{Pair, Running, endpoints, run};

fn vote(replica: i32, epoch: i32, offset: i64, last: i32, pre_vote: bool) -> Request {
    Request::Vote(VoteRequest {
        voter: None,
        replica: ReplicaKey::new(NodeId(replica), None),
        epoch: Epoch(epoch),
        log_end: OffsetAndEpoch::new(Offset(offset), Epoch(last)),
        pre_vote,
    })
}

fn begin(leader: i32, epoch: i32, endpoints: Endpoints) -> Request {
    let (leader, epoch) = (NodeId(leader), Epoch(epoch));
    Request::BeginQuorumEpoch(BeginQuorumEpochRequest { voter: None, leader, epoch, endpoints })
}

fn end(leader: i32, epoch: i32) -> Request {
    Request::EndQuorumEpoch(EndQuorumEpochRequest {
        leader: NodeId(leader),
        epoch: Epoch(epoch),
        preferred_candidates: Vec::new(),
        endpoints: endpoints(9),
    })
}

fn fetch(replica: i32, epoch: i32, offset: i64, last: i32, wait: i32, bytes: i32) -> Request {
    Request::Fetch(FetchRequest {
        replica: ReplicaKey::new(NodeId(replica), None),
        epoch: Epoch(epoch),
        offset: Offset(offset),
        last_fetched_epoch: Epoch(last),
        max_wait_ms: wait,
        max_bytes: bytes,
        high_watermark: FetcherHighWatermark::Unsaid,
    })
}

fn fetch_snapshot(replica: i32, offset: i64, epoch: i32, position: i64) -> Request {
    Request::FetchSnapshot(FetchSnapshotRequest {
        replica: ReplicaKey::new(NodeId(replica), None),
        epoch: Epoch(1),
        snapshot: OffsetAndEpoch::new(Offset(offset), Epoch(epoch)),
        position,
        max_bytes: 1000,
    })
}

/// The error of an answer, at either level; NONE for a vote that is not granted is no error.
fn is_refused(response: &Response<Received>) -> bool {
    match response {
        Response::Vote(answer) => !answer.granted,
        Response::BeginQuorumEpoch(answer) | Response::EndQuorumEpoch(answer) => {
            answer.error != ErrorCode::NONE
        }
        Response::Fetch(answer) => answer.error != ErrorCode::NONE,
        Response::FetchSnapshot(answer) => answer.error != ErrorCode::NONE,
        Response::TopLevel(_) => true,
        _ => false,
    }
}

/// Whom an answer names as leader.
fn current(response: &Response<Received>) -> CurrentLeader {
    match response {
        Response::Vote(answer) => answer.current.clone(),
        Response::BeginQuorumEpoch(answer) => answer.current.clone(),
        Response::Fetch(answer) => answer.current.clone(),
        other => panic!("{other:?}"),
    }
}

/// A voter 3 that votes for nobody and follows nobody.
async fn silent_voter() -> Fake {
    Fake::start(|_| Answer::Close).await
}

#[test]
fn each_is_refused_and_changes_nothing() {
    run(async {
        let fake = silent_voter().await;
        let pair = Pair::start(fake.port);
        pair.commit().await;
        let last = i32::MAX;
        for target in &pair.nodes {
            let (leader, token) = pair.leader().await;
            let own = target.describe().await.key.id.0;
            let (leader, epoch) = (leader.describe().await.key.id.0, token.epoch().0);
            let is_leader = own == leader;
            let mut hazards = vec![
                ("a vote for the receiver itself", vote(own, epoch + 1, 1000, epoch, false)),
                ("a pre-vote for the receiver itself", vote(own, epoch, 1000, epoch, true)),
                ("a vote at the end of epochs", vote(3, last, 1000, epoch, false)),
                ("a pre-vote at the end of epochs", vote(3, last, 1000, epoch, true)),
                ("a vote near the end of epochs", vote(3, last - 1, 1000, epoch, false)),
                ("a vote of nobody", vote(-1, epoch + 1, 1000, epoch, false)),
                ("a vote with a negative offset", vote(3, epoch + 1, -1, epoch, false)),
                ("a vote with a negative epoch", vote(3, epoch + 1, 1000, -1, false)),
                ("a vote whose log is of its epoch", vote(3, epoch + 1, 1000, epoch + 1, false)),
                ("a vote whose log is of a later epoch", vote(3, epoch, 1000, epoch + 5, true)),
                ("a vote of a negative epoch", vote(3, -5, 1000, -7, false)),
                ("another leader of the epoch", begin(3, epoch, endpoints(fake.port))),
                ("an unknown leader of the epoch", begin(7, epoch, endpoints(fake.port))),
                ("one without endpoints", begin(7, epoch, Endpoints::new())),
                ("a leader at the end of epochs", begin(3, last, endpoints(fake.port))),
                ("a leader with a negative id", begin(-1, epoch + 1, endpoints(fake.port))),
                ("the end of another leader's epoch", end(3, epoch)),
                ("the end of an unknown leader's epoch", end(7, epoch)),
                ("the end of epochs", end(3, last)),
                ("the receiver leads", begin(own, epoch + 1, endpoints(9))),
                ("the receiver resigned", end(own, epoch + 1)),
                ("a Fetch of a negative offset", fetch(3, epoch, -1, epoch, 0, 1000)),
                ("a Fetch of a negative last epoch", fetch(3, epoch, 0, -1, 0, 1000)),
                ("a Fetch whose log is of a later epoch", fetch(3, epoch, 0, epoch + 1, 0, 1000)),
                ("a Fetch that waits a negative time", fetch(3, epoch, 0, 0, -1, 1000)),
                ("a Fetch of a later epoch", fetch(3, epoch + 1, 0, 0, 0, 1000)),
                ("a Fetch at the end of epochs", fetch(3, last, 0, 0, 0, 1000)),
                ("a Fetch of the receiver's own", fetch(own, epoch, 0, 0, 0, 1000)),
                ("a snapshot of nowhere", fetch_snapshot(3, i64::MAX, last, 0)),
                ("a snapshot from a negative position", fetch_snapshot(3, 0, 0, -1)),
                ("a snapshot for the receiver itself", fetch_snapshot(own, 0, 0, 0)),
            ];
            if !is_leader {
                hazards.push(("the receiver leads this epoch", begin(own, epoch, endpoints(9))));
                hazards.push(("the receiver resigned this epoch", end(own, epoch)));
            }
            for (name, request) in hazards {
                let before = state(target).await;
                let answer = Asker::connect(target.port).await.ask(&request).await;
                let refused = match &answer {
                    None | Some(Err(_)) => true,
                    Some(Ok(response)) => is_refused(response),
                };
                assert!(refused, "{name}, to node {own}: {answer:?}");
                assert_eq!(state(target).await, before, "{name}, to node {own}");
                let committed = pair.commit().await;
                assert!(committed > Offset(0), "{name}");
            }
        }
    });
}

/// What no refused request changes. The log grows all the while.
async fn state(running: &Running) -> (&'static str, Epoch, Option<NodeId>, Option<ReplicaKey>) {
    let now = running.describe().await;
    (now.role, now.epoch, now.leader, now.voted)
}

/// Fetches of offsets that no log has are answered or parked, and acknowledge nothing.
#[test]
fn a_fetch_from_beyond_the_end_acknowledges_nothing() {
    run(async {
        let fake = silent_voter().await;
        let pair = Pair::start(fake.port);
        pair.commit().await;
        let (leader, token) = pair.leader().await;
        let epoch = token.epoch().0;
        for offset in [1000, i64::MAX - 1, i64::MAX] {
            let request = fetch(3, epoch, offset, epoch, 100, i32::MAX);
            let answer = Asker::connect(leader.port).await.ask(&request).await;
            assert!(matches!(answer, Some(Ok(Response::Fetch(_)))), "{offset}: {answer:?}");
            let now = leader.describe().await;
            assert!(now.high_watermark <= Some(now.log_end.offset), "{offset}");
        }
        let committed = pair.commit().await;
        assert!(committed < Offset(100), "{committed:?}");
    });
}

/// Item 3, by a request: a leader of a higher epoch that nobody can reach. Who was told of it tells nobody else without an
/// endpoint, and the others elect one of theirs.
#[test]
fn a_leader_of_a_higher_epoch_whom_nobody_can_reach() {
    run(async {
        let fake = silent_voter().await;
        let pair = Pair::start(fake.port);
        pair.commit().await;
        for endpoints in [
            Endpoints::new(),
            Endpoints::from([(
                quorate_core::ListenerName::new("OTHER"),
                quorate_core::Endpoint::new("127.0.0.1", 9),
            )]),
            endpoints(9),
        ] {
            let (_, token) = pair.leader().await;
            for target in &pair.nodes {
                let epoch = token.epoch().0 + 1;
                let request = begin(7, epoch, endpoints.clone());
                for request in [request, vote(3, epoch, 0, 0, true), fetch(3, epoch, 0, 0, 0, 1000)]
                {
                    let answer = Asker::connect(target.port).await.ask(&request).await;
                    let current = current(&answer.expect("an answer").expect("it decodes"));
                    assert!(
                        current.epoch >= Epoch(epoch)
                            && current.leader.is_none_or(|leader| {
                                current.endpoint.is_some() || leader.0 <= 3
                            }),
                        "{endpoints:?}: {current:?}"
                    );
                }
            }
            pair.commit().await;
        }
    });
}

/// Changes of the voter set are not served yet: each costs its connection, as ApiVersions says, and nothing else.
#[test]
fn changes_of_the_voter_set() {
    run(async {
        let fake = silent_voter().await;
        let pair = Pair::start(fake.port);
        pair.commit().await;
        let (_, token) = pair.leader().await;
        let add = wire::AddRaftVoterRequest { voter_id: 4, ..Default::default() };
        let remove = wire::RemoveRaftVoterRequest { voter_id: 3, ..Default::default() };
        let update = wire::UpdateRaftVoterRequest {
            current_leader_epoch: token.epoch().0,
            voter_id: 3,
            ..Default::default()
        };
        let frames = [
            encode_request(1, 7, "fake", &add),
            encode_request(0, 7, "fake", &remove),
            encode_request(0, 7, "fake", &update),
        ];
        for target in &pair.nodes {
            for frame in &frames {
                let frame = frame.as_ref().expect("it encodes").concat();
                let before = state(target).await;
                assert_eq!(Asker::connect(target.port).await.exchange(&frame).await, None);
                assert_eq!(state(target).await, before);
                pair.commit().await;
            }
        }
    });
}
