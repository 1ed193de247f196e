//! Whole frames as they went over a connection.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::messages::both_ways;
use super::{Check, Checked, Outcome, hex, int16, member, same, same_bytes, string};
use crate::codec::Message;
use crate::frame::{SIZE_LEN, next_frame};
use crate::json::{Json, to_json};
use crate::message::{
    ApiKey, RequestHeader, ResponseHeader, request_header_version, response_header_version,
};

/// As large as a frame of the files may be.
const MAX: usize = 1 << 20;

/// A line with a frame: size, header, body.
pub(super) struct Frame;

impl Check for Frame {
    fn check<M: Message + Json + PartialEq>(&self, line: &Value) -> Checked {
        let version = int16(line, "version")?;
        let whole = hex(line, "hex")?;
        let mut frame = unframe(&whole)?;
        let header_version = int16(line, "headerVersion")?;
        let api = ApiKey::from_code(int16(line, "apiKey")?).ok_or("no API has this key")?;

        let start = frame.clone();
        let (expected, header) = match string(line, "direction")? {
            "request" => {
                let header = RequestHeader::read(&mut frame).map_err(|error| error.to_string())?;
                same("API in the header", &header.request_api_key, &api.code())?;
                same("version in the header", &header.request_api_version, &version)?;
                (request_header_version(api, version), to_json(&header, header_version))
            }
            _ => {
                let header = ResponseHeader::decode(header_version, &mut frame);
                let header = header.map_err(|error| error.to_string())?;
                (response_header_version(api, version), to_json(&header, header_version))
            }
        };
        same("header version", &expected, &header_version)?;
        same("header", &header, member(line, "header")?)?;
        if member(line, "reencodes")?.as_bool() != Some(true) {
            let body = M::decode_exact(version, frame).map_err(|error| error.to_string())?;
            same("decoded", &to_json(&body, version), member(line, "json")?)?;
            return Ok(Outcome::Passed);
        }
        both_ways::<M>(version, &frame, member(line, "json")?, None)?;
        let body = M::decode_exact(version, frame.clone()).map_err(|error| error.to_string())?;
        same_bytes("frame", &reframe(line, header_version, &start, &body)?, &whole)?;
        Ok(Outcome::Passed)
    }
}

/// Takes the size off, and sees that no part of the frame passes for the whole.
fn unframe(whole: &Bytes) -> Result<Bytes, String> {
    for len in 0..whole.len() {
        let mut part = BytesMut::from(whole.get(..len).unwrap_or_default());
        if next_frame(&mut part, MAX) != Ok(None) || part.len() != len {
            return Err(format!("{len} bytes pass for the whole frame"));
        }
    }
    let mut buf = BytesMut::from(whole.as_ref());
    match next_frame(&mut buf, MAX) {
        Ok(Some(frame)) if buf.is_empty() && frame.len() + SIZE_LEN == whole.len() => Ok(frame),
        other => Err(format!("the frame is taken as {other:?}")),
    }
}

/// Writes header and body again, behind a size.
fn reframe<M: Message>(
    line: &Value,
    header_version: i16,
    start: &Bytes,
    body: &M,
) -> Result<Bytes, String> {
    let mut inner = BytesMut::new();
    let mut rest = start.clone();
    let encoded = match string(line, "direction")? {
        "request" => RequestHeader::read(&mut rest)
            .map_err(|error| error.to_string())?
            .encode(header_version, &mut inner),
        _ => ResponseHeader::decode(header_version, &mut rest)
            .map_err(|error| error.to_string())?
            .encode(header_version, &mut inner),
    };
    encoded
        .and_then(|()| body.encode(int16(line, "version").unwrap_or_default(), &mut inner))
        .map_err(|error| error.to_string())?;
    let size = u32::try_from(inner.len()).map_err(|error| error.to_string())?;
    Ok([&size.to_be_bytes()[..], &inner].concat().into())
}
