//! Bytes as configurations, logs and inputs. Numbers lie around what the replica has, or anywhere.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::{Config, Recovered};
use quorate_core::ids::{
    DirectoryId, Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset, OffsetAndEpoch,
    ReplicaKey,
};
use quorate_core::io::ElectionState;
use quorate_core::message::*;
use quorate_core::voters::{Voter, VoterSet};

use super::LONGEST;
use super::life::{Facts, Sent};
use crate::source::Source;

const ME: NodeId = NodeId(1);
const LISTENER: &str = "CONTROLLER";

fn directory_of(id: NodeId) -> DirectoryId {
    let [_, _, _, low] = id.0.to_be_bytes();
    DirectoryId::from_bytes([low.wrapping_add(64) | 1; 16]).expect("not zero")
}

fn endpoints_of(id: NodeId) -> Endpoints {
    let endpoint = Endpoint::new(&format!("node{id}"), 9093);
    Endpoints::from([(ListenerName::new(LISTENER), endpoint)])
}

pub(super) fn via(source: &mut Source<'_>) -> Via {
    Via(ListenerName::new(source.pick(&[LISTENER, LISTENER, "OTHER"])))
}

fn time(source: &mut Source<'_>) -> Duration {
    let millis = |n| Duration::from_millis(n);
    source.pick(&[millis(1000), millis(2000), millis(0), millis(1), millis(20), LONGEST])
}

pub(super) fn waiting(source: &mut Source<'_>) -> Duration {
    match source.below(4) {
        0 => Duration::from_micros(source.byte().into()),
        1 => Duration::from_millis(source.byte().into()),
        2 => Duration::from_millis(source.short().into()),
        _ => time(source),
    }
}

pub(super) fn config(source: &mut Source<'_>) -> Config {
    let mut config = Config::new(ME, directory_of(ME), ListenerName::new(LISTENER));
    config.endpoints = endpoints_of(ME);
    let kind = source.byte();
    if kind & 1 == 0 {
        config.static_voters = voters(source);
    }
    if kind & 2 != 0 {
        let servers = (0..3).map(|id| Endpoint::new(&format!("node{id}"), 9093));
        config.bootstrap_servers = servers.collect();
    }
    config.campaigns = kind & 4 == 0;
    config.seed = kind.into();
    if kind & 16 == 0 {
        config.high_watermark_linger = Duration::ZERO;
    }
    if kind & 8 != 0 {
        config.election_timeout = time(source);
        config.election_backoff_max = time(source);
        config.fetch_timeout = time(source);
        config.request_timeout = time(source);
        config.retry_backoff = time(source);
        config.linger = time(source);
        config.fetch_max_wait = time(source);
        config.hint_delay = time(source);
        config.shutdown_timeout = time(source);
        config.fetch_max_bytes = source.pick(&[1 << 20, 1, i32::MAX as u32]);
        config.max_batch_bytes = source.pick(&[8 << 20, 1024]);
        config.max_uncommitted_bytes = source.pick(&[64 << 20, 2048]);
        config.max_parked_fetches = source.pick(&[1024, 1, 2]);
    }
    config
}

/// What storage can find: a log without holes, and an election that is not behind it. With the batches of the log.
pub(super) fn recovered(source: &mut Source<'_>) -> (Recovered, Vec<(Offset, Epoch)>) {
    let mut found = Recovered::default();
    let mut bounds = Vec::new();
    let kind = source.byte();
    let mut epoch = 0i32;
    for _ in 0..kind % 4 {
        epoch = match source.byte() {
            step @ 0..250 => epoch.saturating_add(1 + i32::from(step % 4)),
            250..253 => source.int().saturating_abs().max(epoch.saturating_add(1)),
            _ => Epoch::MAX.0,
        };
        let last = found.epochs.last().map_or(Epoch(0), |(last, _)| *last);
        if Epoch(epoch) <= last {
            break;
        }
        found.epochs.push((Epoch(epoch), found.log_end));
        for _ in 0..=source.below(3) {
            bounds.push((found.log_end, Epoch(epoch)));
            if source.below(4) == 0 {
                found.control.push((found.log_end, steering(source)));
            }
            found.log_end = found.log_end.plus(1 + source.below(5));
        }
    }
    if kind & 4 != 0 {
        found.bootstrap = vec![
            ControlRecord::SnapshotHeader { last_contained_log_timestamp: 0 },
            ControlRecord::KRaftVersion(KRaftVersion(1)),
            ControlRecord::Voters(voters(source)),
            ControlRecord::SnapshotFooter,
        ];
    }
    if kind & 8 != 0 {
        let ahead = source.pick(&[0, 0, 1, 5, i32::MAX]);
        found.election = Some(ElectionState {
            epoch: Epoch(epoch.saturating_add(ahead)),
            leader: source.flag().then(|| replica_id(source)),
            voted: source.flag().then(|| ReplicaKey::new(replica_id(source), directory(source))),
            kraft_version: KRaftVersion(i16::from(source.flag())),
            voters: vec![],
        });
    }
    (found, bounds)
}

