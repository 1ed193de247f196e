//! The records of a batch, read where they lie.
//!
//! ```text
//! length varint, of what follows; attributes int8; timestampDelta varlong; offsetDelta varint;
//! keyLength varint (-1 for null), key; valueLength varint (-1 for null), value;
//! headerCount varint, headers: keyLength varint, key, valueLength varint (-1 for null), value
//! ```

use super::{Batch, BatchError, HEADER_LEN};

/// One record, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Its offset.
    pub offset: i64,
    /// Its offset less the batch's first.
    pub offset_delta: i32,
    /// Its time in milliseconds since 1970.
    pub timestamp: i64,
    /// Its own time less the batch's first.
    pub timestamp_delta: i64,
    /// Unused by Kafka.
    pub attributes: i8,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    headers: &'a [u8],
    header_count: i32,
}

impl<'a> RecordView<'a> {
    /// The headers; every one was checked.
    pub fn headers(&self) -> Headers<'a> {
        let mut cursor = Cursor { bytes: self.headers, position: 0 };
        // Past the count, which was read before.
        let _ = cursor.varint();
        Headers { cursor, left: self.header_count }
    }

    /// How many headers there are.
    pub fn header_count(&self) -> i32 {
        self.header_count
    }

    /// The headers with their count, as they lie.
    pub(super) fn raw_headers(&self) -> &'a [u8] {
        self.headers
    }
}

/// A header of a record: a key, and perhaps a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The key; UTF-8 by custom.
    pub key: &'a [u8],
    /// The value.
    pub value: Option<&'a [u8]>,
}

/// See [`RecordView::headers`].
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    cursor: Cursor<'a>,
    left: i32,
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1).filter(|left| *left >= 0)?;
        self.cursor.header().ok()
    }
}

/// See [`Batch::records`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    batch: &'a Batch,
    cursor: Cursor<'a>,
    index: usize,
    /// How many are still to come; -1 once all is said.
    left: i32,
}

impl<'a> Records<'a> {
    pub(super) fn new(batch: &'a Batch) -> Records<'a> {
        Records {
            batch,
            cursor: Cursor { bytes: batch.bytes(), position: HEADER_LEN },
            index: 0,
            left: batch.record_count(),
        }
    }

    fn record(&mut self) -> Result<RecordView<'a>, BatchError> {
        let start = self.cursor.position;
        read_record(self.batch, &mut self.cursor).map_err(|reason| BatchError::Record {
            index: self.index,
            position: start,
            reason,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.left {
            ..0 => None,
            0 => {
                self.left = -1;
                let count = self.batch.record_count();
                match self.cursor.left() {
                    0 => None,
                    left => Some(Err(BatchError::Surplus { left, count })),
                }
            }
            _ => {
                let record = self.record();
                self.index += 1;
                self.left = if record.is_ok() { self.left - 1 } else { -1 };
                Some(record)
            }
        }
    }
}

type Reason = &'static str;

fn read_record<'a>(batch: &Batch, outer: &mut Cursor<'a>) -> Result<RecordView<'a>, Reason> {
    let length = usize::try_from(outer.varint()?).map_err(|_| "its length is negative")?;
    let mut cursor = Cursor { bytes: outer.take(length)?, position: 0 };
    let attributes = i8::from_be_bytes([cursor.byte()?]);
    let timestamp_delta = cursor.varlong()?;
    let offset_delta = cursor.varint()?;
    let key = cursor.nullable()?;
    let value = cursor.nullable()?;
    let headers = cursor.rest();
    let header_count = cursor.varint()?;
    if header_count < 0 {
        return Err("its number of headers is negative");
    }
    for _ in 0..header_count {
        cursor.header()?;
    }
    if cursor.left() > 0 {
        return Err("it does not end where its length says");
    }
    let header = batch.header();
    let offset =
        header.base_offset.checked_add(offset_delta.into()).ok_or("its offset is out of range")?;
    let timestamp = match header.is_log_append_time() {
        true => header.max_timestamp,
        // Java's sum wraps too.
        false => header.base_timestamp.wrapping_add(timestamp_delta),
    };
    Ok(RecordView {
        offset,
        offset_delta,
        timestamp,
        timestamp_delta,
        attributes,
        key,
        value,
        headers,
        header_count,
    })
}

/// Reads off the front of a slice, and never past its end.
#[derive(Debug, Clone)]
struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    fn left(&self) -> usize {
        self.rest().len()
    }

    fn byte(&mut self) -> Result<u8, Reason> {
        let byte = self.rest().first().copied().ok_or("it is cut short")?;
        self.position += 1;
        Ok(byte)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Reason> {
        let taken = self.rest().get(..len).ok_or("a length in it is larger than what is left")?;
        self.position += len;
        Ok(taken)
    }

    fn nullable(&mut self) -> Result<Option<&'a [u8]>, Reason> {
        match usize::try_from(self.varint()?) {
            // Any negative length is null, as for Java.
            Err(_) => Ok(None),
            Ok(len) => self.take(len).map(Some),
        }
    }

    fn header(&mut self) -> Result<Header<'a>, Reason> {
        let key = self.nullable()?.ok_or("a header has no key")?;
        Ok(Header { key, value: self.nullable()? })
    }

    fn varint(&mut self) -> Result<i32, Reason> {
        let raw = self.unsigned(5)?;
        let raw = u32::try_from(raw).map_err(|_| "a number in it does not fit")?;
        let magnitude = i32::try_from(raw >> 1).map_err(|_| "a number in it does not fit")?;
        Ok(if raw & 1 == 0 { magnitude } else { !magnitude })
    }

    fn varlong(&mut self) -> Result<i64, Reason> {
        let raw = self.unsigned(10)?;
        let magnitude = i64::try_from(raw >> 1).map_err(|_| "a number in it does not fit")?;
        Ok(if raw & 1 == 0 { magnitude } else { !magnitude })
    }

    fn unsigned(&mut self, max_bytes: u32) -> Result<u64, Reason> {
        let mut value = 0u64;
        for index in 0..max_bytes {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * index;
            if bits.checked_shl(shift).is_none_or(|shifted| shifted >> shift != bits) {
                return Err("a number in it does not fit");
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number in it does not end")
    }
}
