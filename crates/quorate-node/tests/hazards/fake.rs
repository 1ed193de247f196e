//! A peer that answers what it is told to, and a client that asks anything.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use quorate_core::Endpoints;
use quorate_core::message::{KRaftVersion, LogRange, Received, Request, Response, Unreachable};
use quorate_rpc::api_of;
use quorate_rpc::client::{Origin, decode_response, encode_request};
use quorate_rpc::server::{Decoded, ServerContext, decode_request, encode_response};
use quorate_wire::frame::{encode_response as encode_message, next_frame};
use quorate_wire::message::{self as wire, ApiKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// As long as a uuid.
pub(crate) const CLUSTER: &str = "hazards-hazards-hazard";
const MAX: usize = 1 << 24;

/// What the peer says to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// An ordinary answer, with these bytes as records if it is one to Fetch.
    Say(Response<LogRange>, Vec<Bytes>),
    /// The same, after a while.
    Later(Duration, Response<LogRange>, Vec<Bytes>),
    /// An answer to Fetch that ours never are.
    Fetch(wire::FetchResponse),
    /// An answer to Vote that ours never are.
    Vote(wire::VoteResponse),
    /// These bytes after the correlation id.
    Raw(Vec<u8>),
    /// The connection is closed.
    Close,
}

type Script = Box<dyn FnMut(&Request) -> Answer + Send>;

/// A listening peer.
pub(crate) struct Fake {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Request>>>,
    script: Arc<Mutex<Script>>,
}

impl Fake {
    /// Listens, and answers by the script.
    pub(crate) async fn start(script: impl FnMut(&Request) -> Answer + Send + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script: Arc<Mutex<Script>> = Arc::new(Mutex::new(Box::new(script)));
        let asked = Arc::<Mutex<Vec<Request>>>::default();
        let fake = Fake { port, asked: asked.clone(), script: script.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, asked.clone(), script.clone()));
            }
        });
        fake
    }

    /// From now on it answers like this.
    pub(crate) fn answer(&self, script: impl FnMut(&Request) -> Answer + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// What it was asked since the last call.
    pub(crate) fn take_asked(&self) -> Vec<Request> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// What it is asked for a while, and until it was asked twice: a peer that answers at once is asked once in a retry
    /// backoff of 20 ms at most, a few times for what was under way aside.
    pub(crate) async fn is_asked_with_pauses(&self, name: &str) -> Vec<Request> {
        self.take_asked();
        let start = Instant::now();
        let mut asked = Vec::new();
        while asked.len() < 2 || start.elapsed() < Duration::from_millis(200) {
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "{name}: asked {} times",
                asked.len()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
            asked.extend(self.take_asked());
        }
        let (elapsed, count) = (start.elapsed(), asked.len());
        let most = 5 + usize::try_from(elapsed.as_millis() / 20).unwrap();
        assert!(count <= most, "{name}: asked {count} times in {elapsed:?}");
        asked
    }
}

async fn serve(
    mut stream: TcpStream,
    asked: Arc<Mutex<Vec<Request>>>,
    script: Arc<Mutex<Script>>,
) -> Option<()> {
    let context = ServerContext {
        cluster_id: CLUSTER.to_owned(),
        kraft_version: KRaftVersion(0),
        listeners: Endpoints::new(),
    };
    let mut buf = BytesMut::new();
    loop {
        let frame = read_frame(&mut stream, &mut buf).await?;
        let correlation = frame.slice(4..8).get_i32();
        let slices = match decode_request(frame, &context).expect("what a node sends decodes") {
            Decoded::Answer(slices) => slices,
            Decoded::Request(request, format) => {
                asked.lock().unwrap().push(request.clone());
                let answer = script.lock().unwrap()(&request);
                let say = |response, records| {
                    encode_response(format, &response, records, &context, 0).unwrap()
                };
                let version = format.version;
                match answer {
                    Answer::Say(response, records) => say(response, records),
                    Answer::Later(wait, response, records) => {
                        tokio::time::sleep(wait).await;
                        say(response, records)
                    }
                    Answer::Fetch(body) => {
                        encode_message(ApiKey::Fetch, version, correlation, &body).unwrap()
                    }
                    Answer::Vote(body) => {
                        encode_message(ApiKey::Vote, version, correlation, &body).unwrap()
                    }
                    Answer::Raw(body) => {
                        let len = i32::try_from(body.len() + 4).unwrap();
                        let head = [len.to_be_bytes(), correlation.to_be_bytes()].concat();
                        vec![head.into(), body.into()]
                    }
                    Answer::Close => return None,
                }
            }
        };
        stream.write_all(&slices.concat()).await.ok()?;
    }
}

async fn read_frame(stream: &mut TcpStream, buf: &mut BytesMut) -> Option<Bytes> {
    loop {
        if let Some(frame) = next_frame(buf, MAX).expect("a frame of a node") {
            return Some(frame);
        }
        if stream.read_buf(buf).await.ok()? == 0 {
            return None;
        }
    }
}

/// A connection to a node.
pub(crate) struct Asker {
    stream: TcpStream,
    buf: BytesMut,
}

impl Asker {
    pub(crate) async fn connect(port: u16) -> Asker {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the node listens");
        stream.set_nodelay(true).unwrap();
        Asker { stream, buf: BytesMut::new() }
    }

    /// Asks at the newest version; none if the connection is closed instead of an answer.
    pub(crate) async fn ask(
        &mut self,
        request: &Request,
    ) -> Option<Result<Response<Received>, Unreachable>> {
        let api = api_of(request);
        let version = *api.versions().end();
        let origin = Origin { client_id: "fake", cluster_id: CLUSTER };
        let slices = encode_request(request, version, 7, &origin).unwrap();
        let frame = self.exchange(&slices.concat()).await?;
        Some(decode_response(api, version, frame, 0))
    }

    /// Sends bytes, and waits for a frame; none if the connection is closed.
    pub(crate) async fn exchange(&mut self, bytes: &[u8]) -> Option<Bytes> {
        self.stream.write_all(bytes).await.ok()?;
        let answer = read_frame(&mut self.stream, &mut self.buf);
        tokio::time::timeout(Duration::from_secs(20), answer).await.expect("an answer, or its end")
    }

    /// Sends bytes and no more: the node sees the end of the stream after them.
    pub(crate) async fn finish(mut self, bytes: &[u8]) -> Option<Bytes> {
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.shutdown().await;
        let answer = read_frame(&mut self.stream, &mut self.buf);
        tokio::time::timeout(Duration::from_secs(20), answer).await.expect("an answer, or its end")
    }
}