fn replica_id(source: &mut Source<'_>) -> NodeId {
    NodeId(source.pick(&[0, 1, 2, 3, 4, i32::MAX]))
}

/// Any number, since it may come from a peer.
fn node(source: &mut Source<'_>) -> NodeId {
    NodeId(match source.byte() % 16 {
        known @ 0..=11 => i32::from(known % 5),
        12 => -1,
        13 => -2,
        14 => i32::MAX,
        _ => source.int(),
    })
}

fn directory(source: &mut Source<'_>) -> Option<DirectoryId> {
    match source.byte() % 8 {
        7 => None,
        known => Some(directory_of(NodeId(i32::from(known)))),
    }
}

fn key(source: &mut Source<'_>) -> ReplicaKey {
    let id = node(source);
    let directory = match source.byte() % 4 {
        0 | 1 => Some(directory_of(id)),
        2 => None,
        _ => directory(source),
    };
    ReplicaKey::new(id, directory)
}

/// Whom a request means: this node most of all.
fn addressee(source: &mut Source<'_>) -> Option<ReplicaKey> {
    match source.byte() % 4 {
        0 => None,
        1 => Some(key(source)),
        _ => Some(ReplicaKey::new(ME, Some(directory_of(ME)))),
    }
}

fn epoch(source: &mut Source<'_>, facts: &Facts) -> Epoch {
    let own = facts.epoch.0;
    Epoch(match source.byte() % 16 {
        0..=6 => own,
        7 | 8 => own.saturating_add(1),
        9 => own.saturating_add(2),
        10 => own.saturating_sub(1),
        11 => facts.last_epoch().0,
        12 => 1 << 30,
        13 => Epoch::MAX.0,
        14 => own.saturating_add(1024),
        _ => source.int(),
    })
}

fn offset(source: &mut Source<'_>, facts: &Facts) -> Offset {
    let end = facts.log_end.0;
    Offset(match source.byte() % 12 {
        0..=4 => end,
        5 => end.saturating_add(1),
        6 => end.saturating_sub(1),
        7 => facts.high_watermark.0,
        8 => {
            let at = source.below(facts.bounds.len().max(1));
            facts.bounds.get(at).map_or(0, |(base, _)| base.0)
        }
        9 => i64::MAX,
        10 => 0,
        _ => source.long(),
    })
}

fn place(source: &mut Source<'_>, facts: &Facts) -> OffsetAndEpoch {
    let epoch = match source.flag() {
        true => facts.last_epoch(),
        false => epoch(source, facts),
    };
    OffsetAndEpoch::new(offset(source, facts), epoch)
}

fn error(source: &mut Source<'_>) -> ErrorCode {
    match source.byte() % 16 {
        0..=5 => ErrorCode::NONE,
        6 => ErrorCode::FENCED_LEADER_EPOCH,
        7 => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        8 => ErrorCode::UNKNOWN_LEADER_EPOCH,
        9 => ErrorCode::BROKER_NOT_AVAILABLE,
        10 => ErrorCode::INVALID_REQUEST,
        11 => ErrorCode::INVALID_VOTER_KEY,
        12 => ErrorCode::SNAPSHOT_NOT_FOUND,
        _ => ErrorCode(i16::from_be_bytes(source.short().to_be_bytes())),
    }
}

fn some_endpoints(source: &mut Source<'_>) -> Endpoints {
    match source.byte() % 8 {
        0 | 1 => Endpoints::new(),
        2 => Endpoints::from([(ListenerName::new("OTHER"), Endpoint::new("", 0))]),
        n => endpoints_of(NodeId(i32::from(n))),
    }
}

