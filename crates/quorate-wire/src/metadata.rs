//! Metadata records: what the values of data records hold (KIP-631).
//!
//! A value is `uvarint frame version (1), uvarint type, uvarint version`, then the message, always
//! flexible, and nothing behind it.

use bytes::{Bytes, BytesMut};

use crate::codec::{Message, Reader, UnknownTags, Wire, Writer, uvarint_len};
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};

const FRAME_VERSION: u32 = 1;

/// The types of metadata record that are built.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataRecord {
    /// Type 12: the level of a feature.
    FeatureLevel(FeatureLevelRecord),
    /// Type 20: nothing.
    NoOp(NoOpRecord),
}

impl MetadataRecord {
    /// Reads the value of a data record, and the version that it was written at.
    ///
    /// # Errors
    /// If it does not decode, or is of a type that is not built ([`DecodeErrorKind::UnknownKey`]).
    pub fn decode(value: Bytes) -> Result<(MetadataRecord, i16), DecodeError> {
        let (key, version, body) = split(value)?;
        let record = match key {
            12 => MetadataRecord::FeatureLevel(Message::decode_exact(version, body)?),
            20 => MetadataRecord::NoOp(Message::decode_exact(version, body)?),
            _ => {
                let kind = DecodeErrorKind::UnknownKey { key: key.into() };
                return Err(DecodeError::new(kind, 0).within("type").of(NAME));
            }
        };
        Ok((record, version))
    }

    /// Encodes the value of a data record.
    ///
    /// # Errors
    /// If `version` cannot carry the record.
    pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
        match self {
            MetadataRecord::FeatureLevel(record) => encode(record, version),
            MetadataRecord::NoOp(record) => encode(record, version),
        }
    }
}

/// The level of a feature, `metadata.version` above all.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 12, versions = 0..=0, flexible = 0..)]
pub struct FeatureLevelRecord {
    /// The feature.
    pub name: String,
    /// Its level.
    pub feature_level: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Nothing; a Java node skips what stands in its unknown tagged fields.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 20, versions = 0..=0, flexible = 0..)]
pub struct NoOpRecord {
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

const NAME: &str = "MetadataRecord";

/// Takes the frame off a value: the type, the version and the message's bytes.
///
/// # Errors
/// If the frame is cut short, of another version than 1, or has numbers that no record can have.
pub fn split(value: Bytes) -> Result<(i16, i16, Bytes), DecodeError> {
    let mut reader = Reader::new(value);
    let mut number = |field| {
        let read = reader.uvarint().and_then(|number| {
            let kind = DecodeErrorKind::UnknownKey { key: number.into() };
            i16::try_from(number).map_err(|_| reader.error(kind))
        });
        read.map_err(|error| error.within(field).of(NAME))
    };
    let frame_version = number("frameVersion")?;
    let key = number("type")?;
    let version = number("version")?;
    if u32::try_from(frame_version) != Ok(FRAME_VERSION) {
        let kind = DecodeErrorKind::UnsupportedVersion { version: frame_version };
        return Err(DecodeError::new(kind, 0).within("frameVersion").of(NAME));
    }
    Ok((key, version, reader.into_rest()))
}

fn encode<M: Message>(record: &M, version: i16) -> Result<Bytes, EncodeError> {
    let number = |number: i16| u32::try_from(number).unwrap_or_default();
    let key = number(M::KEY.unwrap_or_default());
    let len = record.encoded_len(version)?;
    let head = uvarint_len(FRAME_VERSION) + uvarint_len(key) + uvarint_len(number(version));
    let mut writer = Writer::contiguous(BytesMut::with_capacity(head + len));
    writer.uvarint(FRAME_VERSION);
    writer.uvarint(key);
    writer.uvarint(number(version));
    record.write(M::ctx(version), &mut writer);
    Ok(writer.into_buf().freeze())
}
