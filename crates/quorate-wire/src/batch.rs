//! Record batches, version 2: what logs, snapshots and Fetch answers are made of.
//!
//! ```text
//!  0 baseOffset            int64    23 lastOffsetDelta  int32
//!  8 batchLength           int32    27 baseTimestamp    int64
//! 12 partitionLeaderEpoch  int32    35 maxTimestamp     int64
//! 16 magic                 int8     43 producerId       int64
//! 17 crc                   uint32   51 producerEpoch    int16
//! 21 attributes            int16    53 baseSequence     int32
//!                                   57 recordCount      int32   61 records
//! ```
//!
//! batchLength counts from byte 12, the CRC covers byte 21 to the end. A [`Batch`] is whole, and its
//! CRC is right; its records are read where they lie.

use bytes::Bytes;
use thiserror::Error;

use crate::control::ControlRecord;
use crate::crc::crc32c;
use crate::error::DecodeError;

mod builder;
mod records;

pub use builder::{control_batch_len, data_batch_len, encode_control, encode_data, record_len};
pub use records::{Header, Headers, RecordView, Records};

/// The size of what precedes the records.
pub const HEADER_LEN: usize = 61;

/// What batchLength does not count.
const LENGTH_BASE: usize = 12;

const MAGIC: i8 = 2;
const CRC_FROM: usize = 21;

const COMPRESSION_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const CONTROL: i16 = 0x20;

/// What can be wrong with a batch or with a record in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// The batch is cut short: normal at the end of a Fetch answer, and after a crash at that of a log.
    #[error("a batch of {needed} bytes is cut short after {available}")]
    Incomplete {
        /// As many bytes the batch has, or its header if even that is cut.
        needed: usize,
        /// As many there are.
        available: usize,
    },
    /// batchLength leaves no room for the header.
    #[error("batchLength {length} is less than a batch can have")]
    TooSmall {
        /// What batchLength says.
        length: i32,
    },
    /// Another format than version 2.
    #[error("magic {magic} is not 2")]
    BadMagic {
        /// What it says.
        magic: i8,
    },
    /// The bytes are not those that were written.
    #[error("stored CRC {stored:#010x}, computed {computed:#010x}")]
    BadCrc {
        /// What the batch says.
        stored: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// The offsets are negative, or run past the largest offset.
    #[error("base offset {base} with lastOffsetDelta {delta} is no range of offsets")]
    Offsets {
        /// baseOffset.
        base: i64,
        /// lastOffsetDelta.
        delta: i32,
    },
    /// recordCount is negative.
    #[error("recordCount {count} is negative")]
    Count {
        /// recordCount.
        count: i32,
    },
    /// The records are compressed. Differs from Kafka: KRaft writes none such, so we read none.
    #[error("the records are compressed with {0}")]
    Compressed(Compression),
    /// A record does not decode.
    #[error("record {index} at byte {position}: {reason}")]
    Record {
        /// Which record, counted from 0.
        index: usize,
        /// Where in the batch.
        position: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// Bytes are left after the last record.
    #[error("{left} bytes are left after the last of {count} records")]
    Surplus {
        /// As many bytes.
        left: usize,
        /// recordCount.
        count: i32,
    },
    /// A sound batch that Java's Raft reader stops at; see [`Batch::raft_check`].
    #[error("record {index} has no place in a metadata log: {reason}")]
    NotRaft {
        /// Which record, counted from 0.
        index: usize,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// A control record does not decode.
    #[error("control record {index}: {source}")]
    Control {
        /// Which record, counted from 0.
        index: usize,
        /// What is wrong.
        source: DecodeError,
    },
}

/// How records are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
    /// A number that stands for nothing.
    Unknown(u8),
}

impl core::fmt::Display for Compression {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Gzip => f.write_str("gzip"),
            Compression::Snappy => f.write_str("snappy"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Zstd => f.write_str("zstd"),
            Compression::Unknown(code) => write!(f, "codec {code}"),
        }
    }
}