fn current(source: &mut Source<'_>, facts: &Facts) -> CurrentLeader {
    let leader = match source.byte() % 4 {
        0 => None,
        1 => facts.leader,
        // The edge makes nobody of a negative id.
        _ => Some(node(source)).filter(|id| id.is_replica()),
    };
    let endpoint = source.flag().then(|| Endpoint::new("node", 9093));
    CurrentLeader { epoch: epoch(source, facts), leader, endpoint }
}

/// As the edge lets them through: at least one, ids not negative.
fn voters(source: &mut Source<'_>) -> VoterSet {
    let set = source.byte();
    let with_directories = set & 0x20 != 0;
    let ids = (0..5).filter(|id| set & (1 << id) != 0 || (set & 0x1f == 0 && *id == ME.0));
    VoterSet::new(ids.map(|id| {
        let id = NodeId(id);
        let voter = Voter {
            directory: with_directories.then(|| directory_of(id)),
            endpoints: if set & 0x40 != 0 { some_endpoints(source) } else { endpoints_of(id) },
            kraft_versions: KRaftVersion::SUPPORTED,
        };
        (id, voter)
    }))
    .expect("no id comes twice")
}

/// A record that the core keeps account of.
fn steering(source: &mut Source<'_>) -> ControlRecord {
    match source.byte() % 4 {
        0 => ControlRecord::KRaftVersion(KRaftVersion(i16::from(source.flag()))),
        _ => ControlRecord::Voters(voters(source)),
    }
}

pub(super) fn proposal(source: &mut Source<'_>, facts: &Facts) -> (Epoch, Vec<Bytes>) {
    let epoch = if source.below(4) == 0 { epoch(source, facts) } else { facts.epoch };
    let sizes = [1, 10, 0, 300, 1000];
    let records = (0..source.below(4)).map(|_| Bytes::from(vec![7; source.pick(&sizes)])).collect();
    (epoch, records)
}

pub(super) fn request(source: &mut Source<'_>, config: &Config, facts: &Facts) -> Request {
    match source.byte() % 8 {
        0 | 1 => Request::Vote(VoteRequest {
            voter: addressee(source),
            replica: key(source),
            epoch: epoch(source, facts),
            log_end: place(source, facts),
            pre_vote: source.flag(),
        }),
        2 => Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
            voter: addressee(source),
            leader: node(source),
            epoch: epoch(source, facts),
            endpoints: some_endpoints(source),
        }),
        3 => Request::EndQuorumEpoch(EndQuorumEpochRequest {
            leader: facts.leader.filter(|_| source.flag()).unwrap_or_else(|| node(source)),
            epoch: epoch(source, facts),
            preferred_candidates: (0..source.below(4)).map(|_| key(source)).collect(),
            endpoints: some_endpoints(source),
        }),
        4 => Request::FetchSnapshot(FetchSnapshotRequest {
            replica: key(source),
            epoch: epoch(source, facts),
            snapshot: place(source, facts),
            position: source.long(),
            max_bytes: source.int(),
        }),
        // A voter that has come as far as it says.
        5 => {
            let id = source.below(5);
            let id = NodeId(i32::try_from(id).unwrap_or(0));
            let voter = ReplicaKey::new(id, Some(config.directory).filter(|_| id == ME));
            let replica =
                ReplicaKey { directory: voter.directory.or(Some(directory_of(id))), ..voter };
            Request::Fetch(FetchRequest {
                replica,
                epoch: facts.epoch,
                offset: facts.log_end,
                last_fetched_epoch: facts.last_epoch(),
                max_wait_ms: 500,
                max_bytes: 1 << 20,
                high_watermark: FetcherHighWatermark::Known(facts.high_watermark),
            })
        }
        _ => Request::Fetch(FetchRequest {
            replica: key(source),
            epoch: epoch(source, facts),
            offset: offset(source, facts),
            last_fetched_epoch: match source.flag() {
                true => facts.last_epoch(),
                false => epoch(source, facts),
            },
            max_wait_ms: source.pick(&[500, 0, i32::MAX, -1]),
            max_bytes: source.pick(&[1 << 20, 0, -1, i32::MAX]),
            high_watermark: match source.byte() % 4 {
                0 => FetcherHighWatermark::Unsaid,
                1 => FetcherHighWatermark::Unknown,
                // The edge reads a negative one as unknown.
                _ => match offset(source, facts) {
                    Offset(..0) => FetcherHighWatermark::Unknown,
                    offset => FetcherHighWatermark::Known(offset),
                },
            },
        }),
    }
}

