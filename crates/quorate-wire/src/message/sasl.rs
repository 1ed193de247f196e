//! SaslHandshake, key 17 (KIP-43), and SaslAuthenticate, key 36 (KIP-152; v1 KIP-368).

use bytes::Bytes;

use crate::codec::{UnknownTags, Wire};

/// Chooses a SASL mechanism.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 17, versions = 0..=1)]
pub struct SaslHandshakeRequest {
    /// The SASL mechanism.
    pub mechanism: String,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Which mechanisms are enabled.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 17, versions = 0..=1)]
pub struct SaslHandshakeResponse {
    /// An error, or 0.
    pub error_code: i16,
    /// The SASL mechanisms that are enabled.
    pub mechanisms: Vec<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// A round of the chosen mechanism.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 36, versions = 0..=2, flexible = 2..)]
pub struct SaslAuthenticateRequest {
    /// What the mechanism has to say.
    pub auth_bytes: Bytes,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The server's part of the round.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 36, versions = 0..=2, flexible = 2..)]
pub struct SaslAuthenticateResponse {
    /// An error, or 0.
    pub error_code: i16,
    /// Its text.
    #[wire(default = Some(String::new()))]
    pub error_message: Option<String>,
    /// What the mechanism has to say.
    pub auth_bytes: Bytes,
    /// After how many milliseconds the client must authenticate again; 0 for never.
    #[wire(since = 1, ignorable)]
    pub session_lifetime_ms: i64,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
