//! Outgoing requests against peers of every kind, on real sockets: each ends once, and none for ever (B129).

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use common::*;
use quorate_core::ids::{Endpoint, ListenerName, NodeId};
use quorate_core::io::{CorrelationId, Destination};
use quorate_core::message::*;
use quorate_network::{Limits, Listener, ListenerConfig, PeerEvent, Peers, PeersConfig};
use quorate_rpc::server::{Decoded, decode_request, encode_response};
use quorate_wire::frame::encode_response as wire_frame;
use quorate_wire::message::{ApiKey, ApiVersion, ApiVersionsResponse, RequestHeader, VoteResponse};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

type Answer = Result<Response<Received>, Unreachable>;

struct Sender {
    peers: Peers,
    events: mpsc::Receiver<PeerEvent>,
    next: u64,
}

impl Sender {
    fn new(request_timeout: Duration) -> Sender {
        let config = PeersConfig { request_timeout, ..PeersConfig::new("raft-client-1", CLUSTER) };
        let (peers, events) = Peers::new(config);
        Sender { peers, events, next: 0 }
    }

    fn send(&mut self, port: u16, request: Request) -> CorrelationId {
        let to = Destination { id: NodeId(2), endpoint: Endpoint::new("127.0.0.1", port) };
        self.send_to(&to, request)
    }

    fn send_to(&mut self, to: &Destination, request: Request) -> CorrelationId {
        self.next += 1;
        let id = CorrelationId(self.next);
        self.peers.send(to, id, request);
        id
    }

    async fn event(&mut self) -> PeerEvent {
        timeout(LONG, self.events.recv()).await.expect("an event in time").unwrap()
    }

    async fn answer(&mut self) -> (CorrelationId, Answer) {
        match self.event().await {
            PeerEvent::Response { id, response, .. } => (id, response),
            PeerEvent::Closed { .. } => panic!("closed"),
        }
    }

    async fn ask(&mut self, port: u16, request: Request) -> Answer {
        let id = self.send(port, request);
        let (answered, answer) = self.answer().await;
        assert_eq!(answered, id);
        answer
    }

    async fn is_quiet_for(&mut self, wait: Duration) -> bool {
        timeout(wait, self.events.recv()).await.is_err()
    }
}

/// What a fake peer does with a request that is no ApiVersions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// Answers votes under their epoch.
    Answer,
    /// Never answers Fetch, answers the rest.
    HoldFetches,
    /// Closes the connection.
    HangUp,
    /// Announces an answer above any bound.
    Oversize,
    /// Answers with bytes that are no message.
    Garble,
    /// Answers under another correlation id.
    Confuse,
    /// Answers INCONSISTENT_CLUSTER_ID.
    Refuse,
    /// Answers, then closes the connection.
    AnswerAndLeave,
    /// Now answers, now closes, cuts the answer short, is late, or answers twice.
    Chaos,
    /// Closes each connection as soon as it stands.
    Unwell,
    /// Accepts and never says anything.
    Mute,
}

#[derive(Clone)]
struct Fake {
    manner: Manner,
    vote_versions: (i16, i16),
    api_versions_max: i16,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    /// API and version of each request.
    seen: mpsc::UnboundedSender<(ApiKey, i16)>,
}

struct Running {
    port: u16,
    connections: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<(ApiKey, i16)>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn fake(manner: Manner) -> Running {
    fake_with(manner, (0, 2), 5, 0).await
}

async fn fake_with(
    manner: Manner,
    vote_versions: (i16, i16),
    api_versions_max: i16,
    port: u16,
) -> Running {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, seen) = mpsc::unbounded_channel();
    let connections = Arc::new(AtomicUsize::new(0));
    let fake = Fake {
        manner,
        vote_versions,
        api_versions_max,
        connections: connections.clone(),
        requests: Arc::default(),
        seen: sender,
    };
    let task = tokio::spawn(async move {
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            fake.connections.fetch_add(1, Ordering::Relaxed);
            tasks.spawn(fake.clone().serve(stream));
        }
    });
    Running { port, connections, seen, task }
}