/// Batches as the edge lets them through: each whole and sound by itself.
fn batches(source: &mut Source<'_>, facts: &Facts, is_honest: bool) -> Vec<ReceivedBatch> {
    let mut end = facts.log_end;
    let mut batches = Vec::new();
    for _ in 0..source.below(4) {
        let base = match is_honest {
            true => end,
            false if source.below(4) == 0 => Offset(offset(source, facts).0.max(0)),
            false => end,
        };
        let epoch = match is_honest {
            true => facts.epoch,
            false => Epoch(epoch(source, facts).0.max(0)),
        };
        // Past the end of the offsets there is no batch.
        let count = 1 + source.below(4);
        if base.0 > i64::MAX - 8 {
            break;
        }
        end = base.plus(count);
        let control = match source.byte() % 4 {
            0 => vec![(base.plus(source.below(count)), steering(source))],
            _ => vec![],
        };
        let bytes = Bytes::from_static(b"a batch");
        batches.push(ReceivedBatch { base, end, epoch, bytes, control });
    }
    batches
}

/// Anything that the edge can make of a peer's answer, mostly to the request that was sent.
pub(super) fn answer(
    source: &mut Source<'_>,
    config: &Config,
    facts: &Facts,
    sent: &Sent,
) -> Result<Response<Received>, Unreachable> {
    let kind = match source.byte() {
        0..=23 => {
            return Err(match source.byte() % 7 {
                0 => Unreachable::Refused,
                1 => Unreachable::Reset,
                2 => Unreachable::TimedOut,
                3 => Unreachable::UnsupportedVersion,
                4 => Unreachable::Malformed,
                _ => Unreachable::TopLevel(error(source)),
            });
        }
        24..=27 => request(source, config, facts),
        _ => sent.request.clone(),
    };
    let error = error(source);
    let current = current(source, facts);
    Ok(match kind {
        Request::Vote(_) => Response::Vote(VoteResponse { error, current, granted: source.flag() }),
        Request::BeginQuorumEpoch(_) => {
            Response::BeginQuorumEpoch(QuorumEpochResponse { error, current })
        }
        Request::EndQuorumEpoch(_) => {
            Response::EndQuorumEpoch(QuorumEpochResponse { error, current })
        }
        Request::FetchSnapshot(_) => Response::FetchSnapshot(FetchSnapshotResponse {
            error,
            current,
            snapshot: place(source, facts),
        }),
        Request::DescribeQuorum | Request::DescribeReplica => Response::DescribeQuorum(Err(error)),
        Request::Fetch(_) => Response::Fetch(FetchResponse {
            error,
            current,
            high_watermark: known(offset(source, facts)),
            log_start: known(offset(source, facts)),
            outcome: match source.byte() % 8 {
                0 | 1 => FetchOutcome::Diverging(place(source, facts)),
                2 => FetchOutcome::Snapshot(place(source, facts)),
                _ => FetchOutcome::Records(Received {
                    batches: batches(source, facts, false),
                    rejected: (source.below(8) == 0).then(|| "bad CRC".to_owned()),
                }),
            },
        }),
    })
}

fn known(offset: Offset) -> Option<Offset> {
    (offset.0 >= 0).then_some(offset)
}

/// What a peer says that grants, follows or leads as it should: else chance would elect nobody.
pub(super) fn honest_answer(
    source: &mut Source<'_>,
    config: &Config,
    facts: &Facts,
    sent: &Sent,
) -> Response<Received> {
    let current = |leader: Option<NodeId>| CurrentLeader {
        epoch: facts.epoch,
        leader,
        endpoint: leader.and_then(|id| endpoints_of(id).into_values().next()),
    };
    let error = ErrorCode::NONE;
    let me = Some(config.node);
    match &sent.request {
        Request::Vote(_) => {
            Response::Vote(VoteResponse { error, current: current(None), granted: true })
        }
        Request::BeginQuorumEpoch(_) => {
            Response::BeginQuorumEpoch(QuorumEpochResponse { error, current: current(me) })
        }
        Request::EndQuorumEpoch(_) => {
            Response::EndQuorumEpoch(QuorumEpochResponse { error, current: current(me) })
        }
        _ => Response::Fetch(FetchResponse {
            error,
            current: current(Some(sent.to).filter(|to| to.is_replica()).or(facts.leader)),
            high_watermark: Some(facts.log_end),
            log_start: Some(Offset::ZERO),
            outcome: FetchOutcome::Records(Received {
                batches: batches(source, facts, true),
                rejected: None,
            }),
        }),
    }
}
