//! Batches and records in the terms of kafka-dump-log: the same names, the same text.

use bytes::Bytes;
use quorate_wire::batch::{Batch, RecordView};
use quorate_wire::control::{self, ControlRecord};
use quorate_wire::json::Value;
use quorate_wire::metadata::MetadataRecord;
use serde::Serialize;

/// A batch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownBatch {
    base_offset: i64,
    last_offset: i64,
    count: i32,
    base_sequence: i32,
    last_sequence: i32,
    producer_id: i64,
    producer_epoch: i16,
    partition_leader_epoch: i32,
    is_transactional: bool,
    is_control: bool,
    delete_horizon_ms: Option<i64>,
    position: u64,
    #[serde(rename = "CreateTime", skip_serializing_if = "Option::is_none")]
    create_time: Option<i64>,
    #[serde(rename = "LogAppendTime", skip_serializing_if = "Option::is_none")]
    log_append_time: Option<i64>,
    size: usize,
    magic: i8,
    compresscodec: String,
    crc: u32,
    isvalid: bool,
    /// Why the records could not be shown, or not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    records: Vec<ShownRecord>,
}

/// A record.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownRecord {
    offset: i64,
    #[serde(rename = "CreateTime")]
    create_time: i64,
    key_size: i64,
    value_size: i64,
    sequence: i32,
    header_keys: Vec<String>,
    #[serde(flatten)]
    content: Content,
}

