//! Section 10 from our side: everything that two nodes send to a third voter, through elections, resignations and a log that
//! grows, is looked at message by message.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use quorate_core::message::{
    BeginQuorumEpochRequest, CurrentLeader, EndQuorumEpochRequest, ErrorCode, FetchSnapshotRequest,
    QuorumEpochResponse, Request, Response, VoteRequest, VoteResponse,
};
use quorate_core::{Endpoint, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey};
use quorate_rpc::client::decode_answer;
use quorate_wire::Uuid;
use quorate_wire::batch::batches;
use quorate_wire::frame::encode_request;
use quorate_wire::message as wire;
use quorate_wire::message::ApiKey;

use crate::fake::{Answer, Asker, CLUSTER, Fake};
use crate::nodes::{Pair, endpoints, listener, run};

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
            // Item 7: there is nobody whose snapshot it could use.
            Request::FetchSnapshot(_) | Request::DescribeQuorum | Request::DescribeReplica => {
                panic!("a node asks {request:?}")
            }
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
    /// The highest that any leader said.
    high_watermark: i64,
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
        // A leader that does not know it yet says -1, which is ignored.
        let known = partition.high_watermark;
        assert!(known == -1 || known >= self.high_watermark, "a high watermark that falls");
        self.high_watermark = self.high_watermark.max(known);
        self.take(records);
    }

    /// Well-formed requests besides Fetch. The leader is announced again, and an older one resigns, as late duplicates do.
    fn asks(&self, own: NodeId, pair: &Pair, seen: &Seen) -> Vec<Request> {
        let epoch = Epoch(self.epoch);
        let log_end = OffsetAndEpoch::new(Offset(self.offset), Epoch(self.last_epoch));
        let replica = ReplicaKey::new(NodeId(ME), None);
        let vote = VoteRequest { voter: None, replica, epoch, log_end, pre_vote: true };
        let snapshot = FetchSnapshotRequest {
            replica,
            epoch,
            snapshot: OffsetAndEpoch::new(Offset(0), Epoch(0)),
            position: 0,
            max_bytes: 1000,
        };
        let mut asks = vec![Request::Vote(vote), Request::FetchSnapshot(snapshot)];
        let port = |leader: NodeId| pair.nodes[usize::try_from(leader.0 - 1).unwrap()].port;
        for (then, leader) in seen.leaders.iter().filter(|(_, leader)| **leader != own) {
            let (epoch, leader, endpoints) = (*then, *leader, endpoints(port(*leader)));
            asks.push(if epoch.0 < self.epoch {
                let preferred_candidates = vec![replica];
                Request::EndQuorumEpoch(EndQuorumEpochRequest {
                    leader,
                    epoch,
                    preferred_candidates,
                    endpoints,
                })
            } else {
                let voter = None;
                Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
                    voter,
                    leader,
                    epoch,
                    endpoints,
                })
            });
        }
        asks
    }

    fn take(&mut self, records: Bytes) {
        for batch in batches(records) {
            let batch = batch.expect("whole batches alone");
            batch.raft_check().expect("what Java's reader takes");
            let plain = batch.header().attributes & !0x20 == 0;
            assert!(plain && batch.header().producer_id == -1, "{:?}", batch.header());
            for record in batch.records().expect("not compressed") {
                // Item 9: key version 0, LeaderChange, and schema 0, which the value's first field repeats.
                let record = record.expect("it decodes");
                let value = record.value.expect("a value");
                assert!(!batch.is_control() || record.key == Some(&[0, 0, 0, 2]));
                assert!(!batch.is_control() || value.starts_with(&[0, 0]), "{value:?}");
            }
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
        let mut follower = Follower { offset: 0, last_epoch: 0, epoch: 0, high_watermark: -1 };
        for round in 0..12 {
            let (leader, token) = pair.leader().await;
            for _ in 0..20 {
                pair.commit().await;
                follower.fetch(leader.port, &mut seen).await;
            }
            for running in &pair.nodes {
                for _ in 0..10 {
                    follower.fetch(running.port, &mut seen).await;
                }
                let own = running.describe().await.key.id;
                for request in follower.asks(own, &pair, &seen) {
                    ask(running.port, &request, &mut seen).await;
                }
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

/// Asks, and looks at the answer.
async fn ask(port: u16, request: &Request, seen: &mut Seen) {
    let epoch = match request {
        Request::Vote(request) => request.epoch,
        Request::BeginQuorumEpoch(request) => request.epoch,
        Request::EndQuorumEpoch(request) => request.epoch,
        Request::FetchSnapshot(request) => request.epoch,
        other => panic!("{other:?}"),
    };
    match Asker::connect(port).await.ask(request).await {
        Some(Ok(Response::Vote(answer))) => seen.answer(answer.error, &answer.current, epoch),
        Some(Ok(Response::BeginQuorumEpoch(answer) | Response::EndQuorumEpoch(answer))) => {
            seen.answer(answer.error, &answer.current, epoch);
        }
        // Item 7: no answer has an id or a position that differs from the asked one, and none has bytes.
        Some(Ok(Response::FetchSnapshot(answer))) => {
            let expected = [ErrorCode::SNAPSHOT_NOT_FOUND, ErrorCode::NOT_LEADER_OR_FOLLOWER];
            assert!(expected.contains(&answer.error) || answer.current.epoch > epoch);
            seen.answer(ErrorCode::NONE, &answer.current, epoch);
        }
        other => panic!("{request:?}: {other:?}"),
    }
}
