//! A listener on a real socket, and everything that peers do to it (B134).

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::*;
use quorate_core::ids::{Endpoint, Endpoints, Epoch, ListenerName, NodeId};
use quorate_core::message::*;
use quorate_network::{Client, Incoming, Limits, Listener, ListenerConfig};
use quorate_rpc::ApiKey;
use quorate_rpc::client::{correlation_id, decode_response};
use quorate_wire::message::{ApiVersionsRequest, DescribeReplicaRequest};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

const PATIENCE: Duration = Duration::from_millis(300);
const REQUEST_MAX: usize = 1 << 20;

struct Served {
    listener: Listener,
    limits: Limits,
    inbox: mpsc::Receiver<Incoming>,
    _context: watch::Sender<quorate_rpc::server::ServerContext>,
}

async fn listen(limits: Limits) -> Served {
    listen_with(limits, Duration::from_secs(60)).await
}

async fn listen_with(limits: Limits, idle: Duration) -> Served {
    let (context, receiver) = watch::channel(context());
    let (sender, inbox) = mpsc::channel(4);
    let config = ListenerConfig {
        name: ListenerName::new("CONTROLLER"),
        host: "127.0.0.1".to_owned(),
        port: 0,
        idle,
        patience: PATIENCE,
        request_max_bytes: REQUEST_MAX,
    };
    let listener = Listener::bind(config, limits.clone(), receiver, sender).await.unwrap();
    Served { listener, limits, inbox, _context: context }
}

fn wide() -> Limits {
    Limits::new(1000, 1000, 64 << 20, 64 << 20)
}

impl Served {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.listener.address()).await.unwrap()
    }

    /// A driver that answers each vote under its epoch.
    fn answer_votes(self) -> (std::net::SocketAddr, Limits, tokio::task::JoinHandle<()>) {
        let (address, limits) = (self.listener.address(), self.limits.clone());
        let Served { listener, mut inbox, _context, .. } = self;
        let driver = tokio::spawn(async move {
            let _alive = (listener, _context);
            while let Some(incoming) = inbox.recv().await {
                assert_eq!(incoming.via, Via(ListenerName::new("CONTROLLER")));
                let Request::Vote(vote) = incoming.request else { continue };
                incoming.reply.send(vote_response(vote.epoch.0), Vec::new());
            }
        });
        (address, limits, driver)
    }
}

async fn ask_vote(stream: &mut TcpStream, epoch: i32) -> Option<Response<Received>> {
    send(stream, &frame(&vote(epoch, true), 2, epoch)).await;
    let answer = timeout(LONG, read_frame(stream)).await.ok()??;
    assert_eq!(correlation_id(&answer), Some(epoch));
    Some(decode_response(ApiKey::Vote, 2, answer, 0).unwrap())
}

