//! Batches and frames at their edges; what Java wrote is in `golden.rs`.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_wire::Uuid;
use quorate_wire::batch::{
    Batch, BatchError, BatchHeader, HEADER_LEN, batches, control_batch_len, control_records,
    data_batch_len, encode_control, encode_data, record_len,
};
use quorate_wire::control::{
    ControlRecord, KRaftVersionFeature, KRaftVersionRecord, LeaderChangeMessage,
    SnapshotFooterRecord, SnapshotHeaderRecord, Voter, VotersRecord, VotersRecordVoter,
};
use quorate_wire::crc::crc32c;
use quorate_wire::frame::{FrameError, SIZE_LEN, next_frame};
use quorate_wire::message::Listener;

fn values(lens: &[usize]) -> Vec<Bytes> {
    lens.iter().map(|len| Bytes::from(vec![b'v'; *len])).collect()
}

/// Changes a batch and makes its CRC right again.
fn tamper(batch: &Bytes, change: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut bytes = batch.to_vec();
    change(&mut bytes);
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes.into()
}

fn parse(bytes: &Bytes) -> Result<Batch, BatchError> {
    Batch::parse(bytes).map(|(batch, _)| batch)
}

/// One record with everything that a record may have.
fn batch_of_record(record: &[u8], control: bool) -> Batch {
    let body = [&[u8::try_from(record.len() * 2).expect("short")], record].concat();
    let bytes = tamper(&encode_data(5, 2, 1000, &values(&[1])), |bytes| {
        bytes.truncate(HEADER_LEN);
        bytes.extend(&body);
        let length = i32::try_from(bytes.len() - 12).expect("short");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[22] = if control { 0x20 } else { 0 };
    });
    parse(&bytes).expect("the batch is whole")
}

#[test]
fn the_checksum_is_castagnoli() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(b""), 0);
}

#[test]
fn what_is_built_reads_back() {
    let values = values(&[1, 63, 64, 8191, 8192, 100]);
    let bytes = encode_data(1 << 40, 7, 1234, &values);
    assert_eq!(bytes.len(), data_batch_len(values.iter().map(Bytes::len)));
    let (batch, rest) = Batch::parse(&bytes).expect("sound");
    assert!(rest.is_empty());
    assert_eq!((batch.base_offset(), batch.end_offset()), (1 << 40, (1 << 40) + 6));
    assert_eq!((batch.leader_epoch(), batch.is_control(), batch.record_count()), (7, false, 6));
    assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (1234, 1234));
    for (index, record) in batch.records().expect("plain").enumerate() {
        let record = record.expect("sound");
        assert_eq!(record.value, Some(&values[index][..]));
        assert_eq!(usize::try_from(record.offset - (1 << 40)), Ok(index));
        assert_eq!((record.key, record.header_count(), record.timestamp), (None, 0, 1234));
    }
    assert_eq!(batch.raft_check(), Ok(()));
    assert_eq!(control_records(&batch), Ok(Vec::new()));
}

#[test]
fn control_records_read_back() {
    let voter = |voter_id| Voter { voter_id, ..Voter::default() };
    let records = [
        ControlRecord::LeaderChange(LeaderChangeMessage {
            leader_id: 1,
            voters: vec![voter(1), voter(2)],
            granting_voters: vec![voter(2)],
            ..LeaderChangeMessage::default()
        }),
        ControlRecord::KRaftVersion(KRaftVersionRecord {
            kraft_version: 1,
            ..KRaftVersionRecord::default()
        }),
        ControlRecord::Voters(VotersRecord {
            voters: vec![VotersRecordVoter {
                voter_id: 1,
                voter_directory_id: Uuid([9; 16]),
                endpoints: vec![Listener {
                    name: "CONTROLLER".into(),
                    host: "localhost".into(),
                    port: 65_535,
                    ..Listener::default()
                }],
                kraft_version_feature: KRaftVersionFeature {
                    max_supported_version: 1,
                    ..KRaftVersionFeature::default()
                },
                ..VotersRecordVoter::default()
            }],
            ..VotersRecord::default()
        }),
        ControlRecord::SnapshotHeader(SnapshotHeaderRecord {
            last_contained_log_timestamp: 99,
            ..SnapshotHeaderRecord::default()
        }),
        ControlRecord::SnapshotFooter(SnapshotFooterRecord::default()),
    ];
    let bytes = encode_control(10, 3, 5, &records).expect("short enough");
    assert_eq!(control_batch_len(&records), Ok(bytes.len()));
    let batch = parse(&bytes).expect("sound");
    assert!(batch.is_control());
    assert_eq!(batch.raft_check(), Ok(()));
    let expected: Vec<_> = (10..).zip(records).collect();
    assert_eq!(control_records(&batch), Ok(expected));
}

