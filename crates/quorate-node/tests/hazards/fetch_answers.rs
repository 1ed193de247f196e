//! A leader whose answers to Fetch are hazards: items 1 to 4, 6, 7, 9, 10 and 12 to 15.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_core::message::{
    BeginQuorumEpochRequest, CurrentLeader, ErrorCode, FetchOutcome, FetchRequest, FetchResponse,
    LogRange, Request, Response,
};
use quorate_core::{Endpoint, Epoch, NodeId, Offset};
use quorate_wire::batch::{Batch, encode_control, encode_data};
use quorate_wire::control::{ControlRecord, KRaftVersionRecord, LeaderChangeMessage};
use quorate_wire::message as wire;
use quorate_wire::{Message as _, Records, Uuid};

use crate::fake::{Answer, Asker, Fake};
use crate::nodes::{Running, endpoints, free_port, run, start};

const EPOCH: i32 = 5;
const LEADER: i32 = 2;
/// How long nothing is to happen.
const WINDOW: Duration = Duration::from_millis(300);

/// The leader's log: batches from offset 0 on.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(i64, Bytes)>>>);

impl Log {
    fn end(&self) -> i64 {
        i64::try_from(self.0.lock().unwrap().len()).unwrap()
    }

    /// One record, one batch.
    fn add(&self) {
        let mut batches = self.0.lock().unwrap();
        let base = i64::try_from(batches.len()).unwrap();
        let batch = match base {
            0 => control(0, EPOCH, leader_change()),
            _ => data(base, EPOCH),
        };
        batches.push((base, batch));
    }

    fn from(&self, offset: i64) -> Vec<Bytes> {
        let batches = self.0.lock().unwrap();
        batches.iter().filter(|(base, _)| *base >= offset).map(|(_, batch)| batch.clone()).collect()
    }
}

fn leader_change() -> ControlRecord {
    ControlRecord::LeaderChange(LeaderChangeMessage { leader_id: LEADER, ..Default::default() })
}

fn data(base: i64, epoch: i32) -> Bytes {
    encode_data(base, epoch, 1, &[Bytes::from_static(b"a record")])
}

fn control(base: i64, epoch: i32, record: ControlRecord) -> Bytes {
    encode_control(base, epoch, 1, &[record]).unwrap()
}

/// A control batch whose key or value is not what the builder would write; the CRC is right.
fn odd_control(base: i64, key: &[u8], value: Option<&[u8]>) -> Bytes {
    let mut record = vec![0, 0, 0];
    let zigzag = |len: usize| u8::try_from(2 * len).unwrap();
    record.push(zigzag(key.len()));
    record.extend_from_slice(key);
    match value {
        None => record.push(1),
        Some(value) => {
            record.push(zigzag(value.len()));
            record.extend_from_slice(value);
        }
    }
    record.push(0);
    let mut batch = control(base, EPOCH, leader_change()).to_vec();
    batch.truncate(61);
    batch.push(zigzag(record.len()));
    batch.extend_from_slice(&record);
    seal(batch)
}

/// Length and CRC to match the content.
fn seal(mut batch: Vec<u8>) -> Bytes {
    let len = i32::try_from(batch.len() - 12).unwrap();
    batch[8..12].copy_from_slice(&len.to_be_bytes());
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch.into()
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}

/// A batch with some bytes replaced, and sealed again.
fn patched(base: i64, at: usize, bytes: &[u8]) -> Bytes {
    let mut batch = data(base, EPOCH).to_vec();
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    seal(batch)
}

struct Follower {
    victim: Running,
    leader: Fake,
    log: Log,
}

