//! What the tests of both sides need: messages, a raw connection, and the log.

#![allow(dead_code)] // Each test file uses its part.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::ids::{Endpoint, Endpoints, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey};
use quorate_core::message::*;
use quorate_rpc::client::{Origin, encode_request};
use quorate_rpc::server::ServerContext;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(crate) const CLUSTER: &str = "cluster";
pub(crate) const ORIGIN: Origin<'static> = Origin { client_id: "test", cluster_id: CLUSTER };
/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(10);

pub(crate) fn context() -> ServerContext {
    ServerContext {
        cluster_id: CLUSTER.to_owned(),
        kraft_version: KRaftVersion(1),
        listeners: Endpoints::new(),
    }
}

pub(crate) fn vote(epoch: i32, pre_vote: bool) -> Request {
    Request::Vote(VoteRequest {
        voter: None,
        replica: ReplicaKey::new(NodeId(1), None),
        epoch: Epoch(epoch),
        log_end: OffsetAndEpoch::default(),
        pre_vote,
    })
}

pub(crate) fn fetch(offset: i64) -> Request {
    Request::Fetch(FetchRequest {
        replica: ReplicaKey::new(NodeId(1), None),
        epoch: Epoch(1),
        offset: Offset(offset),
        last_fetched_epoch: Epoch(0),
        max_wait_ms: 500,
        max_bytes: 1 << 20,
        high_watermark: FetcherHighWatermark::Unknown,
    })
}

pub(crate) fn current(epoch: i32) -> CurrentLeader {
    CurrentLeader {
        epoch: Epoch(epoch),
        leader: Some(NodeId(3)),
        endpoint: Some(Endpoint::new("leader", 9093)),
    }
}

/// Tells by its epoch which request it answers.
pub(crate) fn vote_response<R>(epoch: i32) -> Response<R> {
    let granted = epoch % 2 == 0;
    Response::Vote(VoteResponse { error: ErrorCode::NONE, current: current(epoch), granted })
}

pub(crate) fn fetch_response() -> Response<LogRange> {
    Response::Fetch(FetchResponse {
        error: ErrorCode::NONE,
        current: current(1),
        high_watermark: None,
        log_start: None,
        outcome: FetchOutcome::Records(LogRange {
            from: Offset(0),
            to: Offset(0),
            max_bytes: 0,
            generation: 0,
        }),
    })
}

pub(crate) fn frame(request: &Request, version: i16, correlation: i32) -> Vec<u8> {
    encode_request(request, version, correlation, &ORIGIN).unwrap().concat()
}

/// Reads one frame without its length; none if the connection ends first.
pub(crate) async fn read_frame(stream: &mut TcpStream) -> Option<Bytes> {
    let length = stream.read_u32().await.ok()?;
    let mut bytes = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut bytes).await.ok()?;
    Some(bytes.into())
}

/// Sends bytes, which may fail when the other side has had enough.
pub(crate) async fn send(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes).await;
}

/// Whether the other side ends the connection soon, whatever it sends before.
pub(crate) async fn is_closed_soon(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    timeout(LONG, stream.read_to_end(&mut rest)).await.is_ok()
}

/// The log of this thread, from here on until the guard goes.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn start() -> (Log, tracing::subscriber::DefaultGuard) {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines(&self, containing: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(containing)).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