impl Fake {
    async fn serve(self, mut stream: TcpStream) {
        if self.manner == Manner::Unwell {
            return;
        }
        while let Some(mut frame) = read_frame(&mut stream).await {
            if self.manner == Manner::Mute {
                continue;
            }
            let whole = frame.clone();
            let header = RequestHeader::read(&mut frame).unwrap();
            let api = ApiKey::from_code(header.request_api_key).unwrap();
            let _ = self.seen.send((api, header.request_api_version));
            let answer = if api == ApiKey::ApiVersions {
                self.introduce(&header)
            } else {
                match self.respond(&header, api, whole) {
                    Some(answer) => answer,
                    None if self.manner == Manner::HoldFetches => continue,
                    None => return,
                }
            };
            let whole_len = answer.len();
            let answer = match self.manner {
                Manner::Chaos if api != ApiKey::ApiVersions => {
                    match self.requests.fetch_add(1, Ordering::Relaxed) % 7 {
                        0 => return,
                        1 => answer[..answer.len() / 2].to_vec(),
                        2 => answer[..3].to_vec(),
                        3 => [answer.clone(), answer].concat(),
                        4 => {
                            sleep(Duration::from_millis(30)).await;
                            answer
                        }
                        _ => answer,
                    }
                }
                _ => answer,
            };
            let cut_short = answer.len() < whole_len;
            if stream.write_all(&answer).await.is_err() || cut_short {
                return;
            }
            if self.manner == Manner::AnswerAndLeave && api != ApiKey::ApiVersions {
                return;
            }
        }
    }

    fn introduce(&self, header: &RequestHeader) -> Vec<u8> {
        let entry = |api: ApiKey, (min_version, max_version)| ApiVersion {
            api_key: api.code(),
            min_version,
            max_version,
            ..Default::default()
        };
        let api_versions = entry(ApiKey::ApiVersions, (0, self.api_versions_max));
        let known = header.request_api_version <= self.api_versions_max;
        let answer = ApiVersionsResponse {
            error_code: if known { 0 } else { 35 },
            api_keys: match known {
                true => vec![
                    entry(ApiKey::Vote, self.vote_versions),
                    entry(ApiKey::Fetch, (4, 18)),
                    api_versions,
                ],
                false => vec![api_versions],
            },
            ..Default::default()
        };
        let version = if known { header.request_api_version } else { 0 };
        wire_frame(ApiKey::ApiVersions, version, header.correlation_id, &answer).unwrap().concat()
    }

    fn respond(&self, header: &RequestHeader, api: ApiKey, whole: Bytes) -> Option<Vec<u8>> {
        let version = header.request_api_version;
        let vote = |correlation: i32, response: &VoteResponse| {
            wire_frame(ApiKey::Vote, version, correlation, response).unwrap().concat()
        };
        let id = header.correlation_id;
        match self.manner {
            Manner::HangUp => None,
            Manner::HoldFetches if api == ApiKey::Fetch => None,
            Manner::Oversize => Some((100i32 << 20).to_be_bytes().to_vec()),
            Manner::Garble => {
                let mut bytes = vec![0, 0, 0, 7];
                bytes.extend_from_slice(&id.to_be_bytes());
                bytes.extend_from_slice(&[0, 0xff, 0xff]);
                Some(bytes)
            }
            Manner::Refuse => {
                Some(vote(id, &VoteResponse { error_code: 104, ..Default::default() }))
            }
            _ => {
                let decoded = decode_request(whole, &context()).unwrap();
                let Decoded::Request(Request::Vote(vote), format) = decoded else {
                    panic!("{decoded:?}")
                };
                let response = vote_response(vote.epoch.0);
                let slices = encode_response(format, &response, Vec::new(), &context(), 0).unwrap();
                let mut bytes = slices.concat();
                if self.manner == Manner::Confuse {
                    bytes[7] ^= 1;
                }
                Some(bytes)
            }
        }
    }
}