impl Follower {
    /// A node that follows a fake leader and has four committed records of it.
    async fn start() -> Follower {
        let log = Log::default();
        let leader = Fake::start(|_| Answer::Close).await;
        let voters = [(1, free_port()), (LEADER, leader.port), (3, free_port())];
        // It never campaigns on its own within this test.
        let minute = Duration::from_secs(60);
        let victim = start(1, &voters, minute, minute);
        let mut follower = Follower { victim, leader, log };
        for _ in 0..4 {
            follower.log.add();
        }
        follower.behave();
        let begin = Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
            voter: None,
            leader: NodeId(LEADER),
            epoch: Epoch(EPOCH),
            endpoints: endpoints(follower.leader.port),
        });
        let answer = Asker::connect(follower.victim.port).await.ask(&begin).await;
        assert!(matches!(answer, Some(Ok(Response::BeginQuorumEpoch(_)))), "{answer:?}");
        follower.catches_up().await;
        follower
    }

    fn behave(&mut self) {
        let (log, port) = (self.log.clone(), self.leader.port);
        self.leader.answer(move |request| {
            let Request::Fetch(request) = request else { return Answer::Close };
            let response = Response::Fetch(good(&log, port, request));
            let records = log.from(request.offset.0);
            match records.is_empty() {
                true => Answer::Later(Duration::from_millis(30), response, records),
                false => Answer::Say(response, records),
            }
        });
    }

    async fn catches_up(&self) {
        let end = Offset(self.log.end());
        self.victim
            .wait_for("it follows a good leader", |now| {
                now.role == "follower"
                    && now.log_end.offset == end
                    && now.high_watermark == Some(end)
            })
            .await;
    }

    /// The leader answers so for a while, and then well again.
    async fn meets(
        &mut self,
        name: &str,
        hazard: impl Fn(&FetchRequest) -> Answer + Send + 'static,
    ) {
        let before = self.victim.describe().await;
        self.leader.answer(move |request| match request {
            Request::Fetch(request) => hazard(request),
            _ => Answer::Close,
        });
        // An answer of before may be on its way.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let asked = self.leader.is_asked_with_pauses(name).await;
        assert!(asked.iter().all(|request| matches!(request, Request::Fetch(_))), "{name}");
        let after = self.victim.describe().await;
        let state = |now: &quorate_core::message::ReplicaDescription| {
            (now.role, now.epoch, now.leader, now.log_end, now.high_watermark, now.kraft_version)
        };
        assert_eq!(state(&after), state(&before), "{name}");
        assert_eq!(after.integrity_fault, None, "{name}");
        self.log.add();
        self.behave();
        self.catches_up().await;
    }

    /// An empty answer of this leader, to be made odd.
    fn odd(
        &self,
        change: impl Fn(&mut wire::FetchResponse, i64) + Send + 'static,
    ) -> impl Fn(&FetchRequest) -> Answer + Send + 'static {
        let port = self.leader.port;
        move |request| {
            let end = request.offset.0;
            let mut answer = wire::FetchResponse {
                responses: vec![wire::FetchableTopicResponse {
                    topic_id: Uuid::METADATA_TOPIC,
                    partitions: vec![wire::FetchPartitionData {
                        high_watermark: end,
                        log_start_offset: 0,
                        current_leader: current(LEADER, EPOCH),
                        records: Some(Records::default()),
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                node_endpoints: vec![node(LEADER, port), node(3, port), node(1, port)],
                ..Default::default()
            };
            change(&mut answer, end);
            Answer::Fetch(answer)
        }
    }

    async fn meets_odd(
        &mut self,
        name: &str,
        change: impl Fn(&mut wire::FetchPartitionData, i64) + Send + 'static,
    ) {
        let hazard =
            self.odd(move |answer, end| change(&mut answer.responses[0].partitions[0], end));
        self.meets(name, hazard).await;
    }
}

fn current(leader_id: i32, leader_epoch: i32) -> wire::LeaderIdAndEpoch {
    wire::LeaderIdAndEpoch { leader_id, leader_epoch, ..Default::default() }
}

fn node(node_id: i32, port: u16) -> wire::FetchNodeEndpoint {
    let host = "127.0.0.1".to_owned();
    wire::FetchNodeEndpoint { node_id, host, port: port.into(), ..Default::default() }
}

fn good(log: &Log, port: u16, request: &FetchRequest) -> FetchResponse<LogRange> {
    FetchResponse {
        error: ErrorCode::NONE,
        current: CurrentLeader {
            epoch: Epoch(EPOCH),
            leader: Some(NodeId(LEADER)),
            endpoint: Some(Endpoint::new("127.0.0.1", port)),
        },
        high_watermark: Some(Offset(log.end())),
        log_start: Some(Offset(0)),
        outcome: FetchOutcome::Records(LogRange {
            from: request.offset,
            to: request.offset,
            max_bytes: 1,
            generation: 0,
        }),
    }
}

/// Items 1, 2, 13 and 15.
#[test]
fn errors() {
    run(async {
        let mut follower = Follower::start().await;
        for error in [42, -1, 1, 3, 8, 999, 6, 74, 75, 125] {
            let name = format!("partition error {error}");
            follower.meets_odd(&name, move |partition, _| partition.error_code = error).await;
        }
        for error in [42, 31, 104, -1, 35, 999] {
            let hazard = follower.odd(move |answer, _| {
                answer.error_code = error;
                answer.responses.clear();
            });
            follower.meets(&format!("top-level error {error}"), hazard).await;
        }
        type Change = fn(&mut wire::FetchResponse);
        let topics: [(&str, Change); 5] = [
            ("no topic", |answer| answer.responses.clear()),
            ("two topics", |answer| answer.responses.push(answer.responses[0].clone())),
            ("another topic", |answer| answer.responses[0].topic_id = Uuid([9; 16])),
            ("no partition", |answer| answer.responses[0].partitions.clear()),
            ("another partition", |answer| answer.responses[0].partitions[0].partition_index = 1),
        ];
        for (name, change) in topics {
            let hazard = follower.odd(move |answer, _| change(answer));
            follower.meets(name, hazard).await;
        }
        follower.meets("a closed connection", |_| Answer::Close).await;
    });
}

/// Items 3, 4, 14, 15 and 17.
#[test]
fn leaders() {
    run(async {
        let mut follower = Follower::start().await;
        // (what, leader, epoch, error)
        for (name, leader, epoch, error) in [
            ("another leader of the epoch", 3, EPOCH, 6),
            ("another leader of the epoch, no error", 3, EPOCH, 0),
            ("an unknown leader of the epoch", 7, EPOCH, 6),
            ("the follower itself", 1, EPOCH, 6),
            ("the follower itself, no error", 1, EPOCH, 0),
            ("the follower itself, of the next epoch", 1, EPOCH + 1, 6),
            ("the end of epochs", LEADER, i32::MAX, 6),
            ("the end of epochs, no error", 3, i32::MAX, 0),
            ("an older epoch", LEADER, EPOCH - 1, 0),
            ("an older epoch without a leader", -1, 0, 6),
            ("no leader, no epoch", -1, -1, 0),
            ("no leader", -1, EPOCH, 6),
        ] {
            follower
                .meets_odd(name, move |partition, _| {
                    partition.current_leader = current(leader, epoch);
                    partition.error_code = error;
                })
                .await;
        }
        let hazard = follower.odd(|answer, _| answer.node_endpoints.clear());
        follower.meets("no endpoints", hazard).await;
    });
}

/// Items 6 and 7.
#[test]
fn offsets() {
    run(async {
        let mut follower = Follower::start().await;
        let diverging =
            |epoch, end_offset| wire::EpochEndOffset { epoch, end_offset, ..Default::default() };
        let snapshot =
            |end_offset, epoch| wire::SnapshotId { end_offset, epoch, ..Default::default() };
        follower.meets_odd("nothing, at once", |_, _| {}).await;
        follower.meets_odd("a lower high watermark", |p, _| p.high_watermark = 1).await;
        follower.meets_odd("no high watermark", |p, _| p.high_watermark = -1).await;
        follower.meets_odd("a negative high watermark", |p, _| p.high_watermark = -7).await;
        follower.meets_odd("a high watermark above", |p, end| p.high_watermark = end + 9).await;
        for (name, epoch, offset) in [
            ("above the end", EPOCH, 1000),
            ("a negative offset", 3, -7),
            ("a later epoch", 9, 1000),
        ] {
            let name = format!("diverging: {name}");
            follower
                .meets_odd(&name, move |p, _| p.diverging_epoch = diverging(epoch, offset))
                .await;
        }
        follower
            .meets_odd("diverging at the end", move |p, end| {
                p.diverging_epoch = diverging(EPOCH, end)
            })
            .await;
        // Half an id is malformed; of a whole one, the bootstrap checkpoint's too, it is logged that it would be needed.
        for (offset, epoch) in [(10, -1), (-1, 3), (100, EPOCH), (0, 0), (1, EPOCH)] {
            let name = format!("snapshot id {offset}-{epoch}");
            follower.meets_odd(&name, move |p, _| p.snapshot_id = snapshot(offset, epoch)).await;
        }
    });
}

/// Item 11: what Java's reader stops at, and stops at again on each start, is not taken.
#[test]
fn data_records() {
    run(async {
        let mut follower = Follower::start().await;
        // Length, attributes, timestamp delta, offset delta, key, value, headers.
        let records: [(&str, &[u8]); 6] = [
            ("a key", &[16, 0, 0, 0, 2, b'k', 2, b'v', 0]),
            ("no value", &[12, 0, 0, 0, 1, 1, 0]),
            ("an empty value", &[12, 0, 0, 0, 1, 0, 0]),
            ("a header", &[22, 0, 0, 0, 1, 2, b'v', 2, 2, b'h', 2, b'x']),
            ("a timestamp delta", &[14, 0, 2, 0, 1, 2, b'v', 0]),
            ("bytes after the record", &[14, 0, 0, 0, 1, 2, b'v', 0, 0, 0]),
        ];
        let batch = |end, record: &[u8]| seal([&data(end, EPOCH)[..61], record].concat());
        let check = |bytes: Bytes| Batch::parse(&bytes).expect("framed well").0.raft_check();
        check(batch(4, &[14, 0, 0, 0, 1, 2, b'v', 0])).expect("an ordinary record");
        for (name, record) in records {
            check(batch(4, record)).expect_err(name);
            let record = record.to_vec();
            let hazard = follower.odd(move |answer, end| {
                let records = Records(vec![batch(end, &record)]);
                answer.responses[0].partitions[0].records = Some(records);
            });
            follower.meets(name, hazard).await;
        }
    });
}

/// Items 9 and 10.
#[test]
fn batches() {
    run(async {
        let mut follower = Follower::start().await;
        let v1 = |end| {
            let key = leader_change().key();
            let mut value = BytesMut::new();
            let mut change = LeaderChangeMessage { leader_id: 2, ..Default::default() };
            change.voters = vec![Default::default()];
            change.encode(1, &mut value).unwrap();
            odd_control(end, &key, Some(&value))
        };
        let kraft = |end, kraft_version| {
            let record = KRaftVersionRecord { kraft_version, ..Default::default() };
            control(end, EPOCH, ControlRecord::KRaftVersion(record))
        };
        type Make = Box<dyn Fn(i64) -> Bytes + Send>;
        let hazards: Vec<(&str, Make)> = vec![
            ("a batch below the offset", Box::new(|end| data(end - 1, EPOCH))),
            ("a gap", Box::new(|end| data(end + 3, EPOCH))),
            ("a negative offset", Box::new(|_| data(-1, EPOCH))),
            ("epoch -1", Box::new(|end| data(end, -1))),
            ("epoch 0", Box::new(|end| data(end, 0))),
            ("an epoch before the last", Box::new(|end| data(end, EPOCH - 2))),
            ("an epoch after the current", Box::new(|end| data(end, EPOCH + 4))),
            ("a count that is wrong", Box::new(|end| patched(end, 57, &7i32.to_be_bytes()))),
            ("gzip", Box::new(|end| patched(end, 21, &1i16.to_be_bytes()))),
            ("another magic", Box::new(|end| patched(end, 16, &[1]))),
            (
                "a wrong CRC",
                Box::new(|end| {
                    let mut batch = data(end, EPOCH).to_vec();
                    batch[17] ^= 1;
                    batch.into()
                }),
            ),
            ("half a batch", Box::new(|end| data(end, EPOCH).slice(..40))),
            ("rubbish", Box::new(|_| Bytes::from_static(&[0xa5; 10]))),
            ("more rubbish", Box::new(|_| Bytes::from(vec![0xa5; 200]))),
            (
                "a batch of 2 GiB",
                Box::new(|end| {
                    patched(end, 57, &[0; 4])
                        .slice(..8)
                        .iter()
                        .copied()
                        .chain(i32::MAX.to_be_bytes())
                        .chain([0; 60])
                        .collect()
                }),
            ),
            ("control type 0", Box::new(|end| odd_control(end, &[0, 0, 0, 0], Some(&[0, 0, 0])))),
            ("control type 9", Box::new(|end| odd_control(end, &[0, 0, 0, 9], Some(&[0, 0, 0])))),
            ("an empty control key", Box::new(|end| odd_control(end, &[], Some(&[0, 0, 0])))),
            ("an empty control value", Box::new(|end| odd_control(end, &[0, 0, 0, 2], Some(&[])))),
            ("no control value", Box::new(|end| odd_control(end, &[0, 0, 0, 2], None))),
            ("a LeaderChange of schema 1", Box::new(v1)),
            ("kraft.version 2", Box::new(move |end| kraft(end, 2))),
            ("kraft.version -1", Box::new(move |end| kraft(end, -1))),
        ];
        for (name, make) in hazards {
            let hazard = follower.odd(move |answer, end| {
                answer.responses[0].partitions[0].records = Some(Records(vec![make(end)]));
            });
            follower.meets(name, hazard).await;
        }
        let null = follower.odd(|answer, _| answer.responses[0].partitions[0].records = None);
        follower.meets("no records field", null).await;
    });
}

/// Item 12.
#[test]
fn bodies() {
    run(async {
        let mut follower = Follower::start().await;
        let bodies: [(&str, Vec<u8>); 5] = [
            ("an empty body", Vec::new()),
            ("a short body", vec![0; 5]),
            ("rubbish", vec![0xa5; 300]),
            (
                "huge lengths",
                [vec![0; 7], vec![0xff, 0xff, 0xff, 0xff, 0x0f], vec![0; 40]].concat(),
            ),
            ("ones", vec![0xff; 100]),
        ];
        for (name, body) in bodies {
            follower.meets(name, move |_| Answer::Raw(body.clone())).await;
        }
    });
}

/// Items 10 and 11: of several batches the good ones before the first bad one are taken; records are opaque.
#[test]
fn what_can_be_used_is_used() {
    run(async {
        let follower = Follower::start().await;
        let end = follower.log.end();
        for (name, bad) in
            [("half a batch", data(end + 1, EPOCH).slice(..70)), ("a gap", data(end + 5, EPOCH))]
        {
            let end = follower.victim.describe().await.log_end.offset.0;
            let hazard = follower.odd(move |answer, asked| {
                if asked == end {
                    let good =
                        encode_data(end, EPOCH, 1, &[Bytes::from_static(b"no metadata record")]);
                    let partition = &mut answer.responses[0].partitions[0];
                    partition.records = Some(Records(vec![good, bad.clone()]));
                    partition.high_watermark = end;
                }
            });
            follower.leader.answer(move |request| match request {
                Request::Fetch(request) => hazard(request),
                _ => Answer::Close,
            });
            follower.victim.wait_for(name, |now| now.log_end.offset == Offset(end + 1)).await;
        }
    });
}

/// Kafka before 4.3 ignores how much was asked for: 8 MiB come at once, or a batch of that size.
#[test]
fn more_than_was_asked_for() {
    run(async {
        let follower = Follower::start().await;
        let record = Bytes::from(vec![b'x'; 1 << 20]);
        for count in [1, 7] {
            let start = follower.victim.describe().await.log_end.offset.0;
            let record = record.clone();
            // Seven batches of a record, and a batch of seven.
            let hazard = follower.odd(move |answer, end| {
                let batches = match (end == start, count) {
                    (false, _) => Vec::new(),
                    (true, 1) => vec![encode_data(end, EPOCH, 1, &vec![record.clone(); 7])],
                    _ => (end..end + 7)
                        .map(|base| encode_data(base, EPOCH, 1, std::slice::from_ref(&record)))
                        .collect(),
                };
                answer.responses[0].partitions[0].records = Some(Records(batches));
            });
            follower.leader.answer(move |request| match request {
                Request::Fetch(request) => {
                    assert!(request.max_bytes <= 1 << 20);
                    hazard(request)
                }
                _ => Answer::Close,
            });
            follower.victim.wait_for("it has all", |now| now.log_end.offset.0 == start + 7).await;
        }
    });
}

/// Item 6: that committed records are gone is latched. The node stays up, says so, and neither votes nor fetches.
#[test]
fn a_leader_without_what_was_committed() {
    run(async {
        let follower = Follower::start().await;
        let hazard = follower.odd(|answer, _| {
            answer.responses[0].partitions[0].diverging_epoch =
                wire::EpochEndOffset { epoch: EPOCH, end_offset: 1, ..Default::default() };
        });
        follower.leader.answer(move |request| match request {
            Request::Fetch(request) => hazard(request),
            _ => Answer::Close,
        });
        follower.victim.wait_for("an integrity fault", |now| now.integrity_fault.is_some()).await;
        follower.leader.take_asked();
        tokio::time::sleep(WINDOW).await;
        assert_eq!(follower.leader.take_asked(), []);
        assert_eq!(follower.victim.describe().await.log_end.offset, Offset(follower.log.end()));
    });
}

/// Item 3: a leader of a higher epoch whom nobody can reach. The epoch is adopted, and the search goes on, paced.
#[test]
fn a_leader_without_endpoint() {
    run(async {
        let follower = Follower::start().await;
        let hazard = follower.odd(|answer, _| {
            let partition = &mut answer.responses[0].partitions[0];
            partition.current_leader = current(7, EPOCH + 1);
            partition.error_code = 6;
        });
        follower.leader.answer(move |request| match request {
            Request::Fetch(request) => hazard(request),
            _ => Answer::Close,
        });
        let wanted = |now: &quorate_core::message::ReplicaDescription| {
            now.role == "unattached"
                && now.epoch == Epoch(EPOCH + 1)
                && now.leader == Some(NodeId(7))
        };
        follower.victim.wait_for("the epoch", wanted).await;
        follower.leader.is_asked_with_pauses("a leader without endpoint").await;
        assert!(wanted(&follower.victim.describe().await));
    });
}