#[tokio::test]
async fn requests_are_answered_one_after_another() {
    let (address, limits, _driver) = listen(wide()).await.answer_votes();
    let mut stream = TcpStream::connect(address).await.unwrap();
    for epoch in 1..20 {
        assert_eq!(ask_vote(&mut stream, epoch).await, Some(vote_response(epoch)));
    }
    // Several at once: answered all the same, in order.
    let all: Vec<u8> = (20..40).flat_map(|epoch| frame(&vote(epoch, true), 2, epoch)).collect();
    send(&mut stream, &all).await;
    for epoch in 20..40 {
        let answer = read_frame(&mut stream).await.unwrap();
        assert_eq!(correlation_id(&answer), Some(epoch));
    }
    assert_eq!(limits.connections(), 1);
    drop(stream);
    let start = Instant::now();
    while limits.connections() > 0 {
        assert!(start.elapsed() < LONG, "the connection's place was not given back");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_next_request_waits_for_the_answer_to_the_last() {
    let mut served = listen(wide()).await;
    let mut stream = served.connect().await;
    send(&mut stream, &[frame(&vote(1, true), 2, 1), frame(&vote(2, true), 2, 2)].concat()).await;
    let first = served.inbox.recv().await.unwrap();
    assert_eq!(first.peer, stream.local_addr().unwrap());
    assert!(timeout(Duration::from_millis(50), served.inbox.recv()).await.is_err());
    first.reply.send(vote_response(1), Vec::new());
    let second = timeout(LONG, served.inbox.recv()).await.unwrap().unwrap();
    assert!(matches!(second.request, Request::Vote(vote) if vote.epoch == Epoch(2)));
}

#[tokio::test]
async fn strange_bytes_cost_their_own_connection_and_one_line_of_the_log() {
    let vote_frame = frame(&vote(1, true), 2, 1);
    let mut unknown_api = vote_frame.clone();
    unknown_api[4] = 0x70;
    let mut unknown_version = vote_frame.clone();
    unknown_version[7] = 9;
    let mut bad_body = vote_frame.clone();
    *bad_body.last_mut().unwrap() = 0x7f;
    let tls = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    for (bytes, reason) in [
        (&tls[..], "looks like TLS on a plaintext listener"),
        (b"GET / HTTP/1.1\r\n\r\n", "looks like HTTP"),
        (&[0x7f, 0xff, 0xff, 0xff, 0, 1], "2147483647"),
        (&[0xff, 0xff, 0xff, 0xff], "-1"),
        (&[0, 0, 0, 0], "0 bytes"),
        (&[0, 0, 0, 2, 0, 1], "RequestHeader"),
        (&unknown_api, "malformed request"),
        (&unknown_version, "Vote request at version 9"),
        (&bad_body, "VoteRequest"),
    ] {
        let (log, _guard) = Log::start();
        let (address, _, _driver) = listen(wide()).await.answer_votes();
        let mut good = TcpStream::connect(address).await.unwrap();
        assert!(ask_vote(&mut good, 1).await.is_some());
        for _ in 0..3 {
            let mut bad = TcpStream::connect(address).await.unwrap();
            send(&mut bad, bytes).await;
            assert!(is_closed_soon(&mut bad).await, "{reason}");
            assert!(ask_vote(&mut good, 2).await.is_some());
        }
        let warnings = log.lines("WARN");
        assert_eq!(warnings.len(), 1, "{reason}: {warnings:?}");
        assert!(warnings[0].contains(reason), "{warnings:?}");
        assert!(warnings[0].contains("peer=127.0.0.1:"), "{warnings:?}");
    }
}

#[tokio::test]
async fn silence_half_frames_and_dribble_end_after_a_while() {
    let (address, _, _driver) = listen(wide()).await.answer_votes();
    let start = Instant::now();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut half = TcpStream::connect(address).await.unwrap();
    let vote_frame = frame(&vote(1, true), 2, 1);
    send(&mut half, &vote_frame[..vote_frame.len() / 2]).await;
    let mut dribble = TcpStream::connect(address).await.unwrap();
    let dribbling = tokio::spawn(async move {
        for byte in vote_frame.iter().cycle().take(200) {
            send(&mut dribble, &[*byte]).await;
            sleep(Duration::from_millis(5)).await;
            if matches!(timeout(Duration::ZERO, dribble.read_u8()).await, Ok(Err(_))) {
                return true;
            }
        }
        false
    });
    // Meanwhile others are served.
    let mut good = TcpStream::connect(address).await.unwrap();
    for epoch in 1..50 {
        assert!(ask_vote(&mut good, epoch).await.is_some());
    }
    assert!(is_closed_soon(&mut silent).await && is_closed_soon(&mut half).await);
    assert!(start.elapsed() >= PATIENCE, "closed too early");
    assert!(dribbling.await.unwrap(), "the dribbler was served for a second");
    // Whoever has sent a valid request may be silent for longer.
    assert!(ask_vote(&mut good, 50).await.is_some());
}

/// A valid request of about this size.
fn large(bytes: usize) -> Vec<u8> {
    let endpoints: Endpoints = (0..bytes / 50)
        .map(|i| (ListenerName::new(&format!("{i:040}")), Endpoint::new("12345", 1)))
        .collect();
    let request = Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
        voter: None,
        leader: NodeId(1),
        epoch: Epoch(1),
        endpoints,
    });
    frame(&request, 1, 1)
}

#[tokio::test]
async fn no_request_is_larger_than_those_that_are_served() {
    let mut served = listen(wide()).await;
    let mut stranger = served.connect().await;
    send(&mut stranger, &large(100 << 10)).await;
    assert!(is_closed_soon(&mut stranger).await);

    let mut known = served.connect().await;
    send(&mut known, &large(40 << 10)).await;
    let incoming = timeout(LONG, served.inbox.recv()).await.unwrap().unwrap();
    assert!(matches!(incoming.request, Request::BeginQuorumEpoch(_)));
    let served_response = QuorumEpochResponse { error: ErrorCode::NONE, current: current(1) };
    incoming.reply.send(Response::BeginQuorumEpoch(served_response), Vec::new());
    read_frame(&mut known).await.unwrap();
    // Whoever was served is held to it too: its frames are decoded on the replica's thread.
    send(&mut known, &large(100 << 10)).await;
    assert!(is_closed_soon(&mut known).await);

    let mut dropped = served.connect().await;
    send(&mut dropped, &frame(&vote(1, true), 2, 1)).await;
    drop(served.inbox.recv().await.unwrap().reply);
    assert!(is_closed_soon(&mut dropped).await, "a reply that is dropped closes the connection");
}

