//! ACLs (KIP-801), SCRAM credentials (KIP-900) and delegation tokens (KIP-48): types 10, 11, 18, 19, 22 and 26.

use bytes::Bytes;

use crate::codec::{UnknownTags, Uuid, Wire};

/// An ACL is made.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 18, versions = 0..=0, flexible = 0..)]
pub struct AccessControlEntryRecord {
    /// Its id.
    pub id: Uuid,
    /// The type of the resource.
    pub resource_type: i8,
    /// The resource's name.
    pub resource_name: String,
    /// 3 literal, 4 prefixed.
    pub pattern_type: i8,
    /// Whom it is about.
    pub principal: String,
    /// A host name or address.
    pub host: String,
    /// What it allows or denies.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An ACL goes.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 19, versions = 0..=0, flexible = 0..)]
pub struct RemoveAccessControlEntryRecord {
    /// Its id.
    pub id: Uuid,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A SCRAM credential is set.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 11, versions = 0..=0, flexible = 0..)]
pub struct UserScramCredentialRecord {
    /// The user's name.
    pub name: String,
    /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
    pub mechanism: i8,
    /// The salt.
    pub salt: Bytes,
    /// SCRAM's StoredKey.
    pub stored_key: Bytes,
    /// SCRAM's ServerKey.
    pub server_key: Bytes,
    /// How many iterations the hash has.
    pub iterations: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A SCRAM credential goes.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 22, versions = 0..=0, flexible = 0..)]
pub struct RemoveUserScramCredentialRecord {
    /// The user's name.
    pub name: String,
    /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
    pub mechanism: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A delegation token is made, or renewed.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 10, versions = 0..=0, flexible = 0..)]
pub struct DelegationTokenRecord {
    /// The owner's principal.
    pub owner: String,
    /// The principal that asked for it.
    pub requester: String,
    /// Who else may renew it.
    pub renewers: Vec<String>,
    /// When it was made, in milliseconds since 1970.
    pub issue_timestamp: i64,
    /// Until when it can be renewed, in milliseconds since 1970.
    pub max_timestamp: i64,
    /// When it expires unless renewed, in milliseconds since 1970.
    pub expiration_timestamp: i64,
    /// The token's id.
    pub token_id: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A delegation token goes.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 26, versions = 0..=0, flexible = 0..)]
pub struct RemoveDelegationTokenRecord {
    /// The token's id.
    pub token_id: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