/// The fixed part of a batch. Its numbers make sense together; its CRC is only what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// The offset of the first record.
    pub base_offset: i64,
    /// The bytes from byte 12 on; at least 49.
    pub batch_length: i32,
    /// The epoch of the leader that wrote the batch.
    pub partition_leader_epoch: i32,
    /// Always 2.
    pub magic: i8,
    /// CRC-32C of byte 21 to the end.
    pub crc: u32,
    /// Compression and the bits for timestamps, transactions and control records.
    pub attributes: i16,
    /// The last record's offset less the first's.
    pub last_offset_delta: i32,
    /// The first record's time in milliseconds since 1970.
    pub base_timestamp: i64,
    /// The largest time.
    pub max_timestamp: i64,
    /// -1 in metadata logs.
    pub producer_id: i64,
    /// -1 in metadata logs.
    pub producer_epoch: i16,
    /// -1 in metadata logs.
    pub base_sequence: i32,
    /// How many records there are.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header of a batch, whose records need not be there.
    ///
    /// # Errors
    /// [`BatchError::Incomplete`] if the header is not all there, unless what is there is already
    /// wrong: length, magic, offsets, count.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let incomplete = BatchError::Incomplete { needed: HEADER_LEN, available: bytes.len() };
        let Some(batch_length) = field(bytes, 8).map(i32::from_be_bytes) else {
            return Err(incomplete);
        };
        if total_len(batch_length).is_none_or(|len| len < HEADER_LEN) {
            return Err(BatchError::TooSmall { length: batch_length });
        }
        let Some(magic) = field(bytes, 16).map(i8::from_be_bytes) else {
            return Err(incomplete);
        };
        if magic != MAGIC {
            return Err(BatchError::BadMagic { magic });
        }
        let header = Self::fields(bytes).ok_or(incomplete)?;
        let (base, delta) = (header.base_offset, header.last_offset_delta);
        let end = base.checked_add(delta.into()).and_then(|last| last.checked_add(1));
        if base < 0 || delta < 0 || end.is_none() {
            return Err(BatchError::Offsets { base, delta });
        }
        if header.record_count < 0 {
            return Err(BatchError::Count { count: header.record_count });
        }
        Ok(header)
    }

    fn fields(bytes: &[u8]) -> Option<BatchHeader> {
        Some(BatchHeader {
            base_offset: field(bytes, 0).map(i64::from_be_bytes)?,
            batch_length: field(bytes, 8).map(i32::from_be_bytes)?,
            partition_leader_epoch: field(bytes, 12).map(i32::from_be_bytes)?,
            magic: field(bytes, 16).map(i8::from_be_bytes)?,
            crc: field(bytes, 17).map(u32::from_be_bytes)?,
            attributes: field(bytes, 21).map(i16::from_be_bytes)?,
            last_offset_delta: field(bytes, 23).map(i32::from_be_bytes)?,
            base_timestamp: field(bytes, 27).map(i64::from_be_bytes)?,
            max_timestamp: field(bytes, 35).map(i64::from_be_bytes)?,
            producer_id: field(bytes, 43).map(i64::from_be_bytes)?,
            producer_epoch: field(bytes, 51).map(i16::from_be_bytes)?,
            base_sequence: field(bytes, 53).map(i32::from_be_bytes)?,
            record_count: field(bytes, 57).map(i32::from_be_bytes)?,
        })
    }

    /// The size of the whole batch.
    pub fn total_len(&self) -> usize {
        total_len(self.batch_length).expect("parse has checked it")
    }

    /// The offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// The offset after the last record.
    pub fn end_offset(&self) -> i64 {
        self.last_offset() + 1
    }

    /// Whether the records steer the quorum itself.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// How the records are compressed.
    pub fn compression(&self) -> Compression {
        match self.attributes & COMPRESSION_MASK {
            0 => Compression::None,
            1 => Compression::Gzip,
            2 => Compression::Snappy,
            3 => Compression::Lz4,
            4 => Compression::Zstd,
            other => Compression::Unknown(u8::try_from(other).unwrap_or(u8::MAX)),
        }
    }

    /// Whether every record has the time at which it was appended, the header's largest.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// `None` if no batch can have this length.
fn total_len(batch_length: i32) -> Option<usize> {
    usize::try_from(batch_length).ok()?.checked_add(LENGTH_BASE)
}

/// One whole batch; with the right CRC unless it was read by [`Batch::parse_unchecked`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    header: BatchHeader,
    bytes: Bytes,
}

impl Batch {
    /// Takes the batch that `bytes` begins with, and what comes after it. Nothing is copied.
    ///
    /// # Errors
    /// If the batch is not whole or not right; what its records hold is not looked at.
    pub fn parse(bytes: &Bytes) -> Result<(Batch, Bytes), BatchError> {
        let (batch, rest) = Batch::parse_unchecked(bytes)?;
        let (stored, computed) = (batch.header.crc, batch.computed_crc());
        match stored == computed {
            true => Ok((batch, rest)),
            false => Err(BatchError::BadCrc { stored, computed }),
        }
    }

