//! Batches as they come in and as they are encoded.

use bytes::{Bytes, BytesMut};
use quorate_core::ids::{DirectoryId, Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset};
use quorate_core::io::{Batch, Content};
use quorate_core::message::{ControlRecord, KRaftVersion};
use quorate_core::voters::{Voter, VoterSet};
use quorate_rpc::records::{RecordsError, check, control_in, control_out, encode};
use quorate_wire::batch::{control_batch_len, data_batch_len};
use quorate_wire::control;
use quorate_wire::message::Listener;

const TIME_MS: i64 = 1_700_000_000_000;

fn voters(ids: &[i32]) -> VoterSet {
    let voter = |id: &i32| {
        let directory = DirectoryId::from_bytes([u8::try_from(*id).unwrap(); 16]);
        let endpoints =
            Endpoints::from([(ListenerName::new("CONTROLLER"), Endpoint::new("host", 9093))]);
        (NodeId(*id), Voter { directory, endpoints, kraft_versions: KRaftVersion::SUPPORTED })
    };
    VoterSet::new(ids.iter().map(voter)).unwrap()
}

fn start_of_epoch() -> Vec<ControlRecord> {
    vec![
        ControlRecord::LeaderChange {
            leader: NodeId(1),
            voters: vec![NodeId(1), NodeId(2), NodeId(3)],
            granting: vec![NodeId(1), NodeId(3)],
        },
        ControlRecord::KRaftVersion(KRaftVersion(1)),
        ControlRecord::Voters(voters(&[1, 2, 3])),
    ]
}

fn control_batch(base: i64, records: Vec<ControlRecord>) -> Batch {
    let wire: Vec<_> = records.iter().map(control_out).collect();
    Batch {
        base: Offset(base),
        end: Offset(base).plus(records.len()),
        epoch: Epoch(4),
        encoded_len: control_batch_len(&wire).unwrap(),
        content: Content::Control(records),
    }
}

fn data_batch(base: i64, values: &[&'static [u8]]) -> Batch {
    Batch {
        base: Offset(base),
        end: Offset(base).plus(values.len()),
        epoch: Epoch(4),
        encoded_len: data_batch_len(values.iter().map(|value| value.len())),
        content: Content::Data(values.iter().map(|value| Bytes::from_static(value)).collect()),
    }
}

/// Two batches: control records at 10 to 12, data at 13 and 14.
fn two_batches() -> (Bytes, usize) {
    let first = encode(&control_batch(10, start_of_epoch()), TIME_MS).unwrap();
    let second = encode(&data_batch(13, &[b"one", b"two"]), TIME_MS).unwrap();
    let mut all = BytesMut::from(&first[..]);
    all.extend_from_slice(&second);
    (all.freeze(), first.len())
}

#[test]
fn what_is_encoded_comes_back_with_its_control_records() {
    let (bytes, first) = two_batches();
    let received = check(bytes.clone());
    assert_eq!(received.rejected, None);
    let [control, data] = received.batches.as_slice() else { panic!("{received:?}") };
    assert_eq!((control.base, control.end, control.epoch), (Offset(10), Offset(13), Epoch(4)));
    let expected: Vec<_> = (10..).map(Offset).zip(start_of_epoch()).collect();
    assert_eq!(control.control, expected);
    assert_eq!((data.base, data.end, data.control.len()), (Offset(13), Offset(15), 0));
    // Slices of what came, not copies.
    assert_eq!(control.bytes.as_ptr(), bytes.as_ptr());
    assert_eq!(data.bytes, bytes.slice(first..));
}

#[test]
fn a_last_batch_that_is_cut_short_is_normal() {
    let (bytes, first) = two_batches();
    for cut in first..bytes.len() {
        let received = check(bytes.slice(..cut));
        assert_eq!((received.batches.len(), received.rejected), (1, None), "cut at {cut}");
    }
    assert_eq!(check(bytes.slice(..first - 1)).batches.len(), 0);
}

#[test]
fn the_batches_before_a_bad_one_stand_and_the_rest_is_named() {
    let (bytes, first) = two_batches();
    // The magic, the CRC, the epoch (which the CRC does not cover), a record's bytes.
    for at in [16, 18, 12, 70] {
        let mut bad = bytes.to_vec();
        bad[first + at] ^= 0x80;
        let received = check(bad.into());
        assert_eq!(received.batches.len(), 1, "byte {at}");
        let rejected = received.rejected.expect("the second batch is bad");
        assert!(rejected.starts_with(&format!("batch at byte {first}: ")), "{rejected}");
    }
}

#[test]
fn control_records_that_cannot_be_are_refused() {
    let twice = control::VotersRecord {
        voters: vec![control::VotersRecordVoter { voter_id: 1, ..Default::default() }; 2],
        ..Default::default()
    };
    let negative = control::VotersRecord {
        voters: vec![control::VotersRecordVoter { voter_id: -1, ..Default::default() }],
        ..Default::default()
    };
    for (record, reason) in [
        (control::ControlRecord::Voters(twice), "twice"),
        (control::ControlRecord::Voters(negative), "negative"),
        (control::ControlRecord::Voters(control::VotersRecord::default()), "no voters"),
    ] {
        assert!(control_in(record).unwrap_err().contains(reason));
    }
    for level in [-1, 2] {
        let bytes =
            encode(&control_batch(0, vec![ControlRecord::KRaftVersion(KRaftVersion(level))]), 0);
        let received = check(bytes.unwrap());
        assert!(received.batches.is_empty());
        assert!(received.rejected.unwrap().contains("control record at offset 0"));
    }
}

#[test]
fn all_control_records_come_back() {
    let mut records = start_of_epoch();
    records.push(ControlRecord::SnapshotHeader { last_contained_log_timestamp: -7 });
    records.push(ControlRecord::SnapshotFooter);
    for record in records {
        assert_eq!(control_in(control_out(&record)), Ok(record));
    }
}

#[test]
fn what_no_reader_takes_is_not_encoded() {
    let empty = |content| Batch {
        base: Offset(0),
        end: Offset(0),
        epoch: Epoch(1),
        encoded_len: 61,
        content,
    };
    let nothing = Err(RecordsError::Empty);
    assert_eq!(encode(&empty(Content::Data(Vec::new())), 0), nothing);
    assert_eq!(encode(&empty(Content::Control(Vec::new())), 0), nothing);
    assert_eq!(encode(&data_batch(0, &[b"a", b""]), 0), Err(RecordsError::EmptyValue(1)));
    let encoded = Bytes::from_static(b"as it came");
    assert_eq!(encode(&empty(Content::Encoded(encoded.clone())), 0), Ok(encoded));
}

#[test]
#[should_panic(expected = "the length of the batch at 5")]
fn a_length_that_the_core_counted_otherwise_is_a_fault_of_ours() {
    let mut batch = data_batch(5, &[b"a"]);
    batch.encoded_len += 1;
    let _ = encode(&batch, 0);
}

#[test]
fn voters_that_could_not_be_written_again_are_refused() {
    // One letter of two bytes that becomes two letters of three in upper case.
    for (count, fits) in [(10_922, true), (10_923, false)] {
        let listener = Listener { name: "\u{149}".repeat(count), ..Default::default() };
        let voter = control::VotersRecordVoter { endpoints: vec![listener], ..Default::default() };
        let record = control::VotersRecord { voters: vec![voter], ..Default::default() };
        let record = control_in(control::ControlRecord::Voters(record));
        assert_eq!(record.is_ok(), fits, "{count} letters");
        if let Ok(record) = record {
            encode(&control_batch(0, vec![record]), TIME_MS).expect("it fits");
        }
    }
}
