//! Builds batches: one allocation of the exact size, one pass, then the CRC over the result.

use bytes::{BufMut, Bytes, BytesMut};

use super::{CONTROL, CRC_FROM, HEADER_LEN, LENGTH_BASE, MAGIC};
use crate::control::{ControlRecord, KEY_LEN};
use crate::crc::crc32c;
use crate::error::EncodeError;

/// Attributes, timestampDelta 0, headerCount 0: one byte each.
const FIXED_RECORD_LEN: usize = 3;

/// A data batch as a leader writes it: no keys, no headers, one time for all.
///
/// # Panics
/// If there are no values, an empty one, or more than a batch can hold: whoever gathers the values
/// keeps to its own, smaller bounds.
pub fn encode_data(
    base_offset: i64,
    leader_epoch: i32,
    timestamp_ms: i64,
    values: &[Bytes],
) -> Bytes {
    let len = data_batch_len(values.iter().map(Bytes::len));
    let mut buf = open(base_offset, leader_epoch, timestamp_ms, 0, values.len(), len);
    for (index, value) in values.iter().enumerate() {
        assert!(!value.is_empty(), "an empty record has no place in a metadata log");
        let delta = offset_delta(index);
        put_varint(&mut buf, signed(body_len(delta, None, value.len())));
        put_record(&mut buf, delta, None, value.len());
        buf.put_slice(value);
        put_varint(&mut buf, 0);
    }
    close(buf, len)
}

/// A batch of control records.
///
/// # Errors
/// If a record has a field longer than the format allows.
///
/// # Panics
/// If there are no records, or more than a batch can hold.
pub fn encode_control(
    base_offset: i64,
    leader_epoch: i32,
    timestamp_ms: i64,
    records: &[ControlRecord],
) -> Result<Bytes, EncodeError> {
    let len = control_batch_len(records)?;
    let mut buf = open(base_offset, leader_epoch, timestamp_ms, CONTROL, records.len(), len);
    for (index, record) in records.iter().enumerate() {
        let (delta, key, value_len) = (offset_delta(index), record.key(), record.value_len()?);
        put_varint(&mut buf, signed(body_len(delta, Some(KEY_LEN), value_len)));
        put_record(&mut buf, delta, Some(&key), value_len);
        record.encode_value(&mut buf)?;
        put_varint(&mut buf, 0);
    }
    Ok(close(buf, len))
}

/// The exact size of [`encode_data`]'s batch for values of these sizes.
pub fn data_batch_len(value_lens: impl IntoIterator<Item = usize>) -> usize {
    let records = value_lens.into_iter().enumerate();
    records.fold(HEADER_LEN, |len, (index, value)| len + record_len(offset_delta(index), value))
}

/// The exact size of one data record: what a value adds to a batch in which it is number
/// `offset_delta`.
pub fn record_len(offset_delta: i32, value_len: usize) -> usize {
    framed_len(body_len(offset_delta, None, value_len))
}

/// The exact size of [`encode_control`]'s batch.
///
/// # Errors
/// As [`encode_control`].
pub fn control_batch_len(records: &[ControlRecord]) -> Result<usize, EncodeError> {
    records.iter().enumerate().try_fold(HEADER_LEN, |len, (index, record)| {
        let body = body_len(offset_delta(index), Some(KEY_LEN), record.value_len()?);
        Ok(len + framed_len(body))
    })
}

fn framed_len(body: usize) -> usize {
    varint_len(signed(body)) + body
}

fn body_len(offset_delta: i32, key_len: Option<usize>, value_len: usize) -> usize {
    FIXED_RECORD_LEN
        + varint_len(offset_delta)
        + key_len.map_or(1, |len| varint_len(signed(len)) + len)
        + varint_len(signed(value_len))
        + value_len
}

/// What precedes a record's value, but for the record's length.
fn put_record(buf: &mut BytesMut, offset_delta: i32, key: Option<&[u8]>, value_len: usize) {
    buf.put_i8(0);
    put_varint(buf, 0);
    put_varint(buf, offset_delta);
    match key {
        None => put_varint(buf, -1),
        Some(key) => {
            put_varint(buf, signed(key.len()));
            buf.put_slice(key);
        }
    }
    put_varint(buf, signed(value_len));
}

fn open(
    base_offset: i64,
    leader_epoch: i32,
    timestamp_ms: i64,
    attributes: i16,
    count: usize,
    len: usize,
) -> BytesMut {
    assert!(count > 0, "an empty batch has no place in a metadata log");
    let mut buf = BytesMut::with_capacity(len);
    buf.put_i64(base_offset);
    buf.put_i32(signed(len - LENGTH_BASE));
    buf.put_i32(leader_epoch);
    buf.put_i8(MAGIC);
    buf.put_u32(0);
    buf.put_i16(attributes);
    buf.put_i32(offset_delta(count - 1));
    buf.put_i64(timestamp_ms);
    buf.put_i64(timestamp_ms);
    // No producer.
    buf.put_i64(-1);
    buf.put_i16(-1);
    buf.put_i32(-1);
    buf.put_i32(signed(count));
    buf
}

fn close(mut buf: BytesMut, len: usize) -> Bytes {
    assert_eq!(buf.len(), len, "length of a batch");
    let crc = crc32c(&buf[CRC_FROM..]);
    buf[CRC_FROM - 4..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
    buf.freeze()
}

fn put_varint(buf: &mut BytesMut, value: i32) {
    let mut raw = zigzag(value);
    while raw > 0x7f {
        buf.put_u8(low_bits(raw) | 0x80);
        raw >>= 7;
    }
    buf.put_u8(low_bits(raw));
}

fn varint_len(value: i32) -> usize {
    crate::codec::uvarint_len(zigzag(value))
}

fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)).cast_unsigned()
}

#[allow(clippy::cast_possible_truncation)] // Seven bits are left.
fn low_bits(value: u32) -> u8 {
    (value & 0x7f) as u8
}

fn offset_delta(index: usize) -> i32 {
    signed(index)
}

fn signed(len: usize) -> i32 {
    i32::try_from(len).expect("a batch is smaller than 2 GiB")
}
