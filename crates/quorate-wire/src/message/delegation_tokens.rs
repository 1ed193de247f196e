//! Create-, Renew-, Expire- and DescribeDelegationToken, keys 38 to 41 (KIP-48; v3 KIP-373).

use bytes::Bytes;

use crate::codec::{UnknownTags, Wire};

/// Asks for a delegation token.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 38, versions = 1..=3, flexible = 2..)]
pub struct CreateDelegationTokenRequest {
    /// The type of the owner's principal; null for whoever asks.
    #[wire(since = 3, default = Some(String::new()))]
    pub owner_principal_type: Option<String>,
    /// The owner's name; null for whoever asks.
    #[wire(since = 3, default = Some(String::new()))]
    pub owner_principal_name: Option<String>,
    /// Who else may renew it.
    pub renewers: Vec<CreatableRenewers>,
    /// How long it may live, in milliseconds; -1 for the default.
    pub max_lifetime_ms: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Who else may renew a token.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct CreatableRenewers {
    /// The type of the principal, such as `User`.
    pub principal_type: String,
    /// The principal's name.
    pub principal_name: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The token.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 38, versions = 1..=3, flexible = 2..)]
pub struct CreateDelegationTokenResponse {
    /// An error, or 0.
    pub error_code: i16,
    /// The type of the principal, such as `User`.
    pub principal_type: String,
    /// The principal's name.
    pub principal_name: String,
    /// The type of the principal that asked for it.
    #[wire(since = 3)]
    pub token_requester_principal_type: String,
    /// The name of the principal that asked for it.
    #[wire(since = 3)]
    pub token_requester_principal_name: String,
    /// When it was made, in milliseconds since 1970.
    pub issue_timestamp_ms: i64,
    /// When it expires unless renewed, in milliseconds since 1970.
    pub expiry_timestamp_ms: i64,
    /// Until when it can be renewed, in milliseconds since 1970.
    pub max_timestamp_ms: i64,
    /// The token's id.
    pub token_id: String,
    /// What proves it.
    pub hmac: Bytes,
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Asks to renew a token.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 39, versions = 1..=2, flexible = 2..)]
pub struct RenewDelegationTokenRequest {
    /// What proves it.
    pub hmac: Bytes,
    /// For how many milliseconds it is to be renewed.
    pub renew_period_ms: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Until when it is valid.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 39, versions = 1..=2, flexible = 2..)]
pub struct RenewDelegationTokenResponse {
    /// An error, or 0.
    pub error_code: i16,
    /// When it expires unless renewed, in milliseconds since 1970.
    pub expiry_timestamp_ms: i64,
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Asks to change when a token expires.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 40, versions = 1..=2, flexible = 2..)]
pub struct ExpireDelegationTokenRequest {
    /// What proves it.
    pub hmac: Bytes,
    /// In how many milliseconds it is to expire; below 0 for at once.
    pub expiry_time_period_ms: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// When it expires.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 40, versions = 1..=2, flexible = 2..)]
pub struct ExpireDelegationTokenResponse {
    /// An error, or 0.
    pub error_code: i16,
    /// When it expires unless renewed, in milliseconds since 1970.
    pub expiry_timestamp_ms: i64,
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Asks for the tokens of owners.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 41, versions = 1..=3, flexible = 2..)]
pub struct DescribeDelegationTokenRequest {
    /// Whose tokens; null for all.
    #[wire(default = Some(Vec::new()))]
    pub owners: Option<Vec<DescribeDelegationTokenOwner>>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// An owner of tokens.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribeDelegationTokenOwner {
    /// The type of the principal, such as `User`.
    pub principal_type: String,
    /// The principal's name.
    pub principal_name: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The tokens.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 41, versions = 1..=3, flexible = 2..)]
pub struct DescribeDelegationTokenResponse {
    /// An error, or 0.
    pub error_code: i16,
    /// The tokens.
    pub tokens: Vec<DescribedDelegationToken>,
    /// How long the request was throttled, in milliseconds.
    pub throttle_time_ms: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribedDelegationToken {
    /// The type of the principal, such as `User`.
    pub principal_type: String,
    /// The principal's name.
    pub principal_name: String,
    /// The type of the principal that asked for it.
    #[wire(since = 3)]
    pub token_requester_principal_type: String,
    /// The name of the principal that asked for it.
    #[wire(since = 3)]
    pub token_requester_principal_name: String,
    /// When it was made, in milliseconds since 1970.
    pub issue_timestamp: i64,
    /// When it expires unless renewed, in milliseconds since 1970.
    pub expiry_timestamp: i64,
    /// Until when it can be renewed, in milliseconds since 1970.
    pub max_timestamp: i64,
    /// The token's id.
    pub token_id: String,
    /// What proves it.
    pub hmac: Bytes,
    /// Who else may renew it.
    pub renewers: Vec<DescribedDelegationTokenRenewer>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Who else may renew a token.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DescribedDelegationTokenRenewer {
    /// The type of the principal, such as `User`.
    pub principal_type: String,
    /// The principal's name.
    pub principal_name: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
