//! Record batches, pieces of logs, snapshots, and damaged ones.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Checked, Outcome, hex, member, same, same_bytes, string, to_hex};
use crate::batch::{
    Batch, BatchError, BatchHeader, Compression, RecordView, batches, control_batch_len,
    control_records, data_batch_len, encode_control, encode_data,
};
use crate::control::{self, ControlRecord};

/// A line with one or several batches, or with damaged ones.
pub(super) fn check(line: &Value) -> Checked {
    let bytes = hex(line, "hex")?;
    let parsed: Vec<_> = batches(bytes.clone()).collect();
    match string(line, "kind")? {
        "bad" => damaged(line, &bytes, &parsed)?,
        _ => sound(line, &bytes, &parsed)?,
    }
    verdict(line, &parsed)
}

type Parsed = [Result<Batch, BatchError>];

fn sound(line: &Value, bytes: &Bytes, parsed: &Parsed) -> Result<(), String> {
    let exact = member(line, "encodeExact")?.as_bool() == Some(true);
    let expected = member(line, "batches")?.as_array().ok_or("`batches` is no array")?;
    same("number of batches", &parsed.len(), &expected.len())?;
    let mut position = 0;
    for (batch, expected) in parsed.iter().zip(expected) {
        let batch = batch.as_ref().map_err(ToString::to_string)?;
        let len = batch.bytes().len();
        same_bytes("bytes", batch.bytes(), bytes.get(position..position + len).unwrap_or(&[]))?;
        position += len;
        header(batch, expected)?;
        records(batch, expected)?;
        if exact {
            build_again(batch)?;
        }
        cut_short(batch)?;
    }
    same("bytes in batches", &position, &bytes.len())
}

fn header(batch: &Batch, expected: &Value) -> Result<(), String> {
    let header = batch.header();
    let ours = json!({
        "baseOffset": header.base_offset,
        "batchLength": header.batch_length,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "magic": header.magic,
        "crc": header.crc,
        "attributes": header.attributes,
        "compression": header.compression().to_string(),
        "timestampType":
            if header.is_log_append_time() { "LogAppendTime" } else { "CreateTime" },
        "transactional": header.attributes & 0x10 != 0,
        "control": batch.is_control(),
        "hasDeleteHorizon": header.attributes & 0x40 != 0,
        "lastOffsetDelta": header.last_offset_delta,
        "lastOffset": batch.last_offset(),
        "baseTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "recordCount": header.record_count,
    });
    let mut theirs = expected.clone();
    if let Some(members) = theirs.as_object_mut() {
        members.remove("records");
    }
    same("header", &ours, &theirs)
}

fn records(batch: &Batch, expected: &Value) -> Result<(), String> {
    let expected = member(expected, "records")?.as_array().ok_or("`records` is no array")?;
    let records = match (batch.compression(), batch.records()) {
        (Compression::None, records) => records.map_err(|error| error.to_string())?,
        (other, Err(BatchError::Compressed(named))) if named == other => return Ok(()),
        (other, _) => return Err(format!("{other} is not refused by name")),
    };
    let records: Result<Vec<_>, _> = records.collect();
    let records = records.map_err(|error| error.to_string())?;
    same("number of records", &records.len(), &expected.len())?;
    for (record, expected) in records.iter().zip(expected) {
        let mut ours = json!({
            "offset": record.offset,
            "offsetDelta": record.offset_delta,
            "timestamp": record.timestamp,
            "key": record.key.map(to_hex),
            "value": record.value.map(to_hex),
            "headers": record
                .headers()
                .map(|header| json!({
                    "key": String::from_utf8_lossy(header.key),
                    "value": header.value.map(to_hex),
                }))
                .collect::<Vec<_>>(),
        });
        if batch.is_control() {
            show_control(batch, record, &mut ours)?;
        }
        same("record", &ours, expected)?;
    }
    Ok(())
}

fn show_control(batch: &Batch, record: &RecordView<'_>, shown: &mut Value) -> Result<(), String> {
    let key = record.key.unwrap_or_default();
    let type_code = control::decode_key(key).map_err(|error| error.to_string())?;
    shown["controlType"] = type_code.into();
    if !(2..=6).contains(&type_code) {
        return Ok(());
    }
    let value = batch.bytes().slice_ref(record.value.unwrap_or_default());
    let decoded = ControlRecord::decode(key, value).map_err(|error| error.to_string())?;
    let name = match &decoded {
        ControlRecord::LeaderChange(_) => "LeaderChangeMessage",
        ControlRecord::SnapshotHeader(_) => "SnapshotHeaderRecord",
        ControlRecord::SnapshotFooter(_) => "SnapshotFooterRecord",
        ControlRecord::KRaftVersion(_) => "KRaftVersionRecord",
        ControlRecord::Voters(_) => "VotersRecord",
    };
    shown["controlMessage"] = name.into();
    shown["controlJson"] = decoded.to_json();
    Ok(())
}

