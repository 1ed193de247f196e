//! `--workload`: records that a leader appends from inside, for tests and benches.
//!
//! Each is a NoOpRecord whose payload sits in an unknown tagged field, so that a Java node can read
//! the log and skips it. A payload begins with the record's id.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_wire::metadata::{MetadataRecord, NoOpRecord};
use quorate_wire::{EncodeError, UnknownTags};

/// The tagged field of NoOpRecord that holds the payload.
const PAYLOAD_TAG: u32 = 1000;

/// What `--workload` asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Workload {
    /// Records that are appended and not yet committed.
    pub(crate) in_flight: usize,
    /// Bytes of each payload; an id takes [`RecordId::LEN`] of them in any case.
    pub(crate) size: usize,
    /// Records a second at most; 0 for as many as there can be.
    pub(crate) rate: u32,
    /// Whether it is measured instead of told record by record.
    pub(crate) measure: Option<Measure>,
}

/// How a workload is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    /// For how long.
    pub(crate) window: Duration,
    /// For how long records are appended before that.
    pub(crate) warm_up: Duration,
    /// Records that one append may have, when so many are to be appended at the same time.
    pub(crate) batch: usize,
}

/// What one append may have unless told otherwise, in bytes of payloads; at least one of the largest fits.
const BATCH_BYTES: usize = 1 << 20;

/// The most records in flight.
const MAX_IN_FLIGHT: u32 = 100_000;

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        let mut in_flight = None;
        let (mut size, mut rate) = (RecordId::LEN, 0);
        let (mut window, mut warm_up, mut batch) = (None, None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let number = |range: RangeInclusive<u32>| match value.parse::<u32>() {
                Ok(number) if range.contains(&number) => Ok(number),
                _ => Err(format!(
                    "{key}={value}: give a number from {} to {}",
                    range.start(),
                    range.end()
                )),
            };
            let seconds = |range: RangeInclusive<f64>| match value.parse::<f64>() {
                Ok(number) if range.contains(&number) => Ok(Duration::from_secs_f64(number)),
                _ => Err(format!(
                    "{key}={value}: give seconds from {} to {}",
                    range.start(),
                    range.end()
                )),
            };
            match key {
                "inflight" => in_flight = Some(count_of(number(1..=MAX_IN_FLIGHT)?)),
                "size" => size = count_of(number(0..=1 << 20)?),
                "rate" => rate = number(0..=10_000_000)?,
                "seconds" => window = Some(seconds(0.1..=3600.0)?),
                "warmup" => warm_up = Some(seconds(0.0..=3600.0)?),
                "batch" => batch = Some(count_of(number(1..=MAX_IN_FLIGHT)?)),
                _ => {
                    return Err(format!(
                        "{part}: give inflight=N, size=BYTES, rate=PER-SECOND and, to measure, seconds=S, \
                         warmup=S and batch=N, separated by commas"
                    ));
                }
            }
        }
        let measure = match window {
            Some(window) => Some(Measure {
                window,
                warm_up: warm_up.unwrap_or_default(),
                batch: batch.unwrap_or(BATCH_BYTES / size.max(RecordId::LEN)),
            }),
            None if warm_up.is_some() || batch.is_some() => {
                return Err("warmup and batch are for a workload with seconds=S".to_owned());
            }
            None => None,
        };
        // At a rate nothing but the rate holds records back, unless told otherwise.
        let is_open = measure.is_some() && rate > 0;
        let most = if is_open { count_of(MAX_IN_FLIGHT) } else { 1 };
        Ok(Workload { in_flight: in_flight.unwrap_or(most), size, rate, measure })
    }
}

fn count_of(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
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
        let told = |in_flight, size, rate| Workload { in_flight, size, rate, measure: None };
        assert_eq!(parse("inflight=64,size=200,rate=1000"), Ok(told(64, 200, 1000)));
        assert_eq!(parse("rate=20"), Ok(told(1, 32, 20)));
        for bad in ["", "inflight=0", "inflight", "size=x", "speed=1", "rate=-1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_measured_workload_is_read_and_checked() {
        let parse = str::parse::<Workload>;
        let measure = |window, warm_up, batch| {
            let (window, warm_up) = (Duration::from_millis(window), Duration::from_millis(warm_up));
            Some(Measure { window, warm_up, batch })
        };
        let closed = parse("inflight=64,size=256,seconds=3,warmup=0.5,batch=8").expect("closed");
        assert_eq!((closed.in_flight, closed.measure), (64, measure(3000, 500, 8)));
        let one = parse("seconds=3").expect("one at a time");
        assert_eq!((one.in_flight, one.measure), (1, measure(3000, 0, 1 << 15)));
        let large = parse("seconds=3,size=1048576").expect("as large as can be");
        assert_eq!(large.measure, measure(3000, 0, 1));
        let open = parse("seconds=3,rate=20000").expect("open");
        assert_eq!((open.in_flight, open.rate), (100_000, 20_000));
        let bounded = parse("seconds=3,rate=20000,inflight=10").expect("open, with a bound");
        assert_eq!(bounded.in_flight, 10);
        for bad in ["warmup=1", "batch=2", "seconds=0", "seconds=NaN", "seconds=1e9", "seconds=-1"]
        {
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
