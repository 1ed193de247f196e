//! Control records: what steers the quorum itself, in logs and snapshots (KIP-595, KIP-630, KIP-853).
//!
//! A key is `int16 version, int16 type`; the value is the message of that type, always encoded at
//! version 0. The `version` inside the messages is plain data, and read whatever it says.

use bytes::{Bytes, BytesMut};
#[cfg(feature = "json")]
use serde_json::Value;

use crate::codec::{Message, UnknownTags, Uuid, Wire};
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
#[cfg(feature = "json")]
use crate::json::to_json;
use crate::message::Listener;

/// The version that values are written and read at.
const VALUE_VERSION: i16 = 0;

/// The size of a key.
pub const KEY_LEN: usize = 4;

/// A control record's type and value.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlRecord {
    /// Type 2: the first record of every epoch.
    LeaderChange(LeaderChangeMessage),
    /// Type 3: opens a snapshot.
    SnapshotHeader(SnapshotHeaderRecord),
    /// Type 4: closes a snapshot.
    SnapshotFooter(SnapshotFooterRecord),
    /// Type 5: the level of the feature `kraft.version`.
    KRaftVersion(KRaftVersionRecord),
    /// Type 6: the voter set.
    Voters(VotersRecord),
}

impl ControlRecord {
    /// The type in the key.
    pub fn type_code(&self) -> i16 {
        match self {
            ControlRecord::LeaderChange(_) => 2,
            ControlRecord::SnapshotHeader(_) => 3,
            ControlRecord::SnapshotFooter(_) => 4,
            ControlRecord::KRaftVersion(_) => 5,
            ControlRecord::Voters(_) => 6,
        }
    }

    /// The encoded key.
    pub fn key(&self) -> [u8; KEY_LEN] {
        let [high, low] = self.type_code().to_be_bytes();
        [0, 0, high, low]
    }

    /// The size of the encoded value.
    ///
    /// # Errors
    /// If a field is longer than the format allows.
    pub fn value_len(&self) -> Result<usize, EncodeError> {
        match self {
            ControlRecord::LeaderChange(value) => value.encoded_len(VALUE_VERSION),
            ControlRecord::SnapshotHeader(value) => value.encoded_len(VALUE_VERSION),
            ControlRecord::SnapshotFooter(value) => value.encoded_len(VALUE_VERSION),
            ControlRecord::KRaftVersion(value) => value.encoded_len(VALUE_VERSION),
            ControlRecord::Voters(value) => value.encoded_len(VALUE_VERSION),
        }
    }

    /// Appends the encoded value.
    ///
    /// # Errors
    /// As [`ControlRecord::value_len`].
    pub fn encode_value(&self, buf: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            ControlRecord::LeaderChange(value) => value.encode(VALUE_VERSION, buf),
            ControlRecord::SnapshotHeader(value) => value.encode(VALUE_VERSION, buf),
            ControlRecord::SnapshotFooter(value) => value.encode(VALUE_VERSION, buf),
            ControlRecord::KRaftVersion(value) => value.encode(VALUE_VERSION, buf),
            ControlRecord::Voters(value) => value.encode(VALUE_VERSION, buf),
        }
    }

    /// Shows the value in the form of [`crate::json`].
    #[cfg(feature = "json")]
    pub fn to_json(&self) -> Value {
        match self {
            ControlRecord::LeaderChange(value) => to_json(value, VALUE_VERSION),
            ControlRecord::SnapshotHeader(value) => to_json(value, VALUE_VERSION),
            ControlRecord::SnapshotFooter(value) => to_json(value, VALUE_VERSION),
            ControlRecord::KRaftVersion(value) => to_json(value, VALUE_VERSION),
            ControlRecord::Voters(value) => to_json(value, VALUE_VERSION),
        }
    }

    /// Reads a control record. The key's version may be any, as for Java.
    ///
    /// # Errors
    /// If the key is no key, its type is not one of 2 to 6 (Java's log reader stops at any other), or
    /// the value does not decode.
    pub fn decode(key: &[u8], value: Bytes) -> Result<ControlRecord, DecodeError> {
        let kind = decode_key(key)?;
        Ok(match kind {
            2 => ControlRecord::LeaderChange(Message::decode_exact(VALUE_VERSION, value)?),
            3 => ControlRecord::SnapshotHeader(Message::decode_exact(VALUE_VERSION, value)?),
            4 => ControlRecord::SnapshotFooter(Message::decode_exact(VALUE_VERSION, value)?),
            5 => ControlRecord::KRaftVersion(Message::decode_exact(VALUE_VERSION, value)?),
            6 => ControlRecord::Voters(Message::decode_exact(VALUE_VERSION, value)?),
            other => return Err(key_error(DecodeErrorKind::UnknownKey { key: other.into() })),
        })
    }
}

