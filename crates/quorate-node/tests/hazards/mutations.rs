//! Recorded frames with random changes, sent to running nodes: each is answered or its connection closed, and the quorum
//! commits all the while. `cargo xtask interop mutations` sends many more, to processes whose memory it watches.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::message::ErrorCode;
use quorate_rpc::client::decode_answer;
use quorate_wire::Message;
use quorate_wire::message::*;

use crate::fake::{Answer, Asker, Fake};
use crate::nodes::{Pair, run};

const COUNT: u64 = 2000;

/// Repeatable chance: SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.next() & 0xff).unwrap()
    }
}

fn frames() -> Vec<Vec<u8>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/wire/frames.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let hex = |line: &str| {
        let digits = line.split_once("\"hex\":\"").unwrap().1.split('"').next().unwrap().to_owned();
        (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
            .collect::<Vec<u8>>()
    };
    let requests = text.lines().filter(|line| line.contains("\"direction\":\"request\""));
    requests.map(hex).map(of_our_cluster).collect()
}

/// The recorded frames are of two clusters; ours have another id of the same length.
fn of_our_cluster(mut frame: Vec<u8>) -> Vec<u8> {
    for id in ["1aQDHr_LSE2otbLmze5Ozg", "6UXafv9RQ2KAafqUFzv8Qw"] {
        let at = frame.windows(id.len()).position(|bytes| bytes == id.as_bytes());
        if let Some(at) = at {
            frame[at..at + id.len()].copy_from_slice(crate::fake::CLUSTER.as_bytes());
        }
    }
    frame
}

fn mutate(frame: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut frame = frame.to_vec();
    // Half of them one change that mostly still decodes.
    let (changes, kinds) = if chance.below(2) == 0 { (1, 3) } else { (1 + chance.below(4), 6) };
    for _ in 0..changes {
        let at = chance.below(frame.len());
        match chance.below(kinds) {
            0 => frame[at] ^= 1 << chance.below(8),
            1 => frame[at] = chance.byte(),
            2 => {
                let end = (at + 4).min(frame.len());
                frame[at..end].fill([0, 0xff, 0x7f, 0x80][chance.below(4)]);
            }
            3 => frame.truncate(at.max(1)),
            4 => frame.insert(at, chance.byte()),
            _ => {
                frame.remove(at);
            }
        }
        if frame.is_empty() {
            frame.push(0);
        }
    }
    // In most cases the size fits, or nothing behind it would be looked at.
    if chance.below(8) != 0 && frame.len() > 4 {
        let len = i32::try_from(frame.len() - 4).unwrap();
        frame[..4].copy_from_slice(&len.to_be_bytes());
    }
    frame
}

/// Items 2 and 12: an answer decodes at the version of its request, and refuses nobody for who it is.
fn check(request: &[u8], answer: Bytes) {
    let number = |at| i16::from_be_bytes([request[at], request[at + 1]]);
    let (api, version) = (ApiKey::from_code(number(4)), number(6));
    let error = match api.expect("an answer to what is no API") {
        ApiKey::Vote => decode::<VoteRequest>(version, answer).error_code,
        ApiKey::BeginQuorumEpoch => decode::<BeginQuorumEpochRequest>(version, answer).error_code,
        ApiKey::EndQuorumEpoch => decode::<EndQuorumEpochRequest>(version, answer).error_code,
        ApiKey::Fetch => decode::<FetchRequest>(version, answer).error_code,
        ApiKey::FetchSnapshot => decode::<FetchSnapshotRequest>(version, answer).error_code,
        ApiKey::DescribeQuorum => decode::<DescribeQuorumRequest>(version, answer).error_code,
        // An unknown version is answered at version 0.
        ApiKey::ApiVersions if !ApiVersionsResponse::VERSIONS.contains(&version) => {
            decode::<ApiVersionsRequest>(0, answer).error_code
        }
        ApiKey::ApiVersions => decode::<ApiVersionsRequest>(version, answer).error_code,
        api => panic!("an answer to {api:?}"),
    };
    assert_ne!(error, ErrorCode::CLUSTER_AUTHORIZATION_FAILED.0);
}

fn decode<R: Request>(version: i16, answer: Bytes) -> R::Response {
    decode_answer(R::API, version, answer).expect("the answer decodes")
}

#[test]
fn a_quorum_survives_mutated_frames() {
    run(async {
        let fake = Fake::start(|_| Answer::Close).await;
        let pair = Pair::start(fake.port);
        let frames = frames();
        assert!(frames.len() > 50);
        let mut chance = Chance(7);
        let mut commits = 0;
        for i in 0..COUNT {
            let frame = &frames[chance.below(frames.len())];
            let mutated = mutate(frame, &mut chance);
            let target = &pair.nodes[usize::try_from(i % 2).unwrap()];
            // What comes is a whole frame, or nothing.
            let mut asker = Asker::connect(target.port).await;
            let asked = asker.exchange(&mutated);
            match tokio::time::timeout(Duration::from_millis(20), asked).await {
                Ok(Some(answer)) => check(&mutated, answer),
                Ok(None) => {}
                Err(_) => drop(asker.finish(&[]).await),
            }
            if i % 50 == 0 {
                pair.commit().await;
                commits += 1;
            }
        }
        assert_eq!(commits, COUNT / 50);
    });
}
