//! How plain values stand on the wire.

use core::fmt;
use core::str::FromStr;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use super::writer::length_len;
use super::{Ctx, MAX_ARRAY_ELEMENTS, MAX_STRING_LEN, Nullable, Reader, Wire, Writer};
use crate::error::{DecodeError, EncodeError};

/// A 128-bit id: of a topic, or of a log directory.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Stands for "not known" and "not given".
    pub const ZERO: Uuid = Uuid([0; 16]);

    /// The id of the topic `__cluster_metadata`.
    pub const METADATA_TOPIC: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
}

/// Kafka's text form: 22 characters of URL-safe base64.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&UUID_TEXT.encode(self.0))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not a [`Uuid`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not 16 bytes in URL-safe base64")]
pub struct UuidError(String);

/// Takes what Java takes: at most 24 characters, padding or not, stray bits in the last character.
impl FromStr for Uuid {
    type Err = UuidError;

    fn from_str(text: &str) -> Result<Uuid, UuidError> {
        let error = || UuidError(text.chars().take(64).collect());
        if text.len() > 24 {
            return Err(error());
        }
        let bytes = UUID_TEXT.decode(text).map_err(|_| error())?;
        <[u8; 16]>::try_from(bytes).map(Uuid).map_err(|_| error())
    }
}

const UUID_TEXT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Record batches as they travel: any number of slices on the way out, one on the way in. They are
/// never parsed and, but for [`crate::Message::encode`], never copied by the codec.
#[derive(Clone, Debug, Default)]
pub struct Records(pub Vec<Bytes>);

impl Records {
    /// How many bytes they are.
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Bytes::is_empty)
    }

    /// All of them in one slice; copies only if there are several.
    pub fn into_bytes(mut self) -> Bytes {
        match self.0.len() {
            0 => Bytes::new(),
            1 => self.0.swap_remove(0),
            _ => self.0.concat().into(),
        }
    }
}

impl From<Bytes> for Records {
    fn from(bytes: Bytes) -> Records {
        Records(vec![bytes])
    }
}

/// Equal bytes, however they are cut.
impl PartialEq for Records {
    fn eq(&self, other: &Records) -> bool {
        self.len() == other.len() && self.0.iter().flatten().eq(other.0.iter().flatten())
    }
}

impl Eq for Records {}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            #[inline]
            fn wire_len(&self, _: Ctx) -> Result<usize, EncodeError> {
                Ok(size_of::<$number>())
            }

            #[inline]
            fn write(&self, _: Ctx, writer: &mut Writer) {
                writer.slice(&self.to_be_bytes());
            }

            #[inline]
            fn read(_: Ctx, reader: &mut Reader) -> Result<$number, DecodeError> {
                reader.array().map(<$number>::from_be_bytes)
            }
        }
    )*};
}

numbers!(i8, i16, u16, i32, i64, f64);

/// Any byte but zero reads as true, as for Java.
impl Wire for bool {
    fn wire_len(&self, _: Ctx) -> Result<usize, EncodeError> {
        Ok(1)
    }

    fn write(&self, _: Ctx, writer: &mut Writer) {
        writer.slice(&[u8::from(*self)]);
    }

    fn read(_: Ctx, reader: &mut Reader) -> Result<bool, DecodeError> {
        reader.array().map(|[byte]| byte != 0)
    }
}

impl Wire for Uuid {
    fn wire_len(&self, _: Ctx) -> Result<usize, EncodeError> {
        Ok(16)
    }

    fn write(&self, _: Ctx, writer: &mut Writer) {
        writer.slice(&self.0);
    }

    fn read(_: Ctx, reader: &mut Reader) -> Result<Uuid, DecodeError> {
        reader.array().map(Uuid)
    }
}

impl<T: Nullable> Wire for Option<T> {
    fn wire_len(&self, ctx: Ctx) -> Result<usize, EncodeError> {
        T::nullable_len(self.as_ref(), ctx)
    }

    fn write(&self, ctx: Ctx, writer: &mut Writer) {
        T::write_nullable(self.as_ref(), ctx, writer);
    }

    fn read(ctx: Ctx, reader: &mut Reader) -> Result<Option<T>, DecodeError> {
        T::read_nullable(ctx, reader)
    }
}

