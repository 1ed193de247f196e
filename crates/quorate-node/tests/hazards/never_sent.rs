//! Section 10 from our side: everything that two nodes send to a third voter, through elections, resignations and a log that
//! grows, is looked at message by message.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use quorate_core::message::{
    CurrentLeader, ErrorCode, QuorumEpochResponse, Request, Response, VoteRequest, VoteResponse,
};
use quorate_core::{Endpoint, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey};
use quorate_rpc::client::decode_answer;
use quorate_wire::Uuid;
use quorate_wire::batch::batches;
use quorate_wire::frame::encode_request;
use quorate_wire::message as wire;
use quorate_wire::message::ApiKey;

use crate::fake::{Answer, Asker, CLUSTER, Fake};
use crate::nodes::{Pair, listener, run};

/// The voter that everything is sent to.
const ME: i32 = 3;

/// What must be the same in all messages.
#[derive(Default)]
struct Seen {
    leaders: BTreeMap<Epoch, NodeId>,
    votes: usize,
    begins: usize,
    ends: usize,
    fetches: usize,
}

impl Seen {
    /// Item 4: one leader an epoch, and never the one who asks. Item 17: no epoch near the end.
    fn leader(&mut self, epoch: Epoch, leader: NodeId) {
        assert!(leader != NodeId(ME) && leader.is_replica(), "names {leader:?} as leader");
        assert!((1..=Epoch::MAX.0).contains(&epoch.0), "a leader of epoch {epoch}");
        assert_eq!(*self.leaders.entry(epoch).or_insert(leader), leader, "two leaders of {epoch}");
    }

    fn request(&mut self, request: &Request) {
        match request {
            Request::Vote(vote) => {
                self.votes += 1;
                // Item 5.
                assert!(vote.replica.id != NodeId(ME));
                assert!(vote.voter.is_none_or(|voter| voter.id == NodeId(ME)));
                assert!(vote.log_end.offset.0 >= 0 && vote.log_end.epoch.0 >= 0);
                assert!(vote.log_end.epoch.0 + i32::from(!vote.pre_vote) <= vote.epoch.0);
                assert!((0..=Epoch::MAX.0).contains(&vote.epoch.0));
            }
            // Item 3: at the receiver's default listener.
            Request::BeginQuorumEpoch(begin) => {
                self.begins += 1;
                self.leader(begin.epoch, begin.leader);
                assert!(begin.endpoints.get(&listener()).is_some_and(|at| at.port != 0));
            }
            Request::EndQuorumEpoch(end) => {
                self.ends += 1;
                self.leader(end.epoch, end.leader);
                assert!(end.endpoints.get(&listener()).is_some_and(|at| at.port != 0));
            }
            // Item 8.
            Request::Fetch(fetch) => {
                self.fetches += 1;
                assert!(fetch.replica.id != NodeId(ME) && fetch.max_wait_ms >= 0);
                assert!(fetch.offset.0 >= 0 && fetch.last_fetched_epoch <= fetch.epoch);
            }
            Request::FetchSnapshot(fetch) => {
                assert!(fetch.replica.id != NodeId(ME) && fetch.position >= 0);
            }
            Request::DescribeQuorum | Request::DescribeReplica => panic!("a node asks {request:?}"),
        }
    }

    /// Items 1 to 4, 14 and 15, in the answer to a well-formed request of this epoch.
    fn answer(&mut self, error: ErrorCode, current: &CurrentLeader, asked: Epoch) {
        let usual = [
            ErrorCode::NONE,
            ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ErrorCode::FENCED_LEADER_EPOCH,
            ErrorCode::UNKNOWN_LEADER_EPOCH,
        ];
        assert!(usual.contains(&error), "answers {error:?}");
        // An epoch below the asked one would be asked again at once: only a Fetch of an epoch to come gets it.
        assert!(current.epoch >= asked || error == ErrorCode::UNKNOWN_LEADER_EPOCH);
        if let Some(leader) = current.leader {
            self.leader(current.epoch, leader);
            assert!(
                current.endpoint.as_ref().is_some_and(|at| at.port != 0),
                "{leader} is nowhere"
            );
        }
    }
}

/// The asking voter's own log, as far as the checks need it.
struct Follower {
    offset: i64,
    last_epoch: i32,
    epoch: i32,
    high_watermark: BTreeMap<i32, i64>,
}