#[tokio::test]
async fn requests_reach_a_listener_and_their_answers_come_back() {
    let (_context, context) = watch::channel(context());
    let (inbox, mut incoming) = mpsc::channel(4);
    let config = ListenerConfig {
        name: ListenerName::new("CONTROLLER"),
        host: "127.0.0.1".to_owned(),
        port: 0,
        idle: LONG,
        patience: LONG,
        request_max_bytes: 1 << 20,
    };
    let limits = Limits::new(10, 10, 1 << 20, 64 << 20);
    let listener = Listener::bind(config, limits.clone(), context, inbox).await.unwrap();
    let port = listener.address().port();
    tokio::spawn(async move {
        while let Some(incoming) = incoming.recv().await {
            match incoming.request {
                Request::Vote(vote) => {
                    incoming.reply.send(vote_response(vote.epoch.0), Vec::new());
                }
                _ => incoming.reply.send(fetch_response(), Vec::new()),
            }
        }
    });
    let mut sender = Sender::new(LONG);
    for epoch in 1..50 {
        assert_eq!(sender.ask(port, vote(epoch, true)).await, Ok(vote_response(epoch)));
        let answer = sender.ask(port, fetch(epoch.into())).await;
        assert!(matches!(answer, Ok(Response::Fetch(_))), "{answer:?}");
    }
    assert_eq!(limits.connections(), 1, "one connection carries them all");
}

#[tokio::test]
async fn each_kind_of_failure_has_its_name() {
    for (manner, expected) in [
        (Manner::HangUp, Unreachable::Reset),
        (Manner::Unwell, Unreachable::Reset),
        (Manner::Mute, Unreachable::TimedOut),
        (Manner::Oversize, Unreachable::Malformed),
        (Manner::Garble, Unreachable::Malformed),
        (Manner::Confuse, Unreachable::Malformed),
        (Manner::Refuse, Unreachable::TopLevel(ErrorCode::INCONSISTENT_CLUSTER_ID)),
    ] {
        let peer = fake(manner).await;
        let mut sender = Sender::new(Duration::from_millis(200));
        assert_eq!(sender.ask(peer.port, vote(1, true)).await, Err(expected), "{manner:?}");
    }
    let port = fake(Manner::Answer).await.port;
    sleep(Duration::from_millis(20)).await;
    let mut sender = Sender::new(Duration::from_millis(200));
    assert_eq!(sender.ask(port, vote(1, true)).await, Err(Unreachable::Refused));
    let nowhere =
        Destination { id: NodeId(-2), endpoint: Endpoint::new("no-such-host.invalid", 1) };
    let id = sender.send_to(&nowhere, vote(1, true));
    assert_eq!(sender.answer().await, (id, Err(Unreachable::TimedOut)));
}

