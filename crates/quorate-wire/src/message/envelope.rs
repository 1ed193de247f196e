//! Envelope, key 58 (KIP-590), and the principal in it.

use bytes::Bytes;

use crate::codec::{UnknownTags, Wire};

/// A client's request that a broker passes on to the active controller.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 58, versions = 0..=0, flexible = 0..)]
pub struct EnvelopeRequest {
    /// The embedded request: header and body.
    pub request_data: Bytes,
    /// Who asked: an int16 version, then [`DefaultPrincipalData`].
    #[wire(default = Some(Bytes::new()))]
    pub request_principal: Option<Bytes>,
    /// The client's address, 4 or 16 bytes.
    pub client_host_address: Bytes,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// The answer to the embedded request.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(key = 58, versions = 0..=0, flexible = 0..)]
pub struct EnvelopeResponse {
    /// The embedded response: header and body.
    pub response_data: Option<Bytes>,
    /// An error, or 0.
    pub error_code: i16,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

/// Who has sent an embedded request. An int16 version stands before it.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(versions = 0..=0, flexible = 0..)]
pub struct DefaultPrincipalData {
    /// What kind of principal it is, such as `User`.
    #[wire(name = "type")]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether a delegation token has authenticated it.
    pub token_authenticated: bool,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
