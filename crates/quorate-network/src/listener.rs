//! Accepts connections, reads requests and writes answers.
//!
//! A connection has one request in flight: the next frame is read after the answer was written, so
//! answers keep their order and a peer gets no more than its share. Whatever a peer does wrong ends
//! its own connection and nothing else. Everything that peers can make grow has a bound in [`Limits`].

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::ids::ListenerName;
use quorate_core::message::{LogRange, Request, Response, Via};
use quorate_rpc::server::{Decoded, ServerContext, decode_request, encode_response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::clock::now_ms;
use crate::frame::{Budget, FrameError, FrameReader, write_all};
use crate::stream::{Stream, plaintext};
use crate::warn::Complaints;

/// No request that is served needs to be larger: those of replicas and tools name one partition. A frame is decoded on
/// the thread of the replica, which must not be held up.
const SERVED_MAX_BYTES: usize = 64 << 10;
/// How long the listener rests when the system has no socket to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bounds that all listeners of a process share.
#[derive(Clone, Debug)]
pub struct Limits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max_connections: usize,
    max_connections_per_ip: usize,
    requests: Budget,
    answers: Budget,
    open: Mutex<Open>,
    complaints: Complaints,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_ip: HashMap<IpAddr, usize>,
}

impl Limits {
    /// At most so many connections in all and from one address, and so many bytes of large request
    /// frames, and of answers on their way out. A frame of up to 4 KiB lives in its connection's own
    /// buffer and is not counted.
    pub fn new(
        max_connections: usize,
        max_connections_per_ip: usize,
        request_bytes: usize,
        answer_bytes: usize,
    ) -> Limits {
        Limits(Arc::new(Shared {
            max_connections,
            max_connections_per_ip,
            requests: Budget::new(request_bytes),
            answers: Budget::new(answer_bytes),
            open: Mutex::default(),
            complaints: Complaints::default(),
        }))
    }

    /// How many connections there may be.
    pub fn max_connections(&self) -> usize {
        self.0.max_connections
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    fn admit(&self, peer: IpAddr) -> Result<Admission, &'static str> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= self.0.max_connections {
            return Err("too many connections (max.connections)");
        }
        let from_peer = open.by_ip.entry(peer).or_default();
        if *from_peer >= self.0.max_connections_per_ip {
            return Err("too many connections from its address (max.connections.per.ip)");
        }
        *from_peer += 1;
        open.total += 1;
        Ok(Admission { limits: self.clone(), peer })
    }

    fn complain(&self, listener: &ListenerName, peer: SocketAddr, reason: &str) {
        match self.0.complaints.admit(peer.ip(), Instant::now()) {
            Some(0) => warn!(%listener, %peer, "connection closed: {reason}"),
            Some(withheld) => {
                warn!(%listener, %peer, withheld, "connection closed: {reason}");
            }
            None => debug!(%listener, %peer, "connection closed: {reason}"),
        }
    }
}

/// One connection's place among [`Limits`], given back on drop.
struct Admission {
    limits: Limits,
    peer: IpAddr,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut open = self.limits.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        if let Some(from_peer) = open.by_ip.get_mut(&self.peer) {
            *from_peer -= 1;
            if *from_peer == 0 {
                open.by_ip.remove(&self.peer);
            }
        }
    }
}

/// How one listener listens.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Its name.
    pub name: ListenerName,
    /// The name or address to bind to; empty for all addresses of this host.
    pub host: String,
    /// The TCP port; 0 for any free one.
    pub port: u16,
    /// `connections.max.idle.ms`: a connection without a request for so long is closed.
    pub idle: Duration,
    /// How long a frame may take from its first byte to its last, an answer until the peer has taken
    /// it, and a new connection until its first request.
    pub patience: Duration,
    /// `socket.request.max.bytes`. No request may be larger than the budget of [`Limits`] either.
    pub request_max_bytes: usize,
}

/// A request from a peer or a tool.
#[derive(Debug)]
pub struct Incoming {
    /// The listener that it came in on.
    pub via: Via,
    /// Who sent it.
    pub peer: SocketAddr,
    /// What it asks.
    pub request: Request,
    /// For the answer.
    pub reply: Reply,
}

/// Where the answer to one request goes. Dropping it closes the connection.
#[derive(Debug)]
pub struct Reply(oneshot::Sender<Answer>);

#[derive(Debug)]
struct Answer {
    response: Response<LogRange>,
    records: Vec<Bytes>,
}

impl Reply {
    /// Sends the answer; to Fetch with the batches that its range names, whole and in order. Nothing
    /// happens if the peer has left.
    pub fn send(self, response: Response<LogRange>, records: Vec<Bytes>) {
        // A peer that left needs no answer.
        drop(self.0.send(Answer { response, records }));
    }

    /// Whether the peer has left, so that nobody will read the answer.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// A listener at work. Dropping it closes it and all its connections.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Listener {
    /// Binds and begins to accept. Requests that need the replica go to `inbox`; while it is full their
    /// connections wait. What needs no state is answered here, from `context`.
    ///
    /// # Errors
    /// The address does not resolve or cannot be bound; the error names it.
    pub async fn bind(
        config: ListenerConfig,
        limits: Limits,
        context: watch::Receiver<ServerContext>,
        inbox: mpsc::Sender<Incoming>,
    ) -> io::Result<Listener> {
        let socket = bind(&config.host, config.port).await.map_err(|error| {
            let ListenerConfig { name, host, port, .. } = &config;
            io::Error::new(
                error.kind(),
                format!("listener {name} cannot bind {host}:{port}: {error}"),
            )
        })?;
        let address = socket.local_addr()?;
        info!(listener = %config.name, %address, "listening");
        let task = tokio::spawn(accept(socket, Server { config, limits, context, inbox }));
        Ok(Listener { address, task })
    }

