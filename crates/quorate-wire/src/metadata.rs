//! Metadata records: what the values of data records hold (KIP-631).
//!
//! A value is `uvarint frame version (1), uvarint type, uvarint version`, then the message, always
//! flexible, and nothing behind it.

use bytes::{Bytes, BytesMut};
#[cfg(feature = "json")]
use serde_json::Value;

use crate::codec::{Message, Reader, Writer, uvarint_len};
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
#[cfg(feature = "json")]
use crate::json::to_json;
#[cfg(feature = "vectors")]
use crate::vectors::{Check, Checked};

mod brokers;
mod configs;
mod controllers;
mod features;
mod security;
mod topics;
mod transactions;

pub use brokers::*;
pub use configs::*;
pub use controllers::*;
pub use features::*;
pub use security::*;
pub use topics::*;
pub use transactions::*;

const FRAME_VERSION: u32 = 1;

/// Writes the list of types once: the enum, its numbers and the way to each.
macro_rules! records {
    ($($(#[doc = $doc:literal])* $kind:ident = $key:literal, $record:ident;)*) => {
        /// A metadata record of any type of Kafka 4.4.
        #[derive(Clone, Debug, PartialEq)]
        pub enum MetadataRecord {
            $($(#[doc = $doc])* $kind($record),)*
        }

        impl MetadataRecord {
            /// Reads the value of a data record, and the version that it was written at.
            ///
            /// # Errors
            /// If it does not decode, or is of a type that is not known ([`DecodeErrorKind::UnknownKey`]).
            pub fn decode(value: Bytes) -> Result<(MetadataRecord, i16), DecodeError> {
                let (key, version, body) = split(value)?;
                let record = match key {
                    $($key => MetadataRecord::$kind(Message::decode_exact(version, body)?),)*
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
                    $(MetadataRecord::$kind(record) => encode(record, version),)*
                }
            }

            /// Kafka's name, such as `FeatureLevelRecord`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(MetadataRecord::$kind(_) => $record::NAME,)*
                }
            }

            /// Shows the fields that `version` has, in the form of [`crate::json`].
            #[cfg(feature = "json")]
            pub fn to_json(&self, version: i16) -> Value {
                match self {
                    $(MetadataRecord::$kind(record) => to_json(record, version),)*
                }
            }
        }

        /// Checks a line of golden vectors against the record that bears this name.
        #[cfg(feature = "vectors")]
        pub(crate) fn check_named(name: &str, line: &Value, check: &impl Check) -> Option<Checked> {
            match name {
                $($record::NAME => Some(check.check::<$record>(line)),)*
                _ => None,
            }
        }
    };
}

records! {
    /// Type 0: a broker joins the cluster, or comes back to it.
    RegisterBroker = 0, RegisterBrokerRecord;
    /// Type 1: a broker leaves for good.
    UnregisterBroker = 1, UnregisterBrokerRecord;
    /// Type 2: a topic is made.
    Topic = 2, TopicRecord;
    /// Type 3: a partition is made.
    Partition = 3, PartitionRecord;
    /// Type 4: a configuration of a resource changes.
    Config = 4, ConfigRecord;
    /// Type 5: something about a partition changes.
    PartitionChange = 5, PartitionChangeRecord;
    /// Type 7: a broker is fenced.
    FenceBroker = 7, FenceBrokerRecord;
    /// Type 8: a broker is fenced no longer.
    UnfenceBroker = 8, UnfenceBrokerRecord;
    /// Type 9: a topic and its partitions go.
    RemoveTopic = 9, RemoveTopicRecord;
    /// Type 10: a delegation token is made, or renewed.
    DelegationToken = 10, DelegationTokenRecord;
    /// Type 11: a SCRAM credential is set.
    UserScramCredential = 11, UserScramCredentialRecord;
    /// Type 12: the level of a feature.
    FeatureLevel = 12, FeatureLevelRecord;
    /// Type 14: a quota changes.
    ClientQuota = 14, ClientQuotaRecord;
    /// Type 15: a block of producer ids is handed out.
    ProducerIds = 15, ProducerIdsRecord;
    /// Type 17: something about a broker changes.
    BrokerRegistrationChange = 17, BrokerRegistrationChangeRecord;
    /// Type 18: an ACL is made.
    AccessControlEntry = 18, AccessControlEntryRecord;
    /// Type 19: an ACL goes.
    RemoveAccessControlEntry = 19, RemoveAccessControlEntryRecord;
    /// Type 20: nothing.
    NoOp = 20, NoOpRecord;
    /// Type 21: how far the migration from ZooKeeper is.
    ZkMigrationState = 21, ZkMigrationStateRecord;
    /// Type 22: a SCRAM credential goes.
    RemoveUserScramCredential = 22, RemoveUserScramCredentialRecord;
    /// Type 23: a transaction begins.
    BeginTransaction = 23, BeginTransactionRecord;
    /// Type 24: its records count.
    EndTransaction = 24, EndTransactionRecord;
    /// Type 25: its records do not count.
    AbortTransaction = 25, AbortTransactionRecord;
    /// Type 26: a delegation token goes.
    RemoveDelegationToken = 26, RemoveDelegationTokenRecord;
    /// Type 27: a controller says what it is.
    RegisterController = 27, RegisterControllerRecord;
    /// Type 28: topics lose their eligible leader replicas.
    ClearElr = 28, ClearElrRecord;
    /// Type 29: a controller's registration goes.
    UnregisterController = 29, UnregisterControllerRecord;
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
