//! The server's side: request frames become requests for the core, its answers become frames.
//!
//! Checks that need no state are made here, in Kafka's order: the cluster id, then the partition.

use bytes::Bytes;
use quorate_core::ids::Endpoints;
use quorate_core::message::{ErrorCode, KRaftVersion, LogRange, Request, Response};
use quorate_wire::frame::encode_response as frame;
use quorate_wire::message::{self as wire, ApiKey};
use quorate_wire::{DecodeError, EncodeError, Message};

use crate::{
    api_versions, begin_quorum_epoch, describe_quorum, describe_replica, end_quorum_epoch, fetch,
    fetch_snapshot, vote,
};

/// What a node knows of itself that is no business of its replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerContext {
    /// The cluster id in `meta.properties`.
    pub cluster_id: String,
    /// The level of kraft.version in force, which ApiVersions reports.
    pub kraft_version: KRaftVersion,
    /// Where this node listens, for DescribeReplica.
    pub listeners: Endpoints,
}

/// What a request frame turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The replica must answer, in this format.
    Request(Request, AnswerFormat),
    /// The answer needs no state: here it is, ready to be written.
    Answer(Vec<Bytes>),
}

/// How to encode the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerFormat {
    /// The API that was asked.
    pub api: ApiKey,
    /// The version that it was asked at.
    pub version: i16,
    correlation_id: i32,
}

