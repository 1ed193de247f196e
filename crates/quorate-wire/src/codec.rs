//! Kafka's encodings and the traits behind `#[derive(Wire)]` (KIP-482).
//!
//! Encoding takes two walks: [`Wire::wire_len`] checks everything and gives the exact size,
//! [`Wire::write`] then cannot fail. Decoding is one walk over [`Bytes`], from which byte fields are
//! sliced and never copied. Memory stays in proportion to the input: every length is checked
//! against the bytes left before anything is reserved, and elements are charged to a budget.

use core::ops::RangeInclusive;

use bytes::{Bytes, BytesMut};

use crate::error::{DecodeError, DecodeErrorKind, EncodeError};

mod reader;
mod tags;
mod values;
mod writer;

pub use reader::Reader;
pub use tags::UnknownTags;
pub use values::{Records, Uuid};
pub use writer::{Writer, tag_count_len, tag_len, uvarint_len};

/// Makes a struct a message, or a part of one. Its fields are in wire order; what they may bear:
///
/// - `since = N`, `until = N`: the first and last version that has the field, both included;
/// - `tag = N`: the field is a tagged one, from `since` on; it is written unless at its default;
/// - `default = EXPR`: what the field is when absent, else what [`Default`] gives;
/// - `ignorable`: dropped by versions without it. Any other field must then be at its default;
/// - `nullable_since = N`: an [`Option`] that may not be null in versions before;
/// - `never_flexible`: encoded in the old way in flexible versions too;
/// - `name = "..."`: Kafka's name in JSON where it does not follow from the field's;
/// - `unknown`: keeps unknown tagged fields, which are dropped if nothing keeps them.
///
/// The struct itself bears `versions = A..=B`, `flexible = A..` and `key = N` if it is a whole
/// message. Versions of fields are its message's. [`Default`] gives the schema's defaults.
pub use quorate_wire_derive::Wire;

/// The most elements an array may have, as in Kafka 4.4.
pub const MAX_ARRAY_ELEMENTS: usize = 1_000_000;

/// The most tagged fields a struct may have, as in Kafka 4.4.
pub const MAX_TAGS: usize = 10_000;

/// The longest string in bytes of UTF-8, in the compact form too.
pub const MAX_STRING_LEN: usize = 32_767;

/// What is reserved for what surrounds the records in a vectored write; it grows beyond if it must.
pub(crate) const HEAD_CAPACITY: usize = 1024;

/// The version that a message is encoded at; nested structs share their message's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ctx {
    /// The message's version.
    pub version: i16,
    /// Whether lengths are compact and structs end in tagged fields.
    pub flexible: bool,
}

impl Ctx {
    /// The same version in the old encoding.
    pub fn rigid(self) -> Ctx {
        Ctx { flexible: false, ..self }
    }
}

/// A value that Kafka can put on the wire.
pub trait Wire: Sized {
    /// The exact size in bytes.
    ///
    /// # Errors
    /// What the version or the format cannot hold.
    fn wire_len(&self, ctx: Ctx) -> Result<usize, EncodeError>;

    /// Writes the value, of which [`Wire::wire_len`] had nothing to say against.
    fn write(&self, ctx: Ctx, writer: &mut Writer);

    /// Reads a value.
    ///
    /// # Errors
    /// The first thing that is wrong, with its field and position.
    fn read(ctx: Ctx, reader: &mut Reader) -> Result<Self, DecodeError>;
}

/// A value that may be absent on the wire. The provided methods are those of a struct, which a byte
/// precedes: `ff` for null, `01` otherwise.
pub trait Nullable: Wire {
    /// As [`Wire::wire_len`].
    ///
    /// # Errors
    /// As [`Wire::wire_len`].
    fn nullable_len(value: Option<&Self>, ctx: Ctx) -> Result<usize, EncodeError> {
        value.map_or(Ok(1), |value| Ok(1 + value.wire_len(ctx)?))
    }

    /// As [`Wire::write`].
    fn write_nullable(value: Option<&Self>, ctx: Ctx, writer: &mut Writer) {
        match value {
            None => (-1i8).write(ctx, writer),
            Some(value) => {
                1i8.write(ctx, writer);
                value.write(ctx, writer);
            }
        }
    }

