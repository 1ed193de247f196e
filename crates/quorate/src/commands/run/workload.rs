//! `--workload`: records that a leader appends from inside, for tests and benches.
//!
//! Each is a NoOpRecord whose payload sits in an unknown tagged field, so that a Java node can read
//! the log and skips it. A payload begins with the record's id.

use std::fmt;
use std::str::FromStr;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_wire::metadata::{MetadataRecord, NoOpRecord};
use quorate_wire::{EncodeError, UnknownTags};

/// The tagged field of NoOpRecord that holds the payload.
const PAYLOAD_TAG: u32 = 1000;

/// What `--workload` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    /// Records that are appended and not yet committed.
    pub(crate) in_flight: usize,
    /// Bytes of each payload; an id takes [`RecordId::LEN`] of them in any case.
    pub(crate) size: usize,
    /// Records a second at most; 0 for as many as there can be.
    pub(crate) rate: u32,
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        let mut workload = Workload { in_flight: 1, size: RecordId::LEN, rate: 0 };
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let number = |range: std::ops::RangeInclusive<u32>| match value.parse::<u32>() {
                Ok(number) if range.contains(&number) => Ok(number),
                _ => Err(format!(
                    "{key}={value}: give a number from {} to {}",
                    range.start(),
                    range.end()
                )),
            };
            let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
            match key {
                "inflight" => workload.in_flight = size(number(1..=100_000)?),
                "size" => workload.size = size(number(0..=1 << 20)?),
                "rate" => workload.rate = number(0..=10_000_000)?,
                _ => {
                    return Err(format!(
                        "{part}: give inflight=N, size=N and rate=N, separated by commas"
                    ));
                }
            }
        }
        Ok(workload)
    }
}

/// Names a record, once and for all: the node, its start, and a number that counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordId {
    node: i32,
    start: u32,
    sequence: u64,
}

impl RecordId {
    /// Characters of its text: eight hex digits each for node and start, sixteen for the sequence.
    pub(crate) const LEN: usize = 32;
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}{:08x}{:016x}", self.node, self.start, self.sequence)
    }
}

/// Makes records, each with an id of its own.
#[derive(Debug)]
pub(crate) struct Records {
    next: RecordId,
    size: usize,
}

impl Records {
    /// `start` is a random number that tells this start of the node from others.
    pub(crate) fn new(node: i32, start: u32, size: usize) -> Records {
        Records { next: RecordId { node, start, sequence: 0 }, size: size.max(RecordId::LEN) }
    }

    /// The next record: its id, and the value of a data record.
    pub(crate) fn make(&mut self) -> Result<(RecordId, Bytes), EncodeError> {
        let id = self.next;
        self.next.sequence += 1;
        let mut payload = BytesMut::with_capacity(self.size);
        payload.put_slice(id.to_string().as_bytes());
        payload.put_bytes(b'.', self.size - RecordId::LEN);
        let mut unknown = UnknownTags::default();
        unknown.push(PAYLOAD_TAG, payload.freeze());
        Ok((id, MetadataRecord::NoOp(NoOpRecord { unknown }).encode(0)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_read_and_checked() {
        let parse = str::parse::<Workload>;
        assert_eq!(
            parse("inflight=64,size=200,rate=1000"),
            Ok(Workload { in_flight: 64, size: 200, rate: 1000 })
        );
        assert_eq!(parse("rate=20"), Ok(Workload { in_flight: 1, size: 32, rate: 20 }));
        for bad in ["", "inflight=0", "inflight", "size=x", "speed=1", "rate=-1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_record_is_a_no_op_that_begins_with_its_id() {
        let mut records = Records::new(3, 0xab, 40);
        let (first, value) = records.make().expect("it encodes");
        assert_eq!(first.to_string(), "00000003000000ab0000000000000000");
        let (record, version) = MetadataRecord::decode(value).expect("it decodes");
        let MetadataRecord::NoOp(no_op) = record else { panic!("{record:?}") };
        let payload = no_op.unknown.get(PAYLOAD_TAG).expect("the payload");
        assert_eq!((version, payload.len()), (0, 40));
        assert!(payload.starts_with(first.to_string().as_bytes()));
        let (second, _) = records.make().expect("it encodes");
        assert_eq!(second.to_string(), "00000003000000ab0000000000000001");
    }
}
