//! What makes a Java peer send thousands of requests a second (items 7, 10, 14 and 15), in each role of the one who asks; and
//! peers that do so to us. Counts are compared with what the retry backoff allows, or with each other: a slow machine is
//! no fault. Answers to a follower's Fetches are in `fetch_answers`, to a nominee's pre-votes in `other_answers`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::Config;
use quorate_core::message::{
    CurrentLeader, ErrorCode, FetchOutcome, FetchRequest, FetchResponse, FetcherHighWatermark,
    LogRange, QuorumEpochResponse, Request, Response, VoteRequest, VoteResponse,
};
use quorate_core::{Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey};
use quorate_rpc::api_of;
use quorate_rpc::client::{Origin, encode_request};
use quorate_wire::batch::encode_data;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fake::{Answer, Asker, CLUSTER, Fake};
use crate::nodes::{Pair, Running, free_port, run, start_with};

/// An answer, given at once, that brings nothing new.
#[derive(Clone, Copy, Debug)]
struct Stale {
    error: i16,
    /// Below the asker's epoch, or above it where negative; none for no epoch at all.
    older_by: Option<i32>,
}

impl Stale {
    fn all() -> impl Iterator<Item = Stale> {
        let errors = [0, 6, 42, 74, 125, 999];
        let epochs = [Some(0), Some(1), None];
        let all = errors.map(|error| epochs.map(|older_by| Stale { error, older_by }));
        all.into_iter().flatten()
    }

    fn to(self, request: &Request, records: Vec<Bytes>) -> Answer {
        let epoch = match request {
            Request::Vote(request) => request.epoch,
            Request::BeginQuorumEpoch(request) => request.epoch,
            Request::EndQuorumEpoch(request) => request.epoch,
            Request::Fetch(request) => request.epoch,
            _ => return Answer::Close,
        };
        let error = ErrorCode(self.error);
        let epoch = Epoch(self.older_by.map_or(-1, |older_by| epoch.0 - older_by));
        let current = CurrentLeader { epoch, leader: None, endpoint: None };
        let response = match request {
            Request::Vote(_) => Response::Vote(VoteResponse { error, current, granted: false }),
            Request::BeginQuorumEpoch(_) => {
                Response::BeginQuorumEpoch(QuorumEpochResponse { error, current })
            }
            Request::EndQuorumEpoch(_) => {
                Response::EndQuorumEpoch(QuorumEpochResponse { error, current })
            }
            Request::Fetch(request) => {
                let (from, to) = (request.offset, request.offset);
                let range = LogRange { from, to, max_bytes: 1, generation: 0 };
                Response::Fetch(FetchResponse {
                    error,
                    current,
                    high_watermark: None,
                    log_start: None,
                    outcome: FetchOutcome::Records(range),
                })
            }
            _ => return Answer::Close,
        };
        Answer::Say(response, records)
    }
}

fn granted(request: &VoteRequest) -> Answer {
    let current = CurrentLeader { epoch: request.epoch, leader: None, endpoint: None };
    let response = VoteResponse { error: ErrorCode::NONE, current, granted: true };
    Answer::Say(Response::Vote(response), Vec::new())
}

/// A node and two fake voters that close every connection.
async fn among_fakes(change: impl FnOnce(&mut Config)) -> (Running, [Fake; 2]) {
    let fakes = [Fake::start(|_| Answer::Close).await, Fake::start(|_| Answer::Close).await];
    let voters = [(1, free_port()), (2, fakes[0].port), (3, fakes[1].port)];
    (start_with(1, &voters, change), fakes)
}