#[tokio::test]
async fn a_peer_without_pre_votes_is_asked_for_votes_at_its_own_version() {
    let mut peer = fake_with(Manner::Answer, (0, 1), 4, 0).await;
    let mut sender = Sender::new(LONG);
    let unsupported = Err(Unreachable::UnsupportedVersion);
    assert_eq!(sender.ask(peer.port, vote(1, true)).await, unsupported);
    assert_eq!(sender.ask(peer.port, vote(2, false)).await, Ok(vote_response(2)));
    let request = Request::DescribeQuorum;
    assert_eq!(sender.ask(peer.port, request).await, unsupported);
    // ApiVersions began at 5, which the peer does not know; all went over one connection.
    let mut seen = Vec::new();
    while let Ok(request) = peer.seen.try_recv() {
        seen.push(request);
    }
    let expected = [(ApiKey::ApiVersions, 5), (ApiKey::ApiVersions, 4), (ApiKey::Vote, 1)];
    assert_eq!(seen, expected);
    assert_eq!(peer.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_newer_request_takes_the_place_of_one_that_is_held() {
    let peer = fake(Manner::HoldFetches).await;
    let mut sender = Sender::new(LONG);
    for epoch in [2, 4, 6] {
        sender.send(peer.port, fetch(0));
        assert!(sender.is_quiet_for(Duration::from_millis(60)).await);
        let start = Instant::now();
        assert_eq!(sender.ask(peer.port, vote(epoch, true)).await, Ok(vote_response(epoch)));
        assert!(start.elapsed() < Duration::from_millis(500), "the held Fetch was waited for");
    }
    assert!(sender.is_quiet_for(Duration::from_millis(60)).await, "an event for a held Fetch");
}

#[tokio::test]
async fn of_many_requests_in_a_row_the_last_is_answered_once() {
    let peer = fake(Manner::Answer).await;
    let mut sender = Sender::new(LONG);
    for round in 0..20 {
        let ids: Vec<_> =
            (0..5).map(|i| sender.send(peer.port, vote(round * 5 + i, true))).collect();
        let (id, answer) = sender.answer().await;
        assert_eq!((id, answer), (ids[4], Ok(vote_response(round * 5 + 4))));
        // Now with a chance for the earlier ones to be under way.
        let mut sent = HashMap::new();
        for i in 0..5 {
            let epoch = 1000 + round * 5 + i;
            sent.insert(sender.send(peer.port, vote(epoch, true)), epoch);
            tokio::task::yield_now().await;
        }
        loop {
            let (id, answer) = sender.answer().await;
            assert_eq!(answer, Ok(vote_response(sent.remove(&id).expect("asked, and once"))));
            if id == CorrelationId(sender.next) {
                break;
            }
        }
    }
    assert!(sender.is_quiet_for(Duration::from_millis(30)).await);
}

#[tokio::test]
async fn the_end_of_an_idle_connection_is_told_at_once() {
    let peer = fake(Manner::AnswerAndLeave).await;
    let mut sender = Sender::new(LONG);
    for epoch in 1..4 {
        // A connection on which requests were answered is replaced without a pause.
        assert_eq!(sender.ask(peer.port, vote(epoch, true)).await, Ok(vote_response(epoch)));
        assert!(matches!(sender.event().await, PeerEvent::Closed { to: NodeId(2) }));
    }
    assert_eq!(peer.connections.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_peer_that_died_is_told_refused_and_found_again_when_it_is_back() {
    let (log, _guard) = Log::start();
    let peer = fake(Manner::Answer).await;
    let port = peer.port;
    let mut sender = Sender::new(LONG);
    assert_eq!(sender.ask(port, vote(1, true)).await, Ok(vote_response(1)));
    drop(peer);
    assert!(matches!(sender.event().await, PeerEvent::Closed { to: NodeId(2) }));
    // The first attempt is not held back: the core wants to know whether the peer is dead.
    assert_eq!(sender.ask(port, vote(2, true)).await, Err(Unreachable::Refused));
    for _ in 0..40 {
        let start = Instant::now();
        assert_eq!(sender.ask(port, vote(2, true)).await, Err(Unreachable::Refused));
        assert!(start.elapsed() < Duration::from_millis(200), "held back in backoff");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(log.lines("cannot reach peer").len(), 1);
    let _peer = fake_with(Manner::Answer, (0, 2), 5, port).await;
    let back = Instant::now();
    while sender.ask(port, vote(4, true)).await != Ok(vote_response(4)) {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(back.elapsed() < Duration::from_millis(800), "{:?}", back.elapsed());
    assert_eq!(log.lines("peer answers again").len(), 1);
}

#[tokio::test]
async fn a_listener_that_is_about_to_close_hides_no_death() {
    let peer = fake(Manner::Answer).await;
    let port = peer.port;
    let mut sender = Sender::new(LONG);
    assert_eq!(sender.ask(port, vote(1, true)).await, Ok(vote_response(1)));
    drop(peer);
    assert!(matches!(sender.event().await, PeerEvent::Closed { to: NodeId(2) }));
    // The new connection still finds somebody, and is reset; the next one is tried without a pause, and refused.
    let closing = fake_with(Manner::Unwell, (0, 2), 5, port).await;
    assert_eq!(sender.ask(port, vote(2, true)).await, Err(Unreachable::Reset));
    drop(closing);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(sender.ask(port, vote(2, true)).await, Err(Unreachable::Refused));
}

#[tokio::test]
async fn a_peer_that_is_not_well_is_not_hammered() {
    for manner in [Manner::Unwell, Manner::HangUp, Manner::Garble] {
        let peer = fake(manner).await;
        let mut sender = Sender::new(LONG);
        let start = Instant::now();
        let mut asked = 0;
        while start.elapsed() < Duration::from_secs(1) {
            assert!(sender.ask(peer.port, vote(1, true)).await.is_err());
            asked += 1;
            sleep(Duration::from_millis(5)).await;
        }
        let connections = peer.connections.load(Ordering::Relaxed);
        assert!(asked > 50, "{manner:?}: a send waited for the backoff");
        assert!((2..=10).contains(&connections), "{manner:?}: {connections} connections a second");
    }
}

#[tokio::test]
async fn another_endpoint_of_the_same_peer_is_reached_at_once() {
    let first = fake(Manner::Answer).await;
    let second = fake(Manner::Answer).await;
    let mut sender = Sender::new(LONG);
    assert_eq!(sender.ask(first.port, vote(1, true)).await, Ok(vote_response(1)));
    assert_eq!(sender.ask(second.port, vote(2, true)).await, Ok(vote_response(2)));
    // Nor does the old endpoint's trouble stand in the way.
    let dead = fake(Manner::Answer).await.port;
    sleep(Duration::from_millis(20)).await;
    assert_eq!(sender.ask(dead, vote(3, true)).await, Err(Unreachable::Refused));
    assert_eq!(sender.ask(second.port, vote(4, true)).await, Ok(vote_response(4)));
    // While a mute one is being connected to, too.
    let mute = fake(Manner::Mute).await;
    sender.send(mute.port, vote(5, true));
    sleep(Duration::from_millis(20)).await;
    assert_eq!(sender.ask(second.port, vote(6, true)).await, Ok(vote_response(6)));
}

#[tokio::test]
async fn destinations_are_bounded_and_the_oldest_makes_room() {
    let peer = fake(Manner::Answer).await;
    let mut sender = Sender::new(LONG);
    for id in 0..300 {
        let to = Destination { id: NodeId(id), endpoint: Endpoint::new("127.0.0.1", peer.port) };
        let sent = sender.send_to(&to, vote(2, true));
        assert_eq!(sender.answer().await, (sent, Ok(vote_response(2))));
    }
    // The first makes a new connection, the last has its own still.
    let before = peer.connections.load(Ordering::Relaxed);
    assert_eq!(before, 300);
    for (id, more) in [(299, 0), (0, 1)] {
        let to = Destination { id: NodeId(id), endpoint: Endpoint::new("127.0.0.1", peer.port) };
        let sent = sender.send_to(&to, vote(2, true));
        assert_eq!(sender.answer().await, (sent, Ok(vote_response(2))));
        assert_eq!(peer.connections.load(Ordering::Relaxed), before + more);
    }
}

#[tokio::test]
async fn however_a_peer_behaves_each_request_ends_once() {
    let peer = fake(Manner::Chaos).await;
    let mut sender = Sender::new(Duration::from_millis(500));
    let (mut good, mut bad, mut epoch) = (0, 0, 0);
    let start = Instant::now();
    while good < 30 || bad < 30 {
        assert!(start.elapsed() < 2 * LONG, "{good} good, {bad} bad");
        epoch += 1;
        let asked = sender.send(peer.port, vote(epoch, true));
        let answer = loop {
            match sender.event().await {
                PeerEvent::Closed { .. } => {}
                PeerEvent::Response { id, response, .. } => {
                    assert_eq!(id, asked, "an answer to an earlier request");
                    break response;
                }
            }
        };
        match answer {
            Ok(response) => {
                assert_eq!(response, vote_response(epoch));
                good += 1;
            }
            // Malformed is what a second answer to the same request is called.
            Err(Unreachable::Reset | Unreachable::Malformed) => bad += 1,
            Err(other) => panic!("{other:?}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
}