/// What our builder can write, it writes as Java did. It cannot write what has no place in a metadata
/// log: keys, headers, times of their own, producers, gaps.
fn build_again(batch: &Batch) -> Result<(), String> {
    let header = batch.header();
    let ours = BatchHeader {
        attributes: header.attributes & 0x20,
        last_offset_delta: header.record_count - 1,
        max_timestamp: header.base_timestamp,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        ..*header
    };
    if ours != *header || batch.raft_check().is_err() {
        return Ok(());
    }
    let (base, epoch, time) = (batch.base_offset(), batch.leader_epoch(), batch.base_timestamp());
    let records: Result<Vec<_>, _> = batch.records().map_err(|error| error.to_string())?.collect();
    let records = records.map_err(|error| error.to_string())?;
    let (built, len) = if batch.is_control() {
        let control = control_records(batch).map_err(|error| error.to_string())?;
        let control: Vec<_> = control.into_iter().map(|(_, record)| record).collect();
        if records.iter().zip(&control).any(|(record, ours)| record.key != Some(&ours.key())) {
            // A version in the key that nobody writes.
            return Ok(());
        }
        let built = encode_control(base, epoch, time, &control);
        let len = control_batch_len(&control);
        (built.map_err(|error| error.to_string())?, len.map_err(|error| error.to_string())?)
    } else {
        let values = records.iter().filter_map(|record| record.value);
        let values: Vec<_> = values.map(|value| batch.bytes().slice_ref(value)).collect();
        (encode_data(base, epoch, time, &values), data_batch_len(values.iter().map(Bytes::len)))
    };
    same_bytes("built again", &built, batch.bytes())?;
    same("computed length", &len, &built.len())
}

fn cut_short(batch: &Batch) -> Result<(), String> {
    for len in 0..batch.bytes().len() {
        match Batch::parse(&batch.bytes().slice(..len)) {
            Err(BatchError::Incomplete { available, .. }) if available == len => {}
            other => return Err(format!("cut after {len} bytes it gives {other:?}")),
        }
    }
    Ok(())
}

/// The damage must be named as what it is.
fn damaged(line: &Value, bytes: &Bytes, parsed: &Parsed) -> Result<(), String> {
    let found = parsed.iter().find_map(|batch| match batch {
        Err(error) => Some(error.clone()),
        Ok(batch) => {
            batch.records().map_or_else(Some, |records| records.filter_map(Result::err).next())
        }
    });
    let found = found.ok_or("no damage is found")?;
    let java = member(line, "javaError")?.as_str();
    let fits = match (&found, java) {
        (BatchError::Incomplete { .. }, None) => true,
        (BatchError::BadCrc { stored, computed }, Some(java)) => {
            java.contains(&format!("stored crc = {stored}, computed crc = {computed}"))
        }
        (BatchError::BadMagic { magic }, Some(java)) => {
            java.ends_with(&format!("Invalid magic found in record: {magic}"))
        }
        (BatchError::TooSmall { length }, Some(java)) => {
            java.contains(&format!("Record size {length} is less than"))
        }
        (BatchError::Record { .. }, Some(java)) => java.contains("premature EOF"),
        (BatchError::Surplus { .. }, Some(java)) => java.contains("records still remaining"),
        _ => false,
    };
    if !fits {
        return Err(format!("we find {found:?}, Java {java:?}"));
    }
    // Java counts a batch as seen before it looks at its CRC.
    let mut rest = bytes.clone();
    let mut seen = 0u64;
    while let Ok(header) = BatchHeader::parse(&rest)
        && header.total_len() <= rest.len()
    {
        rest = rest.split_off(header.total_len());
        seen += 1;
    }
    same("whole batches seen", &Some(seen), &member(line, "wholeBatchesSeen")?.as_u64())
}

/// Whether Java's Raft reader takes it, and whether we do. We may be stricter, never laxer.
fn verdict(line: &Value, parsed: &Parsed) -> Checked {
    let ours = parsed.iter().find_map(|batch| match batch {
        // Java's reader just stops before a tail that is cut short.
        Err(BatchError::Incomplete { .. }) => None,
        Err(error) => Some(error.clone()),
        Ok(batch) => batch.raft_check().err(),
    });
    match (string(line, "raftReader")?, ours) {
        ("ok", None) => Ok(Outcome::Passed),
        ("ok", Some(error @ (BatchError::Compressed(_) | BatchError::Surplus { .. }))) => {
            Ok(Outcome::Stricter(error.to_string()))
        }
        ("ok", Some(error)) => Err(format!("Java's Raft reader takes it, we do not: {error}")),
        (_, Some(_)) => Ok(Outcome::Passed),
        (java, None) => Err(format!("we take what Java's Raft reader refuses: {java}")),
    }
}