/// The Fetches of an Unattached, to voters that do not know a leader either.
#[test]
fn who_looks_for_a_leader() {
    run(async {
        // The search is paced by a tenth of the election timeout too, which passes in vain.
        let (victim, fakes) = among_fakes(|config| {
            config.election_timeout = Duration::from_millis(100);
            config.campaigns = false;
        })
        .await;
        let batch = encode_data(0, 1, 1, &[Bytes::from_static(b"a record")]);
        let mut hazards: Vec<(Stale, Vec<Bytes>)> =
            Stale::all().map(|stale| (stale, Vec::new())).collect();
        // News each time: the epoch rises with every answer, and nobody leads it.
        let rising = [6, 74, 0].map(|error| Stale { error, older_by: Some(-1) });
        hazards.extend(rising.map(|stale| (stale, Vec::new())));
        let unasked = Stale::all().filter(|stale| stale.error == 0);
        hazards.extend(unasked.map(|stale| (stale, vec![batch.clone()])));
        for (stale, records) in hazards {
            let name = format!("{stale:?} with {} batches", records.len());
            for fake in &fakes {
                let records = records.clone();
                fake.answer(move |request| stale.to(request, records.clone()));
            }
            for fake in &fakes {
                let asked = fake.is_asked_with_pauses(&name).await;
                assert!(asked.iter().all(|request| matches!(request, Request::Fetch(_))), "{name}");
            }
        }
        let now = victim.describe().await;
        assert!(now.role == "unattached" && now.log_end.offset == Offset(0), "{now:?}");
    });
}

/// The Votes of a Candidate: it has all pre-votes, and no voter says whether it gives its vote.
#[test]
fn a_candidate() {
    run(async {
        let (victim, fakes) =
            among_fakes(|config| config.election_timeout = Duration::from_millis(600)).await;
        for stale in Stale::all().filter(|stale| stale.error != 0 || stale.older_by != Some(0)) {
            for fake in &fakes {
                fake.answer(move |request| match request {
                    Request::Vote(vote) if vote.pre_vote => granted(vote),
                    request => stale.to(request, Vec::new()),
                });
            }
            victim.wait_for("a candidate", |now| now.role == "candidate").await;
            for fake in &fakes {
                fake.is_asked_with_pauses(&format!("{stale:?}")).await;
            }
        }
    });
}

/// BeginQuorumEpoch of a leader and EndQuorumEpoch of one that resigned, to voters that vote and do not fetch.
#[test]
fn a_leader_and_one_that_resigned() {
    run(async {
        let (victim, fakes) = among_fakes(|config| {
            config.election_timeout = Duration::from_millis(600);
            config.fetch_timeout = Duration::from_secs(1);
        })
        .await;
        let is_news = |stale: &Stale| stale.error == 0 && stale.older_by == Some(0);
        let some =
            Stale::all().filter(|stale| !is_news(stale) && [0, 42, 74].contains(&stale.error));
        for stale in some {
            for fake in &fakes {
                fake.answer(move |request| match request {
                    Request::Vote(vote) => granted(vote),
                    request => stale.to(request, Vec::new()),
                });
            }
            let (mut begins, mut ends) = (0, 0);
            while begins == 0 || ends == 0 {
                let asked = fakes[0].is_asked_with_pauses(&format!("{stale:?}")).await;
                let count = |wanted: fn(&Request) -> bool| {
                    asked.iter().filter(|request| wanted(request)).count()
                };
                begins += count(|request| matches!(request, Request::BeginQuorumEpoch(_)));
                ends += count(|request| matches!(request, Request::EndQuorumEpoch(_)));
                let token = victim.node.handle().leadership().borrow().token.clone();
                if let Some(token) = token.filter(|_| begins > 0) {
                    victim.node.handle().resign(&token).await;
                }
            }
        }
    });
}

fn vote(epoch: i32) -> Request {
    Request::Vote(VoteRequest {
        voter: None,
        replica: ReplicaKey::new(NodeId(3), None),
        epoch: Epoch(epoch),
        log_end: OffsetAndEpoch::new(Offset(0), Epoch(0)),
        pre_vote: true,
    })
}

fn fetch(replica: i32, epoch: i32) -> Request {
    Request::Fetch(FetchRequest {
        replica: ReplicaKey::new(NodeId(replica), None),
        epoch: Epoch(epoch),
        offset: Offset(0),
        last_fetched_epoch: Epoch(0),
        max_wait_ms: 0,
        max_bytes: 1 << 20,
        high_watermark: FetcherHighWatermark::Unsaid,
    })
}