impl Follower {
    /// Fetches once from a node, and looks at every field of the answer. Items 6, 10 and 14.
    async fn fetch(&mut self, port: u16, seen: &mut Seen) {
        let request = wire::FetchRequest {
            cluster_id: Some(CLUSTER.to_owned()),
            replica_state: wire::FetchReplicaState { replica_id: ME, ..Default::default() },
            max_wait_ms: 20,
            max_bytes: 4000,
            topics: vec![wire::FetchTopic {
                topic_id: Uuid::METADATA_TOPIC,
                partitions: vec![wire::FetchPartition {
                    current_leader_epoch: self.epoch,
                    fetch_offset: self.offset,
                    last_fetched_epoch: self.last_epoch,
                    high_watermark: -1,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let bytes = encode_request(18, 1, "fake", &request).unwrap().concat();
        let frame = Asker::connect(port).await.exchange(&bytes).await.expect("an answer");
        let answer: wire::FetchResponse = decode_answer(ApiKey::Fetch, 18, frame).unwrap();
        assert_eq!(answer.error_code, 0);
        let [topic] = answer.responses.as_slice() else { panic!("one topic: {answer:?}") };
        let [partition] = topic.partitions.as_slice() else { panic!("one partition: {answer:?}") };
        assert!(topic.topic_id == Uuid::METADATA_TOPIC && partition.partition_index == 0);
        let current = &partition.current_leader;
        assert!(current.leader_epoch >= 0, "an epoch is said: {partition:?}");
        let node = answer.node_endpoints.iter().find(|node| node.node_id == current.leader_id);
        let current = CurrentLeader {
            epoch: Epoch(current.leader_epoch),
            leader: (current.leader_id >= 0).then_some(NodeId(current.leader_id)),
            endpoint: node.map(|node| Endpoint::new(&node.host, u16::try_from(node.port).unwrap())),
        };
        seen.answer(ErrorCode(partition.error_code), &current, Epoch(self.epoch));
        let records = partition.records.clone().expect("records are never null").into_bytes();
        self.epoch = self.epoch.max(current.epoch.0);
        if partition.error_code != 0 {
            assert!(records.is_empty() && partition.diverging_epoch.epoch < 0);
            return;
        }
        let diverging = &partition.diverging_epoch;
        if diverging.epoch >= 0 {
            assert!((0..self.offset).contains(&diverging.end_offset), "cuts: {diverging:?}");
            assert!(records.is_empty());
            (self.offset, self.last_epoch) = (0, 0);
            return;
        }
        let known = self.high_watermark.entry(current.epoch.0).or_insert(-1);
        assert!(partition.high_watermark >= *known, "a high watermark that falls");
        *known = partition.high_watermark;
        self.take(records);
    }

    fn take(&mut self, records: Bytes) {
        for batch in batches(records) {
            let batch = batch.expect("whole batches alone");
            batch.raft_check().expect("what Java's reader takes");
            assert_eq!(batch.base_offset(), self.offset, "no gap, nothing below the offset");
            assert!(batch.leader_epoch() >= self.last_epoch.max(1));
            assert!(batch.leader_epoch() <= self.epoch);
            (self.offset, self.last_epoch) = (batch.end_offset(), batch.leader_epoch());
        }
    }
}

#[test]
fn what_a_third_voter_sees() {
    run(async {
        // A voter that grants votes and takes note of leaders.
        let fake = Fake::start(|request| {
            let current = |epoch, leader| CurrentLeader {
                epoch,
                leader,
                endpoint: Some(Endpoint::new("127.0.0.1", 9)),
            };
            let response = match request {
                Request::Vote(vote) => Response::Vote(VoteResponse {
                    error: ErrorCode::NONE,
                    current: CurrentLeader { epoch: vote.epoch, leader: None, endpoint: None },
                    granted: true,
                }),
                Request::BeginQuorumEpoch(begin) => {
                    Response::BeginQuorumEpoch(QuorumEpochResponse {
                        error: ErrorCode::NONE,
                        current: current(begin.epoch, Some(begin.leader)),
                    })
                }
                Request::EndQuorumEpoch(end) => Response::EndQuorumEpoch(QuorumEpochResponse {
                    error: ErrorCode::NONE,
                    current: current(end.epoch, Some(end.leader)),
                }),
                _ => Response::TopLevel(ErrorCode::UNKNOWN_SERVER_ERROR),
            };
            Answer::Say(response, Vec::new())
        })
        .await;
        let pair = Pair::start(fake.port);
        let mut seen = Seen::default();
        let mut follower =
            Follower { offset: 0, last_epoch: 0, epoch: 0, high_watermark: BTreeMap::new() };
        for round in 0..12 {
            let (leader, token) = pair.leader().await;
            for _ in 0..20 {
                pair.commit().await;
            }
            for running in &pair.nodes {
                for _ in 0..10 {
                    follower.fetch(running.port, &mut seen).await;
                }
                pre_vote(running.port, &follower, &mut seen).await;
            }
            assert!(follower.offset > 20 * round, "it follows: {}", follower.offset);
            match round % 4 {
                // It pretends to have more, or other epochs, and is told where the logs part.
                1 => follower.offset += 500,
                2 => follower.last_epoch = (follower.last_epoch - 1).max(0),
                _ => leader.node.handle().resign(&token).await,
            }
            if round % 4 == 1 || round % 4 == 2 {
                let before = follower.offset;
                follower.fetch(leader.port, &mut seen).await;
                assert!(follower.offset < before, "told where the logs part");
            }
            tokio::time::sleep(Duration::from_millis(700)).await;
            for request in fake.take_asked() {
                seen.request(&request);
            }
        }
        let Seen { leaders, votes, begins, ends, .. } = seen;
        assert!(leaders.len() >= 4 && votes >= 4 && begins >= 4 && ends >= 4);
    });
}

async fn pre_vote(port: u16, follower: &Follower, seen: &mut Seen) {
    let request = Request::Vote(VoteRequest {
        voter: None,
        replica: ReplicaKey::new(NodeId(ME), None),
        epoch: Epoch(follower.epoch),
        log_end: OffsetAndEpoch::new(Offset(follower.offset), Epoch(follower.last_epoch)),
        pre_vote: true,
    });
    match Asker::connect(port).await.ask(&request).await {
        Some(Ok(Response::Vote(answer))) => {
            seen.answer(answer.error, &answer.current, Epoch(follower.epoch));
        }
        other => panic!("{other:?}"),
    }
}
