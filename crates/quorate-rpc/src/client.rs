//! The client's side: requests of the core become frames, answer frames become its responses.

use bytes::Bytes;
use quorate_core::message::{Received, Request, Response, Unreachable};
use quorate_wire::frame::encode_request as frame;
use quorate_wire::message::{self as wire, ApiKey, ResponseHeader, response_header_version};
use quorate_wire::{DecodeError, EncodeError, Message};

use crate::{
    begin_quorum_epoch, describe_quorum, describe_replica, end_quorum_epoch, fetch, fetch_snapshot,
    vote,
};

/// Who sends requests.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The client id in headers.
    pub client_id: &'a str,
    /// The cluster that the sender belongs to.
    pub cluster_id: &'a str,
}

/// The version cannot carry the request; what the core then makes of it is its affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer's version cannot carry the request")]
pub struct UnsupportedVersion;

impl From<EncodeError> for UnsupportedVersion {
    fn from(_: EncodeError) -> UnsupportedVersion {
        UnsupportedVersion
    }
}

/// Encodes a request as a frame in slices, its length included.
///
/// # Errors
/// If the version does not exist or cannot say what the request says: a pre-vote below Vote 2, any Fetch
/// of the metadata log below Fetch 13.
pub fn encode_request(
    request: &Request,
    version: i16,
    correlation_id: i32,
    origin: &Origin<'_>,
) -> Result<Vec<Bytes>, UnsupportedVersion> {
    let Origin { client_id, cluster_id } = *origin;
    let slices = match request {
        Request::Vote(request) => {
            let request = vote::request_out(request, cluster_id);
            frame(version, correlation_id, client_id, &request)
        }
        Request::BeginQuorumEpoch(request) => {
            let request = begin_quorum_epoch::request_out(request, cluster_id);
            frame(version, correlation_id, client_id, &request)
        }
        Request::EndQuorumEpoch(request) => {
            let request = end_quorum_epoch::request_out(request, cluster_id);
            frame(version, correlation_id, client_id, &request)
        }
        Request::Fetch(request) => {
            let request =
                fetch::request_out(request, version, cluster_id).ok_or(UnsupportedVersion)?;
            frame(version, correlation_id, client_id, &request)
        }
        Request::FetchSnapshot(request) => {
            let request = fetch_snapshot::request_out(request, cluster_id);
            frame(version, correlation_id, client_id, &request)
        }
        Request::DescribeQuorum => {
            frame(version, correlation_id, client_id, &describe_quorum::request_out())
        }
        Request::DescribeReplica => {
            let request = wire::DescribeReplicaRequest::default();
            frame(version, correlation_id, client_id, &request)
        }
    };
    Ok(slices?)
}

/// The correlation id of an answer frame, without its length; none if it is too short.
pub fn correlation_id(frame: &[u8]) -> Option<i32> {
    frame.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
}

/// Decodes an answer to a request of this API and version, without its length. `now_ms` is the time
/// since 1970, from which the ages in a description are counted.
///
/// # Errors
/// The top-level error, or [`Unreachable::Malformed`] for what does not decode or speaks of another
/// partition.
pub fn decode_response(
    api: ApiKey,
    version: i16,
    frame: Bytes,
    now_ms: i64,
) -> Result<Response<Received>, Unreachable> {
    Ok(match api {
        ApiKey::Vote => Response::Vote(vote::response_in(body(api, version, frame)?)?),
        ApiKey::BeginQuorumEpoch => {
            let response = body(api, version, frame)?;
            Response::BeginQuorumEpoch(begin_quorum_epoch::response_in(response)?)
        }
        ApiKey::EndQuorumEpoch => {
            let response = body(api, version, frame)?;
            Response::EndQuorumEpoch(end_quorum_epoch::response_in(response)?)
        }
        ApiKey::Fetch => Response::Fetch(fetch::response_in(body(api, version, frame)?)?),
        ApiKey::FetchSnapshot => {
            Response::FetchSnapshot(fetch_snapshot::response_in(body(api, version, frame)?)?)
        }
        ApiKey::DescribeQuorum => {
            let response = body(api, version, frame)?;
            Response::DescribeQuorum(describe_quorum::response_in(response, now_ms)?)
        }
        ApiKey::DescribeReplica => {
            let response = body(api, version, frame)?;
            Response::DescribeReplica(Box::new(describe_replica::response_in(response)?))
        }
        _ => return Err(Unreachable::Malformed),
    })
}

fn body<M: Message>(api: ApiKey, version: i16, frame: Bytes) -> Result<M, Unreachable> {
    decode_answer(api, version, frame).map_err(|_| Unreachable::Malformed)
}

/// Decodes any answer, header included, as a message of the wire.
///
/// # Errors
/// The first thing that is wrong.
pub fn decode_answer<M: Message>(
    api: ApiKey,
    version: i16,
    mut frame: Bytes,
) -> Result<M, DecodeError> {
    ResponseHeader::decode(response_header_version(api, version), &mut frame)?;
    M::decode_exact(version, frame)
}
