//! A cursor over the bytes of one message.

use bytes::Bytes;

use super::{Ctx, MAX_ARRAY_ELEMENTS, MAX_STRING_LEN, MAX_TAGS, Wire};
use crate::error::{DecodeError, DecodeErrorKind};

/// How many bytes of elements a byte of input may become, and what is free beyond that. Elements as
/// senders really fill them become three times as large at most, empty ones up to 24 times.
const BUDGET_FACTOR: usize = 16;
const BUDGET_FREE: usize = 64 * 1024;

/// Reads values off the front of its bytes, and never past their end.
#[derive(Debug)]
pub struct Reader {
    bytes: Bytes,
    position: usize,
    /// Where reading stops: the end of the bytes, or of the tagged field at hand.
    end: usize,
    /// How much memory elements may still take.
    budget: usize,
}

impl Reader {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: Bytes) -> Reader {
        let end = bytes.len();
        let budget = end.saturating_mul(BUDGET_FACTOR).saturating_add(BUDGET_FREE);
        Reader { bytes, position: 0, end, budget }
    }

    /// What has not been read.
    pub fn into_rest(mut self) -> Bytes {
        self.bytes.split_off(self.position)
    }

    /// How many bytes may still be read.
    pub fn left(&self) -> usize {
        self.end - self.position
    }

    /// An error at the present position.
    pub fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind, self.position)
    }

    /// The error that a null gives where none may be.
    pub fn null(&self) -> DecodeError {
        self.error(DecodeErrorKind::Null)
    }

    /// The error that a tag gives in a version without it.
    pub fn tag_not_in_version(&self, tag: u32, version: i16) -> DecodeError {
        self.error(DecodeErrorKind::TagNotInVersion { tag, version })
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let found = self.bytes.get(self.position..self.end).and_then(<[u8]>::first_chunk);
        let found = *found.ok_or_else(|| self.truncated(N))?;
        self.position += N;
        Ok(found)
    }

    /// The next `len` bytes, as a slice of the input.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn take(&mut self, len: usize) -> Result<Bytes, DecodeError> {
        let from = self.advance(len)?;
        Ok(self.bytes.slice(from..self.position))
    }

    /// Passes over the next `len` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn skip(&mut self, len: usize) -> Result<(), DecodeError> {
        self.advance(len).map(|_| ())
    }

    /// An unsigned variable-length integer of at most five bytes. Needlessly long ones are taken, as
    /// Java's are.
    ///
    /// # Errors
    /// If it does not end, or does not fit 32 bits.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && byte > 0x0f {
                return Err(self.error(DecodeErrorKind::VarintTooLong));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error(DecodeErrorKind::VarintTooLong))
    }

    /// The length of an array or byte field; absent for null.
    ///
    /// # Errors
    /// If the length itself does not decode.
    pub(super) fn length(&mut self, ctx: Ctx) -> Result<Option<usize>, DecodeError> {
        if ctx.flexible {
            let len = self.uvarint()?;
            return Ok(len.checked_sub(1).map(|len| usize::try_from(len).unwrap_or(usize::MAX)));
        }
        // Any negative length means null, as for Java.
        Ok(usize::try_from(i32::from_be_bytes(self.array()?)).ok())
    }

    /// The length of an array, checked against the bytes left: no element is shorter than one.
    pub(super) fn array_length(&mut self, ctx: Ctx) -> Result<Option<usize>, DecodeError> {
        let Some(count) = self.length(ctx)? else { return Ok(None) };
        if count > MAX_ARRAY_ELEMENTS {
            return Err(self.error(DecodeErrorKind::TooManyElements { count }));
        }
        if count > self.left() {
            return Err(self.truncated(count));
        }
        Ok(Some(count))
    }

    /// A string; absent for null.
    pub(super) fn string(&mut self, ctx: Ctx) -> Result<Option<String>, DecodeError> {
        let len = match ctx.flexible {
            true => self.length(ctx)?,
            false => usize::try_from(i16::from_be_bytes(self.array()?)).ok(),
        };
        let Some(len) = len else { return Ok(None) };
        if len > MAX_STRING_LEN {
            return Err(self.error(DecodeErrorKind::StringTooLong { len }));
        }
        let from = self.advance(len)?;
        let text = self.bytes.get(from..self.position).map(core::str::from_utf8);
        match text {
            Some(Ok(text)) => Ok(Some(text.to_owned())),
            _ => Err(DecodeError::new(DecodeErrorKind::Utf8, from)),
        }
    }

    /// Takes the memory of one element off the budget.
    pub(super) fn charge(&mut self, size: usize) -> Result<(), DecodeError> {
        self.budget = self
            .budget
            .checked_sub(size)
            .ok_or_else(|| DecodeError::new(DecodeErrorKind::Memory, self.position))?;
        Ok(())
    }

    /// How many tagged fields follow.
    ///
    /// # Errors
    /// If there are too many, or more than bytes for them.
    pub fn tag_count(&mut self) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.uvarint()?).unwrap_or(usize::MAX);
        if count > MAX_TAGS {
            return Err(self.error(DecodeErrorKind::TooManyTags { count }));
        }
        match count > self.left() {
            true => Err(self.truncated(count)),
            false => Ok(count),
        }
    }

    /// A tag and the size of its content, which is there.
    ///
    /// # Errors
    /// If it is not there.
    pub fn tag(&mut self) -> Result<(u32, usize), DecodeError> {
        let tag = self.uvarint()?;
        let size = usize::try_from(self.uvarint()?).unwrap_or(usize::MAX);
        match size > self.left() {
            true => Err(self.truncated(size)),
            false => Ok((tag, size)),
        }
    }

    /// Reads a known tagged field from its own `size` bytes, which it must use up.
    ///
    /// Differs from Kafka: Java ignores the size and reads on as far as the content goes.
    ///
    /// # Errors
    /// If it does not use them up, or needs more.
    pub fn tagged<T: Wire>(&mut self, ctx: Ctx, tag: u32, size: usize) -> Result<T, DecodeError> {
        let outer = self.end;
        if size > self.left() {
            return Err(self.truncated(size));
        }
        self.end = self.position + size;
        let value = T::read(ctx, self).map_err(|error| match error.kind {
            DecodeErrorKind::Truncated { .. } => {
                DecodeError { kind: DecodeErrorKind::TagSize { tag }, ..error }
            }
            _ => error,
        })?;
        if self.left() > 0 {
            return Err(self.error(DecodeErrorKind::TagSize { tag }));
        }
        self.end = outer;
        Ok(value)
    }

    fn advance(&mut self, len: usize) -> Result<usize, DecodeError> {
        if len > self.left() {
            return Err(self.truncated(len));
        }
        let from = self.position;
        self.position += len;
        Ok(from)
    }

    fn truncated(&self, needed: usize) -> DecodeError {
        self.error(DecodeErrorKind::Truncated { needed, left: self.left() })
    }
}
