//! What precedes a body: RequestHeader v1 and v2, ResponseHeader v0 and v1.

use bytes::Bytes;

use crate::codec::{Message, UnknownTags, Wire};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::message::{ApiKey, request_header_version};

/// Precedes every request; v2 before flexible bodies.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(versions = 1..=2, flexible = 2..)]
pub struct RequestHeader {
    /// Which API is asked.
    pub request_api_key: i16,
    /// At which version.
    pub request_api_version: i16,
    /// Comes back in the answer.
    pub correlation_id: i32,
    /// What the client calls itself.
    #[wire(default = Some(String::new()), never_flexible)]
    pub client_id: Option<String>,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}

impl RequestHeader {
    /// Reads the header off the front of a frame, at the version that its own first bytes name.
    ///
    /// A version of the API that is not built is no error here: ApiVersions must be answered all the
    /// same, and its header keeps its shape.
    ///
    /// # Errors
    /// If the API is not known or the header does not decode.
    pub fn read(frame: &mut Bytes) -> Result<RequestHeader, DecodeError> {
        let (key, version) = peek(frame).map_err(|error| error.of(RequestHeader::NAME))?;
        let api = ApiKey::from_code(key).ok_or_else(|| {
            let kind = DecodeErrorKind::UnknownKey { key: key.into() };
            DecodeError::new(kind, 0).within("requestApiKey").of(RequestHeader::NAME)
        })?;
        RequestHeader::decode(request_header_version(api, version), frame)
    }
}

fn peek(frame: &Bytes) -> Result<(i16, i16), DecodeError> {
    match frame.first_chunk() {
        Some(&[k1, k2, v1, v2]) => Ok((i16::from_be_bytes([k1, k2]), i16::from_be_bytes([v1, v2]))),
        None => {
            let kind = DecodeErrorKind::Truncated { needed: 4, left: frame.len() };
            Err(DecodeError::new(kind, 0))
        }
    }
}

/// Precedes every response; v1 before flexible bodies, but never before ApiVersions.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(versions = 0..=1, flexible = 1..)]
pub struct ResponseHeader {
    /// The request's.
    pub correlation_id: i32,
    /// Tagged fields that we do not know.
    #[wire(unknown)]
    pub unknown: UnknownTags,
}
