//! An outgoing connection on which the versions are agreed.
//!
//! One request at a time. Used by `peer.rs`, which keeps it, and by `client.rs` for one conversation.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use quorate_core::ids::Endpoint;
use quorate_core::message::Unreachable;
use quorate_rpc::api_versions::{self, Versions};
use quorate_rpc::client::correlation_id;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::frame::{FrameError, FrameReader, write_all};
use crate::stream::{Stream, plaintext};

/// Why a peer cannot be reached or does not answer.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// For the core.
    pub(crate) kind: Unreachable,
    /// For people.
    pub(crate) reason: String,
}

impl Failure {
    pub(crate) fn new(kind: Unreachable, reason: impl fmt::Display) -> Failure {
        Failure { kind, reason: reason.to_string() }
    }

    fn from_io(error: &io::Error) -> Failure {
        Failure::new(Unreachable::Reset, error)
    }

    fn from_frame(error: &FrameError) -> Failure {
        let kind = match error {
            FrameError::Closed | FrameError::CutShort { .. } | FrameError::Io(_) => {
                Unreachable::Reset
            }
            FrameError::Size(_) => Unreachable::Malformed,
        };
        Failure::new(kind, error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// A connection to a peer whose versions are known.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    reader: FrameReader,
    response_max_bytes: usize,
    next_correlation: i32,
    /// What the peer serves.
    pub(crate) versions: Versions,
}

impl Connection {
    /// Resolves, connects and agrees on versions, all by `deadline`.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        client_id: &str,
        response_max_bytes: usize,
        deadline: Instant,
    ) -> Result<Connection, Failure> {
        let stream = connect(endpoint, deadline).await?;
        let mut connection = Connection {
            stream,
            reader: FrameReader::default(),
            response_max_bytes,
            next_correlation: 0,
            versions: Versions::default(),
        };
        match timeout_at(deadline, connection.agree(client_id)).await {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::new(Unreachable::TimedOut, "no answer to ApiVersions in time")),
        }
    }

    async fn agree(&mut self, client_id: &str) -> Result<(), Failure> {
        let mut version = api_versions::LATEST;
        loop {
            let id = self.correlation();
            let request = api_versions::encode_request(version, id, client_id)
                .map_err(|error| Failure::new(Unreachable::UnsupportedVersion, error))?;
            self.write(&request).await?;
            let frame = self.read(id).await?;
            match api_versions::decode_response(version, frame) {
                Ok(api_versions::Answer::Versions(versions)) => {
                    self.versions = versions;
                    return Ok(());
                }
                // At a lower version each time, so this ends.
                Ok(api_versions::Answer::AskAgain(lower)) => version = lower,
                Err(kind) => {
                    let reason = match kind {
                        Unreachable::UnsupportedVersion => {
                            "no common version of ApiVersions".to_owned()
                        }
                        Unreachable::TopLevel(code) => {
                            format!("it answers ApiVersions with error {}", code.0)
                        }
                        _ => "its answer to ApiVersions does not decode".to_owned(),
                    };
                    return Err(Failure::new(kind, reason));
                }
            }
        }
    }

    /// A fresh correlation id.
    pub(crate) fn correlation(&mut self) -> i32 {
        let id = self.next_correlation;
        self.next_correlation = id.checked_add(1).unwrap_or(0);
        id
    }

    pub(crate) async fn write(&mut self, slices: &[Bytes]) -> Result<(), Failure> {
        write_all(&mut self.stream, slices).await.map_err(|error| Failure::from_io(&error))
    }

    /// Waits for the answer under this id, header included. May be cancelled and asked again.
    pub(crate) async fn read(&mut self, id: i32) -> Result<Bytes, Failure> {
        let frame = self
            .reader
            .read(&mut self.stream, self.response_max_bytes, None)
            .await
            .map_err(|error| Failure::from_frame(&error))?;
        if correlation_id(&frame.bytes) != Some(id) {
            return Err(Failure::new(Unreachable::Malformed, "an answer to no question of ours"));
        }
        Ok(frame.bytes)
    }

    /// Ends when the peer closes the connection, or speaks without having been asked.
    pub(crate) async fn ended(&mut self) -> Failure {
        match self.reader.wait(&mut self.stream).await {
            Ok(()) => Failure::new(Unreachable::Malformed, "an answer without a question"),
            Err(error) => Failure::from_frame(&error),
        }
    }
}

/// Resolves the name anew, and tries its addresses in turn; each gets its part of the time left.
async fn connect(endpoint: &Endpoint, deadline: Instant) -> Result<Stream, Failure> {
    let resolve = tokio::net::lookup_host((&*endpoint.host, endpoint.port));
    let unresolved = |reason: String| {
        let host = &endpoint.host;
        Failure::new(Unreachable::TimedOut, format!("cannot resolve {host}: {reason}"))
    };
    let addresses: Vec<SocketAddr> = match timeout_at(deadline, resolve).await {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => return Err(unresolved(error.to_string())),
        Err(_) => return Err(unresolved("no answer in time".to_owned())),
    };
    let mut failure = unresolved("no addresses".to_owned());
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    for (left, address) in (1..=count).rev().zip(addresses) {
        let now = Instant::now();
        let until = now + deadline.saturating_duration_since(now) / left;
        match timeout_at(until, TcpStream::connect(address)).await {
            Ok(Ok(tcp)) => return plaintext(tcp).map_err(|error| Failure::from_io(&error)),
            Ok(Err(error)) => failure = refusal(address, &error),
            Err(_) => {
                failure = Failure::new(Unreachable::TimedOut, format!("{address} does not answer"));
            }
        }
    }
    Err(failure)
}

fn refusal(address: SocketAddr, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => Unreachable::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Unreachable::Reset,
        _ => Unreachable::TimedOut,
    };
    Failure::new(kind, format!("{address}: {error}"))
}