/// The type that a control record's key names.
///
/// # Errors
/// If the key is not four bytes long.
pub fn decode_key(key: &[u8]) -> Result<i16, DecodeError> {
    match *key {
        [_, _, high, low] => Ok(i16::from_be_bytes([high, low])),
        [_, _, _, _, ..] => {
            Err(key_error(DecodeErrorKind::TrailingBytes { left: key.len() - KEY_LEN }))
        }
        _ => Err(key_error(DecodeErrorKind::Truncated { needed: KEY_LEN, left: key.len() })),
    }
}

fn key_error(kind: DecodeErrorKind) -> DecodeError {
    DecodeError::new(kind, 0).within("key").of("ControlRecord")
}

/// The first record of every epoch. Logs hold version 0 alone, whatever the voters.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 2, versions = 0..=1, flexible = 0..)]
pub struct LeaderChangeMessage {
    /// Plain data, 0.
    pub version: i16,
    /// Who leads.
    pub leader_id: i32,
    /// All voters.
    pub voters: Vec<Voter>,
    /// Who granted its vote.
    pub granting_voters: Vec<Voter>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A voter in a [`LeaderChangeMessage`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct Voter {
    /// Which replica.
    pub voter_id: i32,
    /// Its log directory; no release writes it, since records stay at version 0.
    #[wire(since = 1)]
    pub voter_directory_id: Uuid,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Opens a snapshot.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 3, versions = 0..=0, flexible = 0..)]
pub struct SnapshotHeaderRecord {
    /// Plain data, 0.
    pub version: i16,
    /// When the last record that it contains was appended, in milliseconds since 1970.
    pub last_contained_log_timestamp: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Closes a snapshot.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 4, versions = 0..=0, flexible = 0..)]
pub struct SnapshotFooterRecord {
    /// Plain data, 0.
    pub version: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The level of the feature `kraft.version`.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 5, versions = 0..=0, flexible = 0..)]
pub struct KRaftVersionRecord {
    /// Plain data, 0.
    pub version: i16,
    /// The level.
    #[wire(name = "kRaftVersion")]
    pub kraft_version: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The voter set.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 6, versions = 0..=0, flexible = 0..)]
pub struct VotersRecord {
    /// Plain data, 0.
    pub version: i16,
    /// The voters.
    pub voters: Vec<VotersRecordVoter>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A voter in a [`VotersRecord`].
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct VotersRecordVoter {
    /// Which replica.
    pub voter_id: i32,
    /// Its log directory.
    pub voter_directory_id: Uuid,
    /// Where it listens; the names in upper case.
    pub endpoints: Vec<Listener>,
    /// The levels of kraft.version that it can run.
    #[wire(name = "kRaftVersionFeature")]
    pub kraft_version_feature: KRaftVersionFeature,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The levels of kraft.version that a voter can run, both ends included.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct KRaftVersionFeature {
    /// The lowest level.
    pub min_supported_version: i16,
    /// The highest level.
    pub max_supported_version: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
