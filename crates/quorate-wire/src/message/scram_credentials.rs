//! DescribeUserScramCredentials and AlterUserScramCredentials, keys 50 and 51 (KIP-554).

use bytes::Bytes;

use crate::codec::{UnknownTags, Wire};

/// Asks which SCRAM credentials users have.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 50, versions = 0..=0, flexible = 0..)]
pub struct DescribeUserScramCredentialsRequest {
    /// The users; null for all.
    #[wire(default = Some(Vec::new()))]
    pub users: Option<Vec<DescribedScramUser>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A user asked about.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribedScramUser {
    /// The name.
    pub name: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The SCRAM credentials of users.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 50, versions = 0..=0, flexible = 0..)]
pub struct DescribeUserScramCredentialsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// What came of each.
    pub results: Vec<DescribeUserScramCredentialsResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The SCRAM credentials of one user.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeUserScramCredentialsResult {
    /// The user's name.
    pub user: String,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// The user's credentials.
    pub credential_infos: Vec<ScramCredentialInfo>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A SCRAM credential, without its secrets.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ScramCredentialInfo {
    /// The SASL mechanism.
    pub mechanism: i8,
    /// How many iterations the hash has.
    pub iterations: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Sets and deletes SCRAM credentials.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 51, versions = 0..=0, flexible = 0..)]
pub struct AlterUserScramCredentialsRequest {
    /// The credentials that go.
    pub deletions: Vec<ScramCredentialDeletion>,
    /// The credentials to be set.
    pub upsertions: Vec<ScramCredentialUpsertion>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A SCRAM credential to be deleted.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ScramCredentialDeletion {
    /// The user's name.
    pub name: String,
    /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
    pub mechanism: i8,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A SCRAM credential to be set.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ScramCredentialUpsertion {
    /// The user's name.
    pub name: String,
    /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
    pub mechanism: i8,
    /// How many iterations the hash has.
    pub iterations: i32,
    /// The salt.
    pub salt: Bytes,
    /// The hash of password and salt.
    pub salted_password: Bytes,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of each user.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 51, versions = 0..=0, flexible = 0..)]
pub struct AlterUserScramCredentialsResponse {
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// What came of each.
    pub results: Vec<AlterUserScramCredentialsResult>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// What came of one user.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct AlterUserScramCredentialsResult {
    /// The user's name.
    pub user: String,
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
