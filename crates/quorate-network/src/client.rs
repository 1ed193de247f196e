//! A client for tools: one connection, one request at a time, any message.

use std::time::Duration;

use quorate_core::ids::Endpoint;
use quorate_rpc::api_versions::Versions;
use quorate_rpc::client::decode_answer;
use quorate_wire::frame::encode_request;
use quorate_wire::message::Request;
use quorate_wire::{DecodeError, EncodeError};
use tokio::time::{Instant, timeout_at};

use crate::connection::{Connection, Failure};
use crate::peers::response_max_bytes;

/// Why a tool's request has no answer. Each names the node that was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection, or it broke.
    #[error("{endpoint}: {reason}")]
    Unreachable {
        /// The node.
        endpoint: Endpoint,
        /// What happened.
        reason: String,
    },
    /// The node does not serve the API at a version that we speak.
    #[error("{endpoint} does not serve {request} (API key {key}) at a version that we speak")]
    Unsupported {
        /// The node.
        endpoint: Endpoint,
        /// The message.
        request: &'static str,
        /// Its API key.
        key: i16,
    },
    /// The best common version cannot carry this request.
    #[error("{endpoint} cannot be asked: {source}")]
    Encode {
        /// The node.
        endpoint: Endpoint,
        /// What does not fit.
        source: EncodeError,
    },
    /// The answer does not decode.
    #[error("{endpoint} answers what does not decode: {source}")]
    Decode {
        /// The node.
        endpoint: Endpoint,
        /// What is wrong.
        source: DecodeError,
    },
}

/// A connection from a tool to a node.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    client_id: String,
    timeout: Duration,
    connection: Connection,
}

impl Client {
    /// Connects, and asks which versions the node serves. Each request gets as long as this: `timeout`.
    ///
    /// # Errors
    /// The name does not resolve, nothing answers there in time, or what does is no Kafka node.
    pub async fn connect(
        endpoint: &Endpoint,
        client_id: &str,
        timeout: Duration,
    ) -> Result<Client, ClientError> {
        let max_bytes = response_max_bytes(0);
        let deadline = Instant::now() + timeout;
        let connection = Connection::open(endpoint, client_id, max_bytes, deadline)
            .await
            .map_err(|failure| unreachable(endpoint, &failure))?;
        Ok(Client {
            endpoint: endpoint.clone(),
            client_id: client_id.to_owned(),
            timeout,
            connection,
        })
    }

    /// The node's address as it was given.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What the node serves.
    pub fn versions(&self) -> &Versions {
        &self.connection.versions
    }

    /// Sends a request at the highest common version and waits for its answer, which comes with that
    /// version. After an error the connection is of no more use.
    ///
    /// # Errors
    /// See [`ClientError`]. Error codes in the answer are none of ours.
    pub async fn call<Q: Request>(
        &mut self,
        request: &Q,
    ) -> Result<(Q::Response, i16), ClientError> {
        let key = Q::API.code();
        let endpoint = self.endpoint.clone();
        let Some(version) = self.connection.versions.common(key, &Q::VERSIONS) else {
            return Err(ClientError::Unsupported { endpoint, request: Q::NAME, key });
        };
        let id = self.connection.correlation();
        let slices = encode_request(version, id, &self.client_id, request)
            .map_err(|source| ClientError::Encode { endpoint: endpoint.clone(), source })?;
        let talk = async {
            self.connection.write(&slices).await?;
            self.connection.read(id).await
        };
        let frame = match timeout_at(Instant::now() + self.timeout, talk).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(failure)) => return Err(unreachable(&endpoint, &failure)),
            Err(_) => {
                let reason = format!("no answer to {} within {:?}", Q::NAME, self.timeout);
                return Err(ClientError::Unreachable { endpoint, reason });
            }
        };
        let answer = decode_answer(Q::API, version, frame)
            .map_err(|source| ClientError::Decode { endpoint, source })?;
        Ok((answer, version))
    }
}

fn unreachable(endpoint: &Endpoint, failure: &Failure) -> ClientError {
    ClientError::Unreachable { endpoint: endpoint.clone(), reason: failure.to_string() }
}