#[tokio::test]
async fn a_request_above_the_bound_is_refused_by_its_length() {
    let served = listen(wide()).await;
    let (address, _, _driver) = served.answer_votes();
    let mut known = TcpStream::connect(address).await.unwrap();
    assert!(ask_vote(&mut known, 1).await.is_some());
    let length = i32::try_from(REQUEST_MAX + 1).unwrap();
    send(&mut known, &length.to_be_bytes()).await;
    let start = Instant::now();
    assert!(is_closed_soon(&mut known).await);
    assert!(start.elapsed() < PATIENCE, "it was not refused at once");
}

#[tokio::test]
async fn two_hundred_connections_are_served_and_those_above_the_limit_are_not() {
    let (log, _guard) = Log::start();
    let limits = Limits::new(1000, 200, 1 << 20, 1 << 20);
    let (address, limits, _driver) = listen(limits).await.answer_votes();
    let mut streams = Vec::new();
    for _ in 0..200 {
        streams.push(TcpStream::connect(address).await.unwrap());
    }
    for (epoch, stream) in (1..).zip(&mut streams) {
        assert_eq!(ask_vote(stream, epoch).await, Some(vote_response(epoch)));
    }
    assert_eq!(limits.connections(), 200);
    for _ in 0..20 {
        let mut above = TcpStream::connect(address).await.unwrap();
        assert!(is_closed_soon(&mut above).await);
    }
    let warnings = log.lines("max.connections.per.ip");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for (epoch, stream) in (300..).zip(&mut streams) {
        assert!(ask_vote(stream, epoch).await.is_some());
    }
    drop(streams);
    let start = Instant::now();
    while limits.connections() > 0 && start.elapsed() < LONG {
        sleep(Duration::from_millis(5)).await;
    }
    let mut again = TcpStream::connect(address).await.unwrap();
    assert!(ask_vote(&mut again, 1).await.is_some());
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_left_and_holds_up_nobody() {
    let (log, _guard) = Log::start();
    let mut served = listen(wide()).await;
    let mut slow = served.connect().await;
    send(&mut slow, &frame(&fetch(0), 18, 1)).await;
    let records = vec![Bytes::from(vec![0; 8 << 20]); 4];
    served.inbox.recv().await.unwrap().reply.send(fetch_response(), records);
    let (address, limits, _driver) = served.answer_votes();
    let mut good = TcpStream::connect(address).await.unwrap();
    assert!(ask_vote(&mut good, 1).await.is_some());
    let start = Instant::now();
    while limits.connections() > 1 {
        assert!(start.elapsed() < LONG, "the slow reader is still there");
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(log.lines("did not read its answer").len(), 1);
    assert!(ask_vote(&mut good, 2).await.is_some());
}

#[tokio::test]
async fn answers_that_nobody_reads_have_a_bound() {
    let (log, _guard) = Log::start();
    let mut served = listen(Limits::new(10, 10, 1 << 20, 40 << 20)).await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = served.connect().await;
        send(&mut stream, &frame(&fetch(0), 18, 1)).await;
        let records = vec![Bytes::from(vec![0; 8 << 20]); 4];
        served.inbox.recv().await.unwrap().reply.send(fetch_response(), records);
        streams.push(stream);
    }
    // There is no room for the second: it is closed long before patience with the first ends.
    let second = timeout(PATIENCE / 2, is_closed_soon(&mut streams[1])).await;
    assert_eq!(second, Ok(true));
    assert_eq!(log.lines("no room for its answer").len(), 1);
}

#[tokio::test]
async fn a_large_answer_arrives_whole() {
    let mut served = listen(wide()).await;
    let mut stream = served.connect().await;
    send(&mut stream, &frame(&fetch(0), 18, 1)).await;
    let records: Vec<Bytes> = (0..100u8).map(|i| vec![i; 80_000].into()).collect();
    served.inbox.recv().await.unwrap().reply.send(fetch_response(), records.clone());
    let answer = timeout(LONG, read_frame(&mut stream)).await.unwrap().unwrap();
    let expected = records.concat();
    assert!(answer.windows(expected.len()).any(|window| window == expected));
}

#[tokio::test]
async fn a_peer_that_leaves_is_noticed_while_its_request_waits() {
    let mut served = listen(wide()).await;
    let mut stream = served.connect().await;
    send(&mut stream, &frame(&fetch(0), 18, 1)).await;
    let incoming = served.inbox.recv().await.unwrap();
    assert!(!incoming.reply.is_closed());
    drop(stream);
    let start = Instant::now();
    while !incoming.reply.is_closed() {
        assert!(start.elapsed() < LONG, "nobody noticed");
        sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_quietly() {
    let (log, _guard) = Log::start();
    let idle = Duration::from_millis(100);
    let (address, _, _driver) = listen_with(wide(), idle).await.answer_votes();
    let mut stream = TcpStream::connect(address).await.unwrap();
    for epoch in 1..5 {
        assert!(ask_vote(&mut stream, epoch).await.is_some());
        sleep(idle / 4).await;
    }
    let start = Instant::now();
    assert!(is_closed_soon(&mut stream).await);
    assert!(start.elapsed() < PATIENCE, "closed by another bound");
    assert_eq!(log.lines("WARN"), Vec::<String>::new());
}

#[tokio::test]
async fn a_driver_that_does_not_keep_up_holds_the_connections_back() {
    let mut served = listen(wide()).await;
    let mut streams = Vec::new();
    for epoch in 1..=20 {
        let mut stream = served.connect().await;
        send(&mut stream, &frame(&vote(epoch, true), 2, epoch)).await;
        streams.push(stream);
    }
    sleep(Duration::from_millis(50)).await;
    assert_eq!(served.inbox.len(), served.inbox.max_capacity());
    let mut epochs = Vec::new();
    for _ in 0..20 {
        let incoming = timeout(LONG, served.inbox.recv()).await.unwrap().unwrap();
        let Request::Vote(vote) = incoming.request else { panic!() };
        incoming.reply.send(vote_response(vote.epoch.0), Vec::new());
        epochs.push(vote.epoch.0);
    }
    epochs.sort_unstable();
    assert_eq!(epochs, (1..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_needs_no_state_is_answered_without_the_driver() {
    let served = listen(wide()).await;
    // Nobody reads the inbox.
    let address = served.listener.address();
    let endpoint = Endpoint::new("127.0.0.1", address.port());
    let mut client = Client::connect(&endpoint, "tool", LONG).await.unwrap();
    assert_eq!(client.versions().choose(ApiKey::Vote), Some(2));
    assert_eq!(client.versions().choose(ApiKey::DescribeReplica), Some(0));
    let (answer, version) = client.call(&ApiVersionsRequest::default()).await.unwrap();
    // It lacks the client's name, which version 5 wants.
    assert_eq!((answer.error_code, version), (42, 5));

    let mut stream = served.connect().await;
    let stranger = quorate_rpc::client::Origin { client_id: "test", cluster_id: "other" };
    let request = quorate_rpc::client::encode_request(&vote(1, true), 2, 1, &stranger).unwrap();
    send(&mut stream, &request.concat()).await;
    let answer = read_frame(&mut stream).await.unwrap();
    assert_eq!(
        decode_response(ApiKey::Vote, 2, answer, 0),
        Err(Unreachable::TopLevel(ErrorCode::INCONSISTENT_CLUSTER_ID))
    );
}

#[tokio::test]
async fn a_tool_gets_its_answers_or_an_error_that_names_the_node() {
    let mut served = listen(wide()).await;
    let endpoint = Endpoint::new("127.0.0.1", served.listener.address().port());
    let driver = tokio::spawn(async move {
        let _alive = served.listener;
        while let Some(incoming) = served.inbox.recv().await {
            assert_eq!(incoming.request, Request::DescribeReplica);
            let refusal = Response::TopLevel(ErrorCode::BROKER_NOT_AVAILABLE);
            incoming.reply.send(refusal, Vec::new());
        }
    });
    let mut client = Client::connect(&endpoint, "tool", LONG).await.unwrap();
    let (answer, _) = client.call(&DescribeReplicaRequest::default()).await.unwrap();
    assert_eq!(answer.error_code, 8);
    drop(client);
    driver.abort();
    let _ = driver.await;
    let error = Client::connect(&endpoint, "tool", LONG).await.unwrap_err().to_string();
    assert!(error.contains(&endpoint.to_string()) && error.contains("refused"), "{error}");
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let served = listen(wide()).await;
    let port = served.listener.address().port();
    let (_context, receiver) = watch::channel(context());
    let config = ListenerConfig {
        name: ListenerName::new("CONTROLLER"),
        host: "127.0.0.1".to_owned(),
        port,
        idle: LONG,
        patience: LONG,
        request_max_bytes: REQUEST_MAX,
    };
    let error = Listener::bind(config, wide(), receiver, mpsc::channel(1).0).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&format!("CONTROLLER cannot bind 127.0.0.1:{port}")));
}

#[tokio::test]
async fn a_listener_that_is_dropped_closes_its_connections() {
    let served = listen(wide()).await;
    let mut stream = served.connect().await;
    let address = served.listener.address();
    sleep(Duration::from_millis(20)).await;
    drop(served);
    assert!(is_closed_soon(&mut stream).await);
    sleep(Duration::from_millis(20)).await;
    assert!(TcpStream::connect(address).await.is_err());
}