#[test]
fn every_changed_byte_is_noticed_but_for_offset_and_epoch() {
    let bytes = encode_data(300, 1, 1, &values(&[10, 20]));
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 0x40;
        let parsed = parse(&changed.into());
        match at {
            // Neither is covered by the CRC.
            0..8 | 12..16 => assert!(parsed.is_ok(), "byte {at}"),
            16 => assert_eq!(parsed, Err(BatchError::BadMagic { magic: 0x42 })),
            8..12 => assert!(parsed.is_err(), "byte {at}"),
            17..21 => assert!(matches!(parsed, Err(BatchError::BadCrc { .. })), "byte {at}"),
            // A number that cannot be is seen before the CRC is.
            _ => assert!(parsed.is_err(), "byte {at}"),
        }
    }
}

#[test]
fn lengths_and_offsets_that_cannot_be_are_refused() {
    let bytes = encode_data(0, 1, 1, &values(&[10]));
    let with = |at: usize, number: &[u8]| {
        tamper(&bytes, |bytes| bytes[at..at + number.len()].copy_from_slice(number))
    };
    for length in [0, 48, -1, i32::MIN] {
        let parsed = parse(&with(8, &length.to_be_bytes()));
        assert_eq!(parsed, Err(BatchError::TooSmall { length }));
    }
    let parsed = parse(&with(8, &i32::MAX.to_be_bytes()));
    let needed = 12 + usize::try_from(i32::MAX).expect("64 bits");
    assert_eq!(parsed, Err(BatchError::Incomplete { needed, available: bytes.len() }));
    for base in [-1, i64::MIN, i64::MAX] {
        let parsed = parse(&with(0, &base.to_be_bytes()));
        assert_eq!(parsed, Err(BatchError::Offsets { base, delta: 0 }));
    }
    assert_eq!(
        parse(&with(0, &(i64::MAX - 1).to_be_bytes())).map(|batch| batch.end_offset()),
        Ok(i64::MAX)
    );
    let parsed = parse(&with(23, &(-1i32).to_be_bytes()));
    assert_eq!(parsed, Err(BatchError::Offsets { base: 0, delta: -1 }));
    let parsed = parse(&with(57, &(-1i32).to_be_bytes()));
    assert_eq!(parsed, Err(BatchError::Count { count: -1 }));
    // A length alone is enough to see that there is no batch; zeros are none.
    assert_eq!(BatchHeader::parse(&[0; 12]), Err(BatchError::TooSmall { length: 0 }));
}

#[test]
fn record_counts_must_fit_the_records() {
    let bytes = encode_data(0, 1, 1, &values(&[10, 10]));
    let count = |count: i32| {
        parse(&tamper(&bytes, |bytes| bytes[57..61].copy_from_slice(&count.to_be_bytes())))
            .expect("whole")
    };
    let surplus = BatchError::Surplus { left: record_len(1, 10), count: 1 };
    assert_eq!(count(1).raft_check(), Err(surplus));
    assert!(matches!(count(3).raft_check(), Err(BatchError::Record { index: 2, .. })));
    assert!(matches!(count(i32::MAX).raft_check(), Err(BatchError::Record { index: 2, .. })));
    let empty = BatchError::NotRaft { index: 0, reason: "the batch is empty" };
    assert_eq!(count(0).raft_check(), Err(empty));
    // After an error nothing more comes.
    assert_eq!(count(3).records().expect("plain").count(), 3);
}

