//! Where encoded bytes go.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Ctx, MAX_TAGS, Wire};
use crate::error::EncodeError;

/// Collects encoded bytes, in one buffer or as slices for a vectored write.
#[derive(Debug)]
pub struct Writer {
    buf: BytesMut,
    parts: Option<Vec<Bytes>>,
}

impl Writer {
    /// Appends everything to `buf`.
    pub fn contiguous(buf: BytesMut) -> Writer {
        Writer { buf, parts: None }
    }

    /// Appends to `buf`, but passes records on as slices of their own.
    pub fn vectored(buf: BytesMut) -> Writer {
        Writer { buf, parts: Some(Vec::new()) }
    }

    /// What was written, if nothing was passed on.
    pub fn into_buf(self) -> BytesMut {
        self.buf
    }

    /// What was written, in order; no slice is empty.
    pub fn into_parts(mut self) -> Vec<Bytes> {
        let mut parts = self.parts.take().unwrap_or_default();
        if !self.buf.is_empty() {
            parts.push(self.buf.freeze());
        }
        parts
    }

    /// Writes bytes as they are.
    #[inline]
    pub fn slice(&mut self, bytes: &[u8]) {
        self.buf.put_slice(bytes);
    }

    /// Writes bytes as they are; on the way to a vectored write they are not copied.
    pub fn shared(&mut self, bytes: &Bytes) {
        match &mut self.parts {
            None => self.buf.put_slice(bytes),
            Some(_) if bytes.is_empty() => {}
            Some(parts) => {
                if !self.buf.is_empty() {
                    parts.push(self.buf.split().freeze());
                }
                parts.push(bytes.clone());
            }
        }
    }

    /// Writes an unsigned variable-length integer.
    #[inline]
    pub fn uvarint(&mut self, mut value: u32) {
        while value > 0x7f {
            self.buf.put_u8(low_bits(value) | 0x80);
            value >>= 7;
        }
        self.buf.put_u8(low_bits(value));
    }

    /// Writes how many tagged fields follow.
    pub fn tag_count(&mut self, count: usize) {
        self.uvarint(fit(count));
    }

    /// Writes a tagged field.
    pub fn tag<T: Wire>(&mut self, tag: u32, ctx: Ctx, value: &T) {
        let size = value.wire_len(ctx).expect("checked before anything is written");
        self.uvarint(tag);
        self.uvarint(fit(size));
        value.write(ctx, self);
    }

    /// Writes a tagged field whose content is known as bytes alone.
    pub fn unknown_tag(&mut self, tag: u32, data: &Bytes) {
        self.uvarint(tag);
        self.uvarint(fit(data.len()));
        self.slice(data);
    }

    /// Writes the length of an array or byte field, or null.
    pub(super) fn length(&mut self, ctx: Ctx, len: Option<usize>) {
        match (ctx.flexible, len) {
            (true, None) => self.uvarint(0),
            (true, Some(len)) => self.uvarint(fit(len) + 1),
            (false, None) => self.buf.put_i32(-1),
            (false, Some(len)) => self.buf.put_u32(fit(len)),
        }
    }

    /// Writes a string, or null.
    pub(super) fn string(&mut self, ctx: Ctx, text: Option<&str>) {
        match (ctx.flexible, text) {
            (true, _) => self.length(ctx, text.map(str::len)),
            (false, None) => self.buf.put_i16(-1),
            (false, Some(text)) => {
                self.buf.put_u16(u16::try_from(text.len()).expect("checked before writing"));
            }
        }
        self.slice(text.unwrap_or_default().as_bytes());
    }
}

/// The encoded size of an unsigned variable-length integer.
#[inline]
pub fn uvarint_len(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// The encoded size of a tagged field with a content of `size` bytes.
pub fn tag_len(tag: u32, size: usize) -> usize {
    uvarint_len(tag) + uvarint_len(u32::try_from(size).unwrap_or(u32::MAX)) + size
}

/// The encoded size of a count of tagged fields.
///
/// # Errors
/// If a peer would refuse as many.
pub fn tag_count_len(count: usize) -> Result<usize, EncodeError> {
    match u32::try_from(count) {
        Ok(small) if count <= MAX_TAGS => Ok(uvarint_len(small)),
        _ => Err(EncodeError::too_long(count)),
    }
}

/// The encoded size of a length, without what it is the length of.
pub(super) fn length_len(ctx: Ctx, len: Option<usize>) -> Result<usize, EncodeError> {
    let Some(len) = len else { return Ok(if ctx.flexible { 1 } else { 4 }) };
    match i32::try_from(len).ok().and_then(|len| u32::try_from(len).ok()) {
        Some(small) if ctx.flexible => Ok(uvarint_len(small + 1)),
        Some(_) => Ok(4),
        None => Err(EncodeError::too_long(len)),
    }
}

fn fit(len: usize) -> u32 {
    u32::try_from(len).expect("checked before anything is written")
}

#[allow(clippy::cast_possible_truncation)] // Seven bits are left.
fn low_bits(value: u32) -> u8 {
    (value & 0x7f) as u8
}