/// For what has a length that can say null: the plain form is the nullable one without the null.
macro_rules! plain_from_nullable {
    () => {
        fn wire_len(&self, ctx: Ctx) -> Result<usize, EncodeError> {
            Self::nullable_len(Some(self), ctx)
        }

        fn write(&self, ctx: Ctx, writer: &mut Writer) {
            Self::write_nullable(Some(self), ctx, writer);
        }

        fn read(ctx: Ctx, reader: &mut Reader) -> Result<Self, DecodeError> {
            Self::read_nullable(ctx, reader)?.ok_or_else(|| reader.null())
        }
    };
}

impl Wire for String {
    plain_from_nullable!();
}

impl Nullable for String {
    fn nullable_len(value: Option<&String>, ctx: Ctx) -> Result<usize, EncodeError> {
        let len = value.map_or(0, String::len);
        if len > MAX_STRING_LEN {
            return Err(EncodeError::too_long(len));
        }
        match ctx.flexible {
            true => Ok(length_len(ctx, value.map(String::len))? + len),
            false => Ok(2 + len),
        }
    }

    fn write_nullable(value: Option<&String>, ctx: Ctx, writer: &mut Writer) {
        writer.string(ctx, value.map(String::as_str));
    }

    fn read_nullable(ctx: Ctx, reader: &mut Reader) -> Result<Option<String>, DecodeError> {
        reader.string(ctx)
    }
}

impl Wire for Bytes {
    plain_from_nullable!();
}

impl Nullable for Bytes {
    fn nullable_len(value: Option<&Bytes>, ctx: Ctx) -> Result<usize, EncodeError> {
        Ok(length_len(ctx, value.map(Bytes::len))? + value.map_or(0, Bytes::len))
    }

    fn write_nullable(value: Option<&Bytes>, ctx: Ctx, writer: &mut Writer) {
        writer.length(ctx, value.map(Bytes::len));
        writer.slice(value.map_or(&[], |bytes| bytes));
    }

    fn read_nullable(ctx: Ctx, reader: &mut Reader) -> Result<Option<Bytes>, DecodeError> {
        reader.length(ctx)?.map(|len| reader.take(len)).transpose()
    }
}

impl Wire for Records {
    plain_from_nullable!();
}

impl Nullable for Records {
    fn nullable_len(value: Option<&Records>, ctx: Ctx) -> Result<usize, EncodeError> {
        let len = value.map(Records::len);
        Ok(length_len(ctx, len)? + len.unwrap_or_default())
    }

    fn write_nullable(value: Option<&Records>, ctx: Ctx, writer: &mut Writer) {
        writer.length(ctx, value.map(Records::len));
        for bytes in value.iter().flat_map(|records| &records.0) {
            writer.shared(bytes);
        }
    }

    fn read_nullable(ctx: Ctx, reader: &mut Reader) -> Result<Option<Records>, DecodeError> {
        Ok(Bytes::read_nullable(ctx, reader)?.map(Records::from))
    }
}

impl<T: Wire> Wire for Vec<T> {
    plain_from_nullable!();
}

impl<T: Wire> Nullable for Vec<T> {
    fn nullable_len(value: Option<&Vec<T>>, ctx: Ctx) -> Result<usize, EncodeError> {
        let count = value.map_or(0, Vec::len);
        if count > MAX_ARRAY_ELEMENTS {
            return Err(EncodeError::too_long(count));
        }
        let mut len = length_len(ctx, value.map(Vec::len))?;
        for (index, element) in value.iter().flat_map(|elements| elements.iter()).enumerate() {
            len += element.wire_len(ctx).map_err(|error| error.within(&format!("[{index}]")))?;
        }
        Ok(len)
    }

    fn write_nullable(value: Option<&Vec<T>>, ctx: Ctx, writer: &mut Writer) {
        writer.length(ctx, value.map(Vec::len));
        for element in value.iter().flat_map(|elements| elements.iter()) {
            element.write(ctx, writer);
        }
    }

    fn read_nullable(ctx: Ctx, reader: &mut Reader) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(count) = reader.array_length(ctx)? else { return Ok(None) };
        // The count is a claim; what is reserved for it stays below the bytes that are there.
        let mut elements = Vec::with_capacity(count.min(reader.left() / size_of::<T>().max(1)));
        for index in 0..count {
            reader.charge(size_of::<T>())?;
            let element =
                T::read(ctx, reader).map_err(|error| error.within(&format!("[{index}]")))?;
            elements.push(element);
        }
        Ok(Some(elements))
    }
}