    /// As [`Batch::parse`], whatever the CRC says: for tools that show damage.
    ///
    /// # Errors
    /// If the batch is not whole.
    pub fn parse_unchecked(bytes: &Bytes) -> Result<(Batch, Bytes), BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let needed = header.total_len();
        if needed > bytes.len() {
            return Err(BatchError::Incomplete { needed, available: bytes.len() });
        }
        let mut whole = bytes.clone();
        let rest = whole.split_off(needed);
        Ok((Batch { header, bytes: whole }, rest))
    }

    fn computed_crc(&self) -> u32 {
        crc32c(self.bytes.get(CRC_FROM..).unwrap_or_default())
    }

    /// The fixed part.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch as it came.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole batch as it came.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The offset of the first record.
    pub fn base_offset(&self) -> i64 {
        self.header.base_offset
    }

    /// The offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.header.last_offset()
    }

    /// The offset after the last record.
    pub fn end_offset(&self) -> i64 {
        self.header.end_offset()
    }

    /// The epoch of the leader that wrote the batch.
    pub fn leader_epoch(&self) -> i32 {
        self.header.partition_leader_epoch
    }

    /// Whether the records steer the quorum itself.
    pub fn is_control(&self) -> bool {
        self.header.is_control()
    }

    /// How the records are compressed.
    pub fn compression(&self) -> Compression {
        self.header.compression()
    }

    /// How many records the header announces.
    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }

    /// The first record's time in milliseconds since 1970.
    pub fn base_timestamp(&self) -> i64 {
        self.header.base_timestamp
    }

    /// The largest time in milliseconds since 1970.
    pub fn max_timestamp(&self) -> i64 {
        self.header.max_timestamp
    }

    /// The records, in order; after an error nothing more comes. The last item is an error if bytes
    /// are left over.
    ///
    /// # Errors
    /// If the records are compressed.
    pub fn records(&self) -> Result<Records<'_>, BatchError> {
        match self.compression() {
            Compression::None => Ok(Records::new(self)),
            other => Err(BatchError::Compressed(other)),
        }
    }

    /// Checks the rules of Java's Raft reader, which throws, and takes its process along, at the first
    /// record that breaks one, committed or not. Nothing that fails here may get into a log.
    ///
    /// Differs from Kafka: compressed batches, bytes after the last record, and offsets that do not
    /// ascend within the batch are refused too; KRaft writes none of them.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn raft_check(&self) -> Result<(), BatchError> {
        if self.record_count() == 0 {
            return Err(BatchError::NotRaft { index: 0, reason: "the batch is empty" });
        }
        let mut next_delta = 0;
        for (index, record) in self.records()?.enumerate() {
            let record = record?;
            let refuse = |reason| Err(BatchError::NotRaft { index, reason });
            if record.offset_delta < next_delta
                || record.offset_delta > self.header.last_offset_delta
            {
                return refuse("offsets do not ascend within the batch");
            }
            next_delta = record.offset_delta.saturating_add(1);
            if record.timestamp_delta != 0 {
                return refuse("a timestamp delta other than 0");
            }
            if record.raw_headers() != [0] {
                return refuse("headers");
            }
            match (self.is_control(), record.key, record.value) {
                (false, Some(_), _) => return refuse("a key"),
                (false, None, None) => return refuse("no value"),
                (true, None, _) => return refuse("a control record without a key"),
                (true, _, None) => return refuse("a control record without a value"),
                (_, _, Some([])) => return refuse("an empty value"),
                (true, Some(_), Some(_)) => {
                    self.control_record(index, &record)?;
                }
                (false, None, Some(_)) => {}
            }
        }
        Ok(())
    }

    fn control_record(
        &self,
        index: usize,
        record: &RecordView<'_>,
    ) -> Result<ControlRecord, BatchError> {
        let value = self.bytes.slice_ref(record.value.unwrap_or_default());
        ControlRecord::decode(record.key.unwrap_or_default(), value)
            .map_err(|source| BatchError::Control { index, source })
    }
}

/// The control records of a batch with their offsets; none if it holds data.
///
/// # Errors
/// If the batch is compressed, or a record does not decode.
pub fn control_records(batch: &Batch) -> Result<Vec<(i64, ControlRecord)>, BatchError> {
    let mut found = Vec::new();
    if batch.is_control() {
        for (index, record) in batch.records()?.enumerate() {
            let record = record?;
            found.push((record.offset, batch.control_record(index, &record)?));
        }
    }
    Ok(found)
}

/// The batches that `bytes` is made of, one after another; after an error nothing more comes.
pub fn batches(bytes: Bytes) -> Batches {
    Batches { rest: bytes, position: 0 }
}

/// See [`batches`].
#[derive(Debug, Clone)]
pub struct Batches {
    rest: Bytes,
    position: usize,
}

impl Batches {
    /// Where the next batch begins; after an error, where the bad one does.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let parsed = Batch::parse(&self.rest);
        match parsed {
            Ok((batch, rest)) => {
                self.position += batch.bytes.len();
                self.rest = rest;
                Some(Ok(batch))
            }
            Err(error) => {
                self.rest = Bytes::new();
                Some(Err(error))
            }
        }
    }
}