/// A frame that is no request that we serve. There is no answer to it: the connection is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A version that is not served. Kafka closes the connection as well, except for ApiVersions.
    #[error("{} request at version {version}, which is not served", api.name())]
    UnsupportedVersion {
        /// The API.
        api: ApiKey,
        /// The version.
        version: i16,
    },
    /// An API that we do not serve, though we know its messages.
    #[error("{} request, which is not served", api.name())]
    NotServed {
        /// The API.
        api: ApiKey,
    },
    /// The header or the body does not decode, or the API is not known.
    #[error("malformed request: {0}")]
    Malformed(#[from] DecodeError),
    /// The answer that needs no state does not encode.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// An answer that cannot be encoded, which is a fault of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The version or the format cannot hold it.
    #[error("the answer does not encode: {0}")]
    Encode(#[from] EncodeError),
    /// It is the answer to another request.
    #[error("no answer to a {} request", .0.name())]
    OtherApi(ApiKey),
}

/// Decodes a request frame, without its length.
///
/// # Errors
/// See [`RequestError`].
pub fn decode_request(mut bytes: Bytes, context: &ServerContext) -> Result<Decoded, RequestError> {
    let header = wire::RequestHeader::read(&mut bytes)?;
    let version = header.request_api_version;
    // Always there: `read` refuses other keys.
    let Some(api) = ApiKey::from_code(header.request_api_key) else {
        return Err(RequestError::UnsupportedVersion { api: ApiKey::ApiVersions, version });
    };
    let format = AnswerFormat { api, version, correlation_id: header.correlation_id };
    if !api.versions().contains(&version) {
        if api != ApiKey::ApiVersions {
            return Err(RequestError::UnsupportedVersion { api, version });
        }
        // The body of an unknown version cannot be read; version 0 of the answer can, by anybody.
        let format = AnswerFormat { version: 0, ..format };
        return format.answer(&api_versions::unsupported());
    }
    let cluster_id = context.cluster_id.as_str();
    let request = match api {
        ApiKey::Vote => {
            let request = wire::VoteRequest::decode_exact(version, bytes)?;
            match vote::request_in(request, cluster_id) {
                Ok(request) => Request::Vote(request),
                Err(error) => return format.answer(&vote::refusal(error)),
            }
        }
        ApiKey::BeginQuorumEpoch => {
            let request = wire::BeginQuorumEpochRequest::decode_exact(version, bytes)?;
            match begin_quorum_epoch::request_in(request, cluster_id) {
                Ok(request) => Request::BeginQuorumEpoch(request),
                Err(error) => return format.answer(&begin_quorum_epoch::refusal(error)),
            }
        }
        ApiKey::EndQuorumEpoch => {
            let request = wire::EndQuorumEpochRequest::decode_exact(version, bytes)?;
            match end_quorum_epoch::request_in(request, cluster_id) {
                Ok(request) => Request::EndQuorumEpoch(request),
                Err(error) => return format.answer(&end_quorum_epoch::refusal(error)),
            }
        }
        ApiKey::Fetch => {
            let request = wire::FetchRequest::decode_exact(version, bytes)?;
            match fetch::request_in(request, version, cluster_id) {
                Ok(request) => Request::Fetch(request),
                Err(error) => return format.answer(&fetch::refusal(error)),
            }
        }
        ApiKey::FetchSnapshot => {
            let request = wire::FetchSnapshotRequest::decode_exact(version, bytes)?;
            match fetch_snapshot::request_in(request, cluster_id) {
                Ok(request) => Request::FetchSnapshot(request),
                Err(refusal) => return format.answer(&refusal),
            }
        }
        ApiKey::DescribeQuorum => {
            let request = wire::DescribeQuorumRequest::decode_exact(version, bytes)?;
            match describe_quorum::request_in(request) {
                Ok(()) => Request::DescribeQuorum,
                Err(refusal) => return format.answer(&refusal),
            }
        }
        ApiKey::DescribeReplica => {
            wire::DescribeReplicaRequest::decode_exact(version, bytes)?;
            Request::DescribeReplica
        }
        ApiKey::ApiVersions => {
            let request = wire::ApiVersionsRequest::decode_exact(version, bytes)?;
            return format.answer(&api_versions::answer(&request, version, context.kraft_version));
        }
        _ => return Err(RequestError::NotServed { api }),
    };
    Ok(Decoded::Request(request, format))
}

impl AnswerFormat {
    fn answer<M: Message>(self, body: &M) -> Result<Decoded, RequestError> {
        Ok(Decoded::Answer(self.frame(body)?))
    }

    fn frame<M: Message>(self, body: &M) -> Result<Vec<Bytes>, AnswerError> {
        Ok(frame(self.api, self.version, self.correlation_id, body)?)
    }
}

/// Encodes an answer as a frame in slices, its length included. Records are passed on as they are: whole
/// batches, of the range that a Fetch answer names. `now_ms` is the time since 1970, from which the
/// ages in descriptions are taken.
///
/// # Errors
/// See [`AnswerError`].
pub fn encode_response(
    format: AnswerFormat,
    response: &Response<LogRange>,
    records: Vec<Bytes>,
    context: &ServerContext,
    now_ms: i64,
) -> Result<Vec<Bytes>, AnswerError> {
    let version = format.version;
    match (format.api, response) {
        (ApiKey::Vote, Response::Vote(response)) => format.frame(&vote::response_out(response)),
        (ApiKey::BeginQuorumEpoch, Response::BeginQuorumEpoch(response)) => {
            format.frame(&begin_quorum_epoch::response_out(response))
        }
        (ApiKey::EndQuorumEpoch, Response::EndQuorumEpoch(response)) => {
            format.frame(&end_quorum_epoch::response_out(response))
        }
        (ApiKey::Fetch, Response::Fetch(response)) => {
            format.frame(&fetch::response_out(response, records, version))
        }
        (ApiKey::FetchSnapshot, Response::FetchSnapshot(response)) => {
            format.frame(&fetch_snapshot::response_out(response))
        }
        (ApiKey::DescribeQuorum, Response::DescribeQuorum(description)) => {
            format.frame(&describe_quorum::response_out(description, version, now_ms))
        }
        (ApiKey::DescribeReplica, Response::DescribeReplica(description)) => {
            format.frame(&describe_replica::response_out(description, context))
        }
        (_, Response::TopLevel(error)) => refuse(format, *error),
        (api, _) => Err(AnswerError::OtherApi(api)),
    }
}

/// An error at the top level and nothing else.
fn refuse(format: AnswerFormat, error: ErrorCode) -> Result<Vec<Bytes>, AnswerError> {
    match format.api {
        ApiKey::Vote => format.frame(&vote::refusal(error)),
        ApiKey::BeginQuorumEpoch => format.frame(&begin_quorum_epoch::refusal(error)),
        ApiKey::EndQuorumEpoch => format.frame(&end_quorum_epoch::refusal(error)),
        ApiKey::Fetch => format.frame(&fetch::refusal(error)),
        ApiKey::FetchSnapshot => format.frame(&fetch_snapshot::refusal(error)),
        ApiKey::DescribeQuorum => format.frame(&describe_quorum::refusal(error)),
        ApiKey::DescribeReplica => format.frame(&wire::DescribeReplicaResponse {
            error_code: error.0,
            error_message: Some(error_message(error).to_owned()),
            ..Default::default()
        }),
        _ => Err(AnswerError::OtherApi(format.api)),
    }
}

/// What an error means here, for people.
pub(crate) fn error_message(error: ErrorCode) -> &'static str {
    match error {
        ErrorCode::NONE => "",
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => "this node does not host the topic-partition",
        ErrorCode::NOT_LEADER_OR_FOLLOWER => "this node does not lead the metadata quorum",
        ErrorCode::BROKER_NOT_AVAILABLE => "this node is shutting down",
        _ => "the request failed",
    }
}