/// What a record holds.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content {
    Metadata { r#type: String, version: i16, data: Value },
    Control { control: &'static str, value: Value },
    OtherControl { control: String },
    Undecoded { error: String },
}

/// Kafka's bits for transactions and for what compaction leaves behind.
const TRANSACTIONAL: i16 = 0x10;
const DELETE_HORIZON: i16 = 0x40;

impl ShownBatch {
    /// Shows a batch that stands at this position; `isvalid` tells whether its CRC is right.
    pub(crate) fn new(batch: &Batch, position: u64, isvalid: bool) -> ShownBatch {
        let header = *batch.header();
        let has_horizon = header.attributes & DELETE_HORIZON != 0;
        let is_append_time = header.is_log_append_time();
        let (records, error) = records(batch);
        ShownBatch {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            count: header.record_count,
            base_sequence: header.base_sequence,
            last_sequence: sequence(header.base_sequence, header.last_offset_delta),
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            partition_leader_epoch: header.partition_leader_epoch,
            is_transactional: header.attributes & TRANSACTIONAL != 0,
            is_control: header.is_control(),
            delete_horizon_ms: has_horizon.then_some(header.base_timestamp),
            position,
            create_time: (!is_append_time).then_some(header.max_timestamp),
            log_append_time: is_append_time.then_some(header.max_timestamp),
            size: batch.bytes().len(),
            magic: header.magic,
            compresscodec: header.compression().to_string(),
            crc: header.crc,
            isvalid,
            error,
            records,
        }
    }

    /// The lines that kafka-dump-log prints: one for the batch, one for each record.
    pub(crate) fn lines(&self) -> Vec<String> {
        let horizon = match self.delete_horizon_ms {
            Some(ms) => format!("OptionalLong[{ms}]"),
            None => "OptionalLong.empty".to_owned(),
        };
        let (time, ms) = match (self.create_time, self.log_append_time) {
            (_, Some(ms)) => ("LogAppendTime", ms),
            (ms, None) => ("CreateTime", ms.unwrap_or_default()),
        };
        let mut lines = vec![format!(
            "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} \
             producerEpoch: {} partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {horizon} \
             position: {} {time}: {ms} size: {} magic: {} compresscodec: {} crc: {} isvalid: {}",
            self.base_offset,
            self.last_offset,
            self.count,
            self.base_sequence,
            self.last_sequence,
            self.producer_id,
            self.producer_epoch,
            self.partition_leader_epoch,
            self.is_transactional,
            self.is_control,
            self.position,
            self.size,
            self.magic,
            self.compresscodec,
            self.crc,
            self.isvalid,
        )];
        lines.extend(self.records.iter().map(|record| record.line(time)));
        lines.extend(self.error.iter().map(|error| format!("| Error: {error}")));
        lines
    }
}

impl ShownRecord {
    fn line(&self, time: &str) -> String {
        format!(
            "| offset: {} {time}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [{}] {}",
            self.offset,
            self.create_time,
            self.key_size,
            self.value_size,
            self.sequence,
            self.header_keys.join(","),
            self.content.text(self.offset),
        )
    }
}

impl Content {
    fn text(&self, offset: i64) -> String {
        match self {
            Content::Metadata { r#type, version, data } => {
                format!(r#"payload: {{"type":"{}","version":{version},"data":{data}}}"#, r#type)
            }
            // The only one with a colon.
            Content::Control { control: LEADER_CHANGE, value } => format!("LeaderChange: {value}"),
            Content::Control { control, value } => format!("{control} {value}"),
            Content::OtherControl { control } => format!("controlType: {control}"),
            Content::Undecoded { error } => {
                format!("payload: Error at {offset}, skipping. {error}")
            }
        }
    }
}

const LEADER_CHANGE: &str = "LeaderChange";

/// The records as far as they can be read, and why not further.
fn records(batch: &Batch) -> (Vec<ShownRecord>, Option<String>) {
    let records = match batch.records() {
        Ok(records) => records,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let mut shown = Vec::new();
    for record in records {
        match record {
            Ok(record) => shown.push(show(batch, &record)),
            Err(error) => return (shown, Some(error.to_string())),
        }
    }
    (shown, None)
}

fn show(batch: &Batch, record: &RecordView<'_>) -> ShownRecord {
    let size = |bytes: Option<&[u8]>| {
        bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX))
    };
    let value = batch.bytes().slice_ref(record.value.unwrap_or_default());
    let content = match batch.is_control() {
        true => control_content(record.key.unwrap_or_default(), value),
        false => metadata_content(value),
    };
    ShownRecord {
        offset: record.offset,
        create_time: record.timestamp,
        key_size: size(record.key),
        value_size: size(record.value),
        sequence: sequence(batch.header().base_sequence, record.offset_delta),
        header_keys: record
            .headers()
            .map(|header| String::from_utf8_lossy(header.key).into_owned())
            .collect(),
        content,
    }
}

/// Sequences begin again at 0 after the largest; -1 stands for none.
fn sequence(base: i32, delta: i32) -> i32 {
    match base.checked_add(delta) {
        _ if base < 0 => base,
        Some(sequence) => sequence,
        None => delta - (i32::MAX - base) - 1,
    }
}

fn control_content(key: &[u8], value: Bytes) -> Content {
    let record = match ControlRecord::decode(key, value) {
        Ok(record) => record,
        Err(error) => {
            return match control::decode_key(key) {
                Ok(0) => Content::OtherControl { control: "ABORT(0)".to_owned() },
                Ok(1) => Content::OtherControl { control: "COMMIT(1)".to_owned() },
                Ok(2..=6) | Err(_) => Content::Undecoded { error: error.to_string() },
                Ok(other) => Content::OtherControl { control: format!("UNKNOWN({other})") },
            };
        }
    };
    let control = match &record {
        ControlRecord::LeaderChange(_) => LEADER_CHANGE,
        ControlRecord::SnapshotHeader(_) => "SnapshotHeader",
        ControlRecord::SnapshotFooter(_) => "SnapshotFooter",
        ControlRecord::KRaftVersion(_) => "KRaftVersion",
        ControlRecord::Voters(_) => "KRaftVoters",
    };
    Content::Control { control, value: record.to_json() }
}

fn metadata_content(value: Bytes) -> Content {
    match MetadataRecord::decode(value) {
        Ok((record, version)) => {
            let (r#type, data) = (upper_snake(record.name()), record.to_json(version));
            Content::Metadata { r#type, version, data }
        }
        Err(error) => Content::Undecoded { error: error.to_string() },
    }
}

/// `NoOpRecord` as `NO_OP_RECORD`.
fn upper_snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(c.to_ascii_uppercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_wire::batch::{encode_control, encode_data};

    fn shown(bytes: Bytes) -> ShownBatch {
        ShownBatch::new(&Batch::parse(&bytes).expect("a batch").0, 0, true)
    }

    #[test]
    fn what_does_not_decode_is_named_and_the_rest_goes_on() {
        let values = [&b"\x01\x14\x00\x00"[..], b"\x01\xc8\x01\x00\x00", b"raw"];
        let batch = shown(encode_data(7, 1, 5, &values.map(Bytes::from_static)));
        let lines = batch.lines();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].ends_with(r#"payload: {"type":"NO_OP_RECORD","version":0,"data":{}}"#));
        let unknown =
            "payload: Error at 8, skipping. MetadataRecord.type at byte 0: type 200 is not known";
        assert!(lines[2].ends_with(unknown), "{}", lines[2]);
        assert!(
            lines[3].contains(
                "valueSize: 3 sequence: -1 headerKeys: [] payload: Error at 9, skipping."
            )
        );
        let json = serde_json::to_value(&batch).expect("JSON");
        assert_eq!(json["records"][0]["type"], "NO_OP_RECORD");
        assert!(json["records"][2]["error"].as_str().is_some());
    }

    #[test]
    fn control_types_that_nobody_knows_have_their_number() {
        assert!(matches!(
            control_content(&[0, 0, 0, 9], Bytes::new()),
            Content::OtherControl { control } if control == "UNKNOWN(9)"
        ));
        assert!(matches!(control_content(&[0, 0, 0, 3], Bytes::new()), Content::Undecoded { .. }));
        let change = ControlRecord::LeaderChange(Default::default());
        let batch = shown(encode_control(0, 1, 5, &[change]).expect("it encodes"));
        let text = r#"LeaderChange: {"version":0,"leaderId":0,"voters":[],"grantingVoters":[]}"#;
        assert!(batch.lines()[1].ends_with(text), "{}", batch.lines()[1]);
    }

    #[test]
    fn sequences_wrap_at_the_largest() {
        assert_eq!(sequence(-1, 5), -1);
        assert_eq!(sequence(7, 5), 12);
        assert_eq!(sequence(i32::MAX, 0), i32::MAX);
        assert_eq!(sequence(i32::MAX, 1), 0);
    }
}
