//! Frames: an int32 size, a header, a body.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::codec::{HEAD_CAPACITY, Message, Writer};
use crate::error::EncodeError;
use crate::message::{
    ApiKey, Request, RequestHeader, ResponseHeader, request_header_version, response_header_version,
};

/// The size of the size.
pub const SIZE_LEN: usize = 4;

/// A size that no frame may have. The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The size is negative or zero.
    #[error("a frame cannot have a size of {0} bytes")]
    Size(i32),
    /// The size is above the bound.
    #[error("a frame of {size} bytes is larger than {max}")]
    TooLarge {
        /// As large it claims to be.
        size: i32,
        /// The bound.
        max: usize,
    },
    /// The first bytes open a TLS handshake.
    #[error("the peer speaks TLS, this listener is plaintext")]
    Tls,
    /// The first bytes open an HTTP request or response.
    #[error("the peer speaks HTTP, this listener speaks Kafka's protocol")]
    Http,
}

/// Takes a whole frame, without its size, off the front of `buf`; `None` until all of it is there.
/// Nothing is reserved for a frame: `buf` grows with what has come.
///
/// # Errors
/// If the size is not above 0, or above `max`; see [`frame_size`].
pub fn next_frame(buf: &mut BytesMut, max: usize) -> Result<Option<Bytes>, FrameError> {
    match frame_size(buf, max)? {
        Some(size) if buf.len() - SIZE_LEN >= size => {
            let mut frame = buf.split_to(SIZE_LEN + size).freeze();
            Ok(Some(frame.split_off(SIZE_LEN)))
        }
        _ => Ok(None),
    }
}

/// The size of the frame that `buf` begins with, without the four bytes that say so; `None` while
/// those are not there.
///
/// # Errors
/// If it is not above 0, or above `max`. What looks like TLS or HTTP is named as such: that is what
/// usually stands behind an absurd size.
pub fn frame_size(buf: &[u8], max: usize) -> Result<Option<usize>, FrameError> {
    let Some(&first) = buf.first_chunk::<SIZE_LEN>() else { return Ok(None) };
    let size = i32::from_be_bytes(first);
    match usize::try_from(size) {
        Err(_) | Ok(0) => Err(FrameError::Size(size)),
        Ok(len) if len <= max => Ok(Some(len)),
        Ok(_) if first[0] == 0x16 && first[1] == 0x03 => Err(FrameError::Tls),
        Ok(_) if HTTP.contains(&&first) => Err(FrameError::Http),
        Ok(_) => Err(FrameError::TooLarge { size, max }),
    }
}

const HTTP: [&[u8; SIZE_LEN]; 9] =
    [b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"HTTP"];

/// A whole request as slices for one vectored write.
///
/// # Errors
/// If `version` cannot carry the request.
pub fn encode_request<R: Request>(
    version: i16,
    correlation_id: i32,
    client_id: &str,
    request: &R,
) -> Result<Vec<Bytes>, EncodeError> {
    let header = RequestHeader {
        request_api_key: R::API.code(),
        request_api_version: version,
        correlation_id,
        client_id: Some(client_id.to_owned()),
        ..RequestHeader::default()
    };
    encode(request_header_version(R::API, version), &header, version, request)
}

/// A whole response as slices for one vectored write: a small head, then the records as they are.
///
/// # Errors
/// If `version` cannot carry the response.
pub fn encode_response<M: Message>(
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    response: &M,
) -> Result<Vec<Bytes>, EncodeError> {
    let header = ResponseHeader { correlation_id, ..ResponseHeader::default() };
    encode(response_header_version(api, version), &header, version, response)
}

fn encode<H: Message, M: Message>(
    header_version: i16,
    header: &H,
    version: i16,
    body: &M,
) -> Result<Vec<Bytes>, EncodeError> {
    let len = header.encoded_len(header_version)? + body.encoded_len(version)?;
    let size = i32::try_from(len).map_err(|_| EncodeError::too_long(len).of(M::NAME))?;
    let mut buf = BytesMut::with_capacity(HEAD_CAPACITY.min(SIZE_LEN + len));
    buf.put_i32(size);
    let mut writer = Writer::vectored(buf);
    header.write(H::ctx(header_version), &mut writer);
    body.write(M::ctx(version), &mut writer);
    let parts = writer.into_parts();
    let written: usize = parts.iter().map(Bytes::len).sum();
    assert_eq!(written, SIZE_LEN + len, "{} v{version}: length", M::NAME);
    Ok(parts)
}