/// Sends request after request and waits for no answer; counts the answers.
async fn flood(port: u16, request: Request, answers: Arc<AtomicU64>) {
    let version = *api_of(&request).versions().end();
    let origin = Origin { client_id: "flood", cluster_id: CLUSTER };
    let frame = encode_request(&request, version, 7, &origin).unwrap().concat();
    let (mut reader, mut writer) =
        TcpStream::connect(("127.0.0.1", port)).await.unwrap().into_split();
    tokio::spawn(async move {
        let many = frame.repeat(100);
        while writer.write_all(&many).await.is_ok() {}
    });
    let mut size = [0; 4];
    let mut body = Vec::new();
    while reader.read_exact(&mut size).await.is_ok() {
        body.resize(usize::try_from(i32::from_be_bytes(size)).unwrap(), 0);
        if reader.read_exact(&mut body).await.is_err() {
            return;
        }
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// Asks and waits for each answer.
async fn one_after_another(port: u16, request: Request, answers: Arc<AtomicU64>) {
    let mut asker = Asker::connect(port).await;
    while asker.ask(&request).await.is_some() {
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Peers that ask without pause, as Java's do in a loop, and some that do not even wait for answers: the leader stays, the
/// quorum commits, and whoever asks one question after another is served as often as its number allows.
#[test]
fn peers_that_ask_without_end() {
    run(async {
        let fake = Fake::start(|_| Answer::Close).await;
        let pair = Pair::with_fetch_timeout(fake.port, Duration::from_secs(10));
        pair.commit().await;
        let (leader, token) = pair.leader().await;
        let (ports, epoch) = ([pair.nodes[0].port, pair.nodes[1].port], token.epoch().0);
        let (leader_port, is_over) = (leader.port, Arc::new(AtomicBool::new(false)));
        let questions = [
            vote(0),
            vote(epoch),
            fetch(9, 0),
            fetch(9, epoch),
            fetch(3, epoch),
            Request::DescribeQuorum,
        ];
        let looping = Arc::<AtomicU64>::default();
        let floods: Vec<_> = questions.iter().map(|_| Arc::<AtomicU64>::default()).collect();
        let patient = Arc::<AtomicU64>::default();
        let counts = (looping.clone(), floods.clone(), is_over.clone());
        // On threads of their own, or they would wait for this test, and for each other, between two questions.
        let peers = std::thread::spawn(move || {
            let (looping, floods, is_over) = counts;
            runtime().block_on(async {
                for (question, flooded) in questions.iter().zip(floods) {
                    for port in ports {
                        tokio::spawn(one_after_another(port, question.clone(), looping.clone()));
                    }
                    tokio::spawn(flood(leader_port, question.clone(), flooded));
                }
                while !is_over.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        });
        let (asks, is_asking) = (patient.clone(), is_over.clone());
        let asker = std::thread::spawn(move || {
            runtime().block_on(async {
                let mut asker = Asker::connect(leader_port).await;
                while !is_asking.load(Ordering::Relaxed) {
                    asker
                        .ask(&Request::DescribeQuorum)
                        .await
                        .expect("an answer")
                        .expect("it decodes");
                    asks.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        let served = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut commits = 0;
        // Until there was enough to compare, however long it takes.
        while commits < 50
            || served(&looping) < 3000
            || floods.iter().any(|flood| served(flood) < 300)
        {
            pair.commit().await;
            commits += 1;
        }
        let most = floods.iter().map(|flood| served(flood)).max().unwrap();
        let patient = served(&patient);
        is_over.store(true, Ordering::Relaxed);
        peers.join().expect("the peers end");
        asker.join().expect("whoever waits for answers gets them");
        let (_, now) = pair.leader().await;
        assert_eq!(now.epoch(), token.epoch(), "the leader stays");
        // One request of a connection at a time: who does not wait is ahead by its round trips, and not by the thousands
        // of questions that fit the buffers of its socket.
        assert!(patient * 50 >= most, "{patient} answers to who waits, {most} to who does not");
    });
}
