//! How much memory bytes may take, and where nothing is copied.

use allocation_counter::measure;
use bytes::{Bytes, BytesMut};
use quorate_wire::batch::{batches, control_records, encode_data};
use quorate_wire::codec::Message;
use quorate_wire::frame::{encode_response, next_frame};
use quorate_wire::message::*;
use quorate_wire::{Records, UnknownTags};

/// Decodes and gives the most memory that was held at once.
fn peak<M: Message>(version: i16, bytes: &[u8]) -> u64 {
    let mut bytes = Bytes::copy_from_slice(bytes);
    measure(|| drop(M::decode(version, &mut bytes))).bytes_max
}

#[test]
fn a_claimed_length_reserves_nothing() {
    // Two null fields, then an array of four thousand million topics.
    let killer = b"\0\0\0\0\x03\xff\xff\xff\xff\x0f";
    for cut in 0..=killer.len() {
        for version in 0..=2 {
            assert!(peak::<VoteRequest>(version, &killer[..cut]) < 1024);
        }
    }
    assert!(peak::<VoteRequest>(0, b"\0\xff\xff\xff\xff\x0f") < 1024);
    assert!(peak::<BeginQuorumEpochResponse>(0, b"\0\0\x7f\xff\xff\xff") < 1024);
    assert!(peak::<FetchResponse>(4, b"\0\0\0\0\0\x0f\x42\x40") < 1024);
    assert!(peak::<RequestHeader>(1, b"\0\x01\0\x04\0\0\0\0\x7f\xff") < 1024);
    // A tagged field, and records, of two thousand million bytes.
    assert!(peak::<ResponseHeader>(1, b"\0\0\0\0\x01\x07\xff\xff\xff\xff\x07") < 1024);
    assert!(peak::<FetchSnapshotResponse>(0, b"\0\0\0\0\0\0\xff\xff\xff\xff\x07") < 1024);
}

#[test]
fn a_count_that_the_bytes_allow_reserves_no_more_than_they_are() {
    // As many topics as bytes follow, of which the first is broken.
    let bytes = [&b"\0\xe9\x07"[..], &[0xff; 1000]].concat();
    assert!(peak::<VoteRequest>(0, &bytes) < 2048);
}

#[test]
fn memory_stays_in_proportion_when_every_element_is_there() {
    // The smallest elements, one after another: three bytes each.
    for count in [10usize, 1000, 100_000] {
        let topics = vec![ForgottenTopic::default(); count];
        let message = FetchRequest { forgotten_topics_data: topics, ..FetchRequest::default() };
        let mut bytes = BytesMut::new();
        message.encode(12, &mut bytes).expect("few enough");
        let len = u64::try_from(bytes.len()).expect("small");
        let held = peak::<FetchRequest>(12, &bytes);
        // Sixteen times the bytes and 64 KiB; a vector that grows holds that and twice that at once.
        assert!(held <= 3 * (16 * len + 65_536), "{len} bytes took {held}");
    }
}

#[test]
fn a_frame_reserves_nothing_for_what_has_not_come() {
    let mut buf = BytesMut::from(&b"\x05\xff\xff\xff"[..]);
    let info = measure(|| assert_eq!(next_frame(&mut buf, usize::MAX), Ok(None)));
    assert_eq!(info.count_total, 0);
}

/// A Fetch answer of small batches and large ones.
fn fetch_response() -> (FetchResponse, Vec<Bytes>) {
    let value = |base| Bytes::from(vec![7; if base % 2 == 0 { 10 } else { 1 << 20 }]);
    let batches: Vec<_> = (0..4).map(|base| encode_data(base, 3, 1, &[value(base)])).collect();
    let partition = FetchPartitionData {
        records: Some(Records(batches.clone())),
        current_leader: LeaderIdAndEpoch { leader_id: 1, leader_epoch: 3, ..Default::default() },
        ..FetchPartitionData::default()
    };
    let topic = FetchableTopicResponse { partitions: vec![partition], ..Default::default() };
    (FetchResponse { responses: vec![topic], ..FetchResponse::default() }, batches)
}

#[test]
fn records_are_neither_copied_out_nor_in() {
    let (response, batches_out) = fetch_response();
    let mut parts = Vec::new();
    let out = measure(|| {
        parts = encode_response(ApiKey::Fetch, 17, 9, &response).expect("it fits");
    });
    assert!(out.bytes_total < 4096, "encoding took {}", out.bytes_total);
    for batch in &batches_out {
        assert!(parts.iter().any(|part| part.as_ptr() == batch.as_ptr()), "a batch was copied");
    }

    let mut buf = BytesMut::from(&parts.concat()[..]);
    let (start, end) = (buf.as_ptr() as usize, buf.as_ptr() as usize + buf.len());
    let mut decoded = FetchResponse::default();
    let into = measure(|| {
        let mut frame = next_frame(&mut buf, 1 << 24).expect("sound").expect("whole");
        ResponseHeader::decode(1, &mut frame).expect("a header");
        decoded = FetchResponse::decode_exact(17, frame).expect("a body");
    });
    assert!(into.bytes_total < 4096, "decoding took {}", into.bytes_total);
    assert_eq!(decoded, response);
    let records = decoded.responses.remove(0).partitions.remove(0).records.expect("records");
    let records = records.into_bytes();
    assert!((start..end).contains(&(records.as_ptr() as usize)), "the records were copied");

    let walk = measure(|| {
        for batch in batches(records) {
            let batch = batch.expect("whole");
            batch.raft_check().expect("fit for a log");
            assert_eq!(control_records(&batch), Ok(Vec::new()));
        }
    });
    assert_eq!(walk.bytes_total, 0, "walking through records took memory");
}

#[test]
fn a_batch_is_one_allocation() {
    let values = vec![Bytes::from_static(&[1; 100]); 100];
    let mut batch = Bytes::new();
    let info = measure(|| batch = encode_data(0, 1, 2, &values));
    let len = u64::try_from(batch.len()).expect("small");
    assert!(info.bytes_total <= len + 64, "{len} bytes took {}", info.bytes_total);
}

#[test]
fn unknown_tags_are_slices_of_their_frame() {
    let mut header = ResponseHeader::default();
    header.unknown.push(9, Bytes::from(vec![1; 1 << 16]));
    let mut bytes = BytesMut::new();
    header.encode(1, &mut bytes).expect("it fits");
    let bytes = bytes.freeze();
    let mut unknown = UnknownTags::default();
    let info = measure(|| {
        unknown = ResponseHeader::decode_exact(1, bytes).expect("sound").unknown;
    });
    assert!(info.bytes_total < 1024);
    assert_eq!(unknown, header.unknown);
}