    /// The address that is bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn bind(host: &str, port: u16) -> io::Result<TcpListener> {
    if !host.is_empty() {
        return TcpListener::bind((host, port)).await;
    }
    match TcpListener::bind(("::", port)).await {
        Ok(socket) => Ok(socket),
        // A host without IPv6.
        Err(_) => TcpListener::bind(("0.0.0.0", port)).await,
    }
}

/// What all connections of a listener have in common.
#[derive(Clone)]
struct Server {
    config: ListenerConfig,
    limits: Limits,
    context: watch::Receiver<ServerContext>,
    inbox: mpsc::Sender<Incoming>,
}

async fn accept(socket: TcpListener, server: Server) {
    let server = Arc::new(server);
    // Dropped with this task, and the connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((tcp, peer)) => {
                    let server = server.clone();
                    match server.limits.admit(peer.ip()) {
                        Ok(admission) => {
                            connections.spawn(async move {
                                let _admission = admission;
                                server.serve(tcp, peer).await;
                            });
                        }
                        Err(reason) => server.limits.complain(&server.config.name, peer, reason),
                    }
                }
                Err(error) => {
                    // Under no peer's name: it is this process that has too many files open.
                    let nobody = IpAddr::from([0; 4]);
                    if server.limits.0.complaints.admit(nobody, Instant::now()).is_some() {
                        warn!(listener = %server.config.name, %error, "cannot accept connections");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Server {
    async fn serve(&self, tcp: TcpStream, peer: SocketAddr) {
        let name = &self.config.name;
        match self.converse(tcp, peer).await {
            Ok(reason) => debug!(listener = %name, %peer, reason, "connection ended"),
            Err(reason) => self.limits.complain(name, peer, &reason),
        }
    }

    /// Serves one connection to its end. `Ok` is an ordinary end, `Err` one to warn about.
    async fn converse(&self, tcp: TcpStream, peer: SocketAddr) -> Result<&'static str, String> {
        let Ok(mut stream) = plaintext(tcp) else { return Ok("it ended at once") };
        let mut reader = FrameReader::default();
        let mut known = false;
        loop {
            let idle = if known { self.config.idle } else { self.config.patience };
            match timeout(idle, reader.wait(&mut stream)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok("the peer closed it"),
                Err(_) => return Ok("it was idle"),
            }
            let Some(decoded) = self.request(&mut reader, &mut stream).await? else {
                return Ok("the peer closed it");
            };
            let slices = match decoded {
                Decoded::Answer(slices) => slices,
                Decoded::Request(request, format) => {
                    let Some(answer) = self.ask(&mut reader, &mut stream, peer, request).await
                    else {
                        return Ok("the peer left, or there is no answer for it");
                    };
                    let context = self.context.borrow();
                    let Answer { response, records } = answer;
                    encode_response(format, &response, records, &context, now_ms())
                        .map_err(|error| error.to_string())?
                }
            };
            known = true;
            if !self.write(&mut stream, slices).await? {
                return Ok("the peer closed it");
            }
        }
    }

    async fn request(
        &self,
        reader: &mut FrameReader,
        stream: &mut Stream,
    ) -> Result<Option<Decoded>, String> {
        let budget = &self.limits.0.requests;
        let limit = self.config.request_max_bytes.min(budget.total()).min(SERVED_MAX_BYTES);
        let patience = self.config.patience;
        let frame = match timeout(patience, reader.read(stream, limit, Some(budget))).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(FrameError::Closed | FrameError::Io(_))) => return Ok(None),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("a frame was not complete after {patience:?}")),
        };
        let context = self.context.borrow();
        decode_request(frame.bytes.clone(), &context).map(Some).map_err(|error| error.to_string())
    }

    /// Has the replica answer; none if it does not, or if the peer leaves meanwhile.
    async fn ask(
        &self,
        reader: &mut FrameReader,
        stream: &mut Stream,
        peer: SocketAddr,
        request: Request,
    ) -> Option<Answer> {
        let (reply, mut answer) = oneshot::channel();
        let via = Via(self.config.name.clone());
        let incoming = Incoming { via, peer, request, reply: Reply(reply) };
        self.inbox.send(incoming).await.ok()?;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer.ok(),
                // Bytes of the next request may come early; they wait in the buffer.
                more = reader.fill(stream), if reader.has_room() => {
                    if !matches!(more, Ok(1..)) {
                        return None;
                    }
                }
            }
        }
    }

    /// Whether the peer took all of it.
    async fn write(&self, stream: &mut Stream, slices: Vec<Bytes>) -> Result<bool, String> {
        let bytes = slices.iter().map(Bytes::len).sum();
        let Some(_share) = self.limits.0.answers.try_take(bytes) else {
            return Err(format!("no room for its answer of {bytes} bytes: others wait unread"));
        };
        match timeout(self.config.patience, write_all(stream, &slices)).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(_)) => Ok(false),
            Err(_) => Err(format!("it did not read its answer within {:?}", self.config.patience)),
        }
    }
}