#[test]
fn what_would_stop_a_java_peer_is_refused() {
    let refused = |record: &[u8], control| match batch_of_record(record, control).raft_check() {
        Err(BatchError::NotRaft { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    // attributes, time delta, offset delta, key, value, headers
    assert_eq!(batch_of_record(b"\0\0\0\x01\x02v\0", false).raft_check(), Ok(()));
    assert_eq!(refused(b"\0\x02\0\x01\x02v\0", false), "a timestamp delta other than 0");
    assert_eq!(refused(b"\0\0\x02\x01\x02v\0", false), "offsets do not ascend within the batch");
    assert_eq!(refused(b"\0\0\x01\x01\x02v\0", false), "offsets do not ascend within the batch");
    assert_eq!(refused(b"\0\0\0\x02k\x02v\0", false), "a key");
    assert_eq!(refused(b"\0\0\0\x01\x01\0", false), "no value");
    assert_eq!(refused(b"\0\0\0\x01\0\0", false), "an empty value");
    assert_eq!(refused(b"\0\0\0\x01\x02v\x02\x02h\x01", false), "headers");
    assert_eq!(refused(b"\0\0\0\x01\x02v\x80\0", false), "headers");
    assert_eq!(refused(b"\0\0\0\x01\x02v\0", true), "a control record without a key");
    assert_eq!(refused(b"\0\0\0\x08\0\0\0\x05\x01\0", true), "a control record without a value");
    assert_eq!(refused(b"\0\0\0\x08\0\0\0\x05\0\0", true), "an empty value");
    for type_code in [0, 1, 7, 255] {
        let record = [b"\0\0\0\x08\0\0\0", &[type_code][..], b"\x0a\0\0\0\x01\0\0"].concat();
        let checked = batch_of_record(&record, true).raft_check();
        assert!(matches!(checked, Err(BatchError::Control { .. })), "{checked:?}");
    }
    assert_eq!(
        batch_of_record(b"\0\0\0\x08\0\0\0\x05\x0a\0\0\0\x01\0\0", true).raft_check(),
        Ok(())
    );
    for key in [&b"\x06\0\0\0"[..], b"\x0a\0\0\0\x05\0", b"\0"] {
        let record = [b"\0\0\0", key, b"\x0a\0\0\0\x01\0\0"].concat();
        let checked = batch_of_record(&record, true).raft_check();
        assert!(matches!(checked, Err(BatchError::Control { .. })), "{checked:?}");
    }
}

#[test]
fn broken_records_are_errors() {
    for record in [
        &b""[..],
        b"\0",
        b"\0\0\0\x01\x02v",
        b"\0\0\0\x01\x02v\0x",
        b"\0\0\0\x01\x06v\0",
        b"\0\0\0\x7e\x02v\0",
        b"\0\0\0\x01\x02v\x01",
        b"\0\0\0\x01\x02v\xfe\xff\xff\xff\x0f",
        b"\0\0\0\x01\x02v\x02\x01\x01",
        b"\0\0\x80\x80\x80\x80\x80\0\x01\x02v\0",
        b"\0\0\xff\xff\xff\xff\x1f\x01\x02v\0",
        b"\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\0\x01\x02v\0",
    ] {
        let batch = batch_of_record(record, false);
        let checked = batch.raft_check();
        assert!(
            matches!(checked, Err(BatchError::Record { index: 0, .. })),
            "{record:x?} {checked:?}"
        );
    }
}

#[test]
fn batches_come_one_after_another_and_end_at_the_first_error() {
    let one = encode_data(0, 1, 1, &values(&[10]));
    let two = encode_data(1, 1, 1, &values(&[20]));
    let all = Bytes::from([&one[..], &two, &one[..40]].concat());
    let mut iterator = batches(all);
    assert_eq!(iterator.next().and_then(Result::ok).map(Batch::into_bytes), Some(one.clone()));
    assert_eq!(iterator.position(), one.len());
    assert_eq!(iterator.next().and_then(Result::ok).map(Batch::into_bytes), Some(two.clone()));
    let cut = BatchError::Incomplete { needed: HEADER_LEN, available: 40 };
    assert_eq!(iterator.next(), Some(Err(cut)));
    assert_eq!(iterator.position(), one.len() + two.len());
    assert_eq!(iterator.next(), None);
}

#[test]
fn frames_are_bounded_before_they_come() {
    let first = |bytes: &[u8]| next_frame(&mut BytesMut::from(bytes), 100);
    assert_eq!(first(b"\0\0\0\x65"), Err(FrameError::TooLarge { size: 101, max: 100 }));
    assert_eq!(first(b"\0\0\0\x64"), Ok(None));
    assert_eq!(first(b"\0\0\0"), Ok(None));
    assert_eq!(first(b"\0\0\0\0"), Err(FrameError::Size(0)));
    assert_eq!(first(b"\xff\xff\xff\xff"), Err(FrameError::Size(-1)));
    assert_eq!(first(b"\x16\x03\x01\x02\0\x01"), Err(FrameError::Tls));
    assert_eq!(first(b"GET / HTTP/1.1"), Err(FrameError::Http));
    assert_eq!(first(b"HTTP/1.1 200"), Err(FrameError::Http));
    assert_eq!(first(b"\0\0\0\x02ab"), Ok(Some(Bytes::from_static(b"ab"))));
}

proptest! {
    #[test]
    fn any_values_make_a_batch(
        lens in prop::collection::vec(1usize..300, 1..200),
        base in 0i64..i64::MAX - 1000,
        epoch: i32,
        time: i64,
    ) {
        let values = values(&lens);
        let bytes = encode_data(base, epoch, time, &values);
        prop_assert_eq!(bytes.len(), data_batch_len(lens));
        let batch = parse(&bytes).expect("sound");
        prop_assert_eq!(batch.raft_check(), Ok(()));
        let read: Result<Vec<_>, _> = batch.records().expect("plain").collect();
        let read: Vec<_> = read.expect("sound").iter().map(|record| record.value).collect();
        let expected: Vec<_> = values.iter().map(|value| Some(&value[..])).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn any_records_behind_a_right_crc_are_read_or_refused(
        body: Vec<u8>,
        count in 0i32..5,
        control: bool,
    ) {
        let bytes = tamper(&encode_data(0, 1, 1, &values(&[1])), |bytes| {
            bytes.truncate(HEADER_LEN);
            bytes.extend(&body);
            let length = i32::try_from(bytes.len() - 12).expect("short");
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            bytes[57..61].copy_from_slice(&count.to_be_bytes());
            bytes[22] = if control { 0x20 } else { 0 };
        });
        let batch = parse(&bytes).expect("whole");
        for record in batch.records().expect("plain").flatten() {
            prop_assert_eq!(record.headers().count(), usize::try_from(record.header_count()).unwrap_or(0));
        }
        let _ = batch.raft_check();
        let _ = control_records(&batch);
    }

    #[test]
    fn any_bytes_are_batches_or_not(bytes: Vec<u8>) {
        let count = batches(bytes.into()).count();
        prop_assert!(count <= 1);
    }

    #[test]
    fn frames_come_out_as_they_went_in(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..10),
        cut in 1usize..20,
    ) {
        let mut wire = Vec::new();
        for body in &bodies {
            wire.extend(u32::try_from(body.len()).expect("short").to_be_bytes());
            wire.extend(body);
        }
        let mut buf = BytesMut::new();
        let mut frames = Vec::new();
        for piece in wire.chunks(cut) {
            buf.extend_from_slice(piece);
            while let Some(frame) = next_frame(&mut buf, 50).expect("sound") {
                frames.push(frame.to_vec());
            }
        }
        prop_assert_eq!(frames, bodies);
        prop_assert!(buf.len() < SIZE_LEN);
    }
}