    /// As [`Wire::read`].
    ///
    /// # Errors
    /// As [`Wire::read`].
    fn read_nullable(ctx: Ctx, reader: &mut Reader) -> Result<Option<Self>, DecodeError> {
        match i8::read(ctx, reader)? {
            ..0 => Ok(None),
            _ => Self::read(ctx, reader).map(Some),
        }
    }
}

/// A whole message: the body of a request or response, or of a record.
pub trait Message: Wire + Default {
    /// Kafka's name, such as `VoteRequest`.
    const NAME: &'static str;
    /// The API key of a request or response, the type of a control or metadata record.
    const KEY: Option<i16>;
    /// The versions that are built.
    const VERSIONS: RangeInclusive<i16>;
    /// The first flexible version; [`i16::MAX`] if there is none.
    const FLEXIBLE_SINCE: i16;

    /// How `version` is encoded.
    fn ctx(version: i16) -> Ctx {
        Ctx { version, flexible: version >= Self::FLEXIBLE_SINCE }
    }

    /// The exact size in bytes at `version`.
    ///
    /// # Errors
    /// If `version` is not built, or a field that it lacks and that may not be dropped is set.
    fn encoded_len(&self, version: i16) -> Result<usize, EncodeError> {
        check_version::<Self>(version)
            .map_err(|()| EncodeError::unsupported("", version))
            .and_then(|()| self.wire_len(Self::ctx(version)))
            .map_err(|error| error.of(Self::NAME))
    }

    /// Appends the encoded message to `buf`.
    ///
    /// # Errors
    /// As [`Message::encoded_len`]; then nothing is written.
    fn encode(&self, version: i16, buf: &mut BytesMut) -> Result<(), EncodeError> {
        let len = self.encoded_len(version)?;
        buf.reserve(len);
        let before = buf.len();
        let mut writer = Writer::contiguous(core::mem::take(buf));
        self.write(Self::ctx(version), &mut writer);
        *buf = writer.into_buf();
        assert_eq!(buf.len() - before, len, "{} v{version}: length", Self::NAME);
        Ok(())
    }

    /// Encodes into slices for one vectored write: the [`Records`] in it are passed on, not copied.
    ///
    /// # Errors
    /// As [`Message::encoded_len`].
    fn encode_vectored(&self, version: i16) -> Result<Vec<Bytes>, EncodeError> {
        let len = self.encoded_len(version)?;
        let mut writer = Writer::vectored(BytesMut::with_capacity(len.min(HEAD_CAPACITY)));
        self.write(Self::ctx(version), &mut writer);
        let parts = writer.into_parts();
        let written: usize = parts.iter().map(Bytes::len).sum();
        assert_eq!(written, len, "{} v{version}: length", Self::NAME);
        Ok(parts)
    }

    /// Reads a message off the front of `bytes` and leaves the rest there.
    ///
    /// # Errors
    /// The first thing that is wrong, with its field and its position in `bytes`, which is then left
    /// as it was.
    fn decode(version: i16, bytes: &mut Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes.clone());
        let message = check_version::<Self>(version)
            .map_err(|()| reader.error(DecodeErrorKind::UnsupportedVersion { version }))
            .and_then(|()| Self::read(Self::ctx(version), &mut reader))
            .map_err(|error| error.of(Self::NAME))?;
        *bytes = reader.into_rest();
        Ok(message)
    }

    /// Reads a message that must use up `bytes`.
    ///
    /// # Errors
    /// As [`Message::decode`], and if something is left over.
    fn decode_exact(version: i16, mut bytes: Bytes) -> Result<Self, DecodeError> {
        let whole = bytes.len();
        let message = Self::decode(version, &mut bytes)?;
        match bytes.len() {
            0 => Ok(message),
            left => {
                let kind = DecodeErrorKind::TrailingBytes { left };
                Err(DecodeError::new(kind, whole - left).of(Self::NAME))
            }
        }
    }
}

fn check_version<M: Message>(version: i16) -> Result<(), ()> {
    M::VERSIONS.contains(&version).then_some(()).ok_or(())
}
