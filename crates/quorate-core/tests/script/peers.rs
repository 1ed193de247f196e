//! What peers say: requests and answers from words.

use bytes::Bytes;
use quorate_core::message::{
    BeginQuorumEpochRequest, ControlRecord, CurrentLeader, EndQuorumEpochRequest, ErrorCode,
    FetchOutcome, FetchRequest, FetchResponse, FetchSnapshotRequest, FetcherHighWatermark,
    KRaftVersion, QuorumEpochResponse, Received, ReceivedBatch, Request, Response, Unreachable,
    VoteRequest, VoteResponse,
};
use quorate_core::{
    Endpoint, Endpoints, Epoch, ListenerName, NodeId, Offset, OffsetAndEpoch, ReplicaKey,
};

use super::harness::Harness;
use super::language::{Words, optional, pair, parse, range};
use super::print::{ERRORS, directory};
use super::replica::{endpoint, key, listener, usual_directory, voters};

type Answer = Result<Response<Received>, Unreachable>;

fn place(text: &str) -> Result<OffsetAndEpoch, String> {
    let (offset, epoch) = pair(text)?;
    Ok(OffsetAndEpoch::new(Offset(offset), Epoch(epoch)))
}

fn error_code(text: &str) -> Result<ErrorCode, String> {
    if let Ok(number) = text.parse() {
        return Ok(ErrorCode(number));
    }
    let known = ERRORS.iter().find(|(name, _)| *name == text);
    known.map(|(_, code)| *code).ok_or_else(|| format!("`{text}` is no error"))
}

/// `refused`, `top-level:INVALID_REQUEST` and so on.
pub(crate) fn unreachable(text: &str) -> Result<Unreachable, String> {
    Ok(match text {
        "refused" => Unreachable::Refused,
        "reset" => Unreachable::Reset,
        "timed-out" => Unreachable::TimedOut,
        "unsupported-version" => Unreachable::UnsupportedVersion,
        "malformed" => Unreachable::Malformed,
        other => {
            let name = other.strip_prefix("top-level:");
            let name = name.ok_or_else(|| format!("unreachable because `{other}`?"))?;
            Unreachable::TopLevel(error_code(name)?)
        }
    })
}

/// A request of a peer, by its kind.
pub(crate) fn request(
    harness: &Harness,
    from: &str,
    kind: &str,
    words: &mut Words,
) -> Result<Request, String> {
    if from == "tool" {
        return match kind {
            "describe-quorum" => Ok(Request::DescribeQuorum),
            "describe-replica" => Ok(Request::DescribeReplica),
            other => Err(format!("no tool sends `{other}`")),
        };
    }
    let id: i32 = parse(from)?;
    let dir = match words.text("dir") {
        Some(text) if text == "-" => None,
        Some(text) => Some(directory(parse(&text)?)),
        None => Some(usual_directory(id)),
    };
    let replica = ReplicaKey::new(NodeId(id), dir);
    let epoch = Epoch(words.value("epoch")?.unwrap_or(harness.epoch().0));
    let voter = words.text("to").map(|text| key(&text)).transpose()?;
    let mut endpoints = Endpoints::new();
    if !words.flag("no-endpoints") {
        endpoints.insert(listener(), endpoint(id));
    }
    if words.flag("also-external") {
        endpoints.insert(ListenerName::new("EXTERNAL"), Endpoint::new("external", 9999));
    }
    let leader = NodeId(words.value("leader")?.unwrap_or(id));
    Ok(match kind {
        "vote-request" => {
            let end = words.text("end").map(|text| place(&text)).transpose()?;
            Request::Vote(VoteRequest {
                voter,
                replica,
                epoch,
                log_end: end.unwrap_or(harness.log_end()),
                pre_vote: words.flag("pre"),
            })
        }
        "begin-request" => {
            Request::BeginQuorumEpoch(BeginQuorumEpochRequest { voter, leader, epoch, endpoints })
        }
        "end-request" => {
            let list = words.text("candidates").unwrap_or_default();
            let list = list.split(',').filter(|word| !word.is_empty());
            let preferred_candidates = list.map(key).collect::<Result<Vec<_>, String>>()?;
            Request::EndQuorumEpoch(EndQuorumEpochRequest {
                leader,
                epoch,
                preferred_candidates,
                endpoints,
            })
        }
        "fetch-request" => {
            let end = harness.log_end();
            let high_watermark = match words.text("hw").as_deref() {
                None | Some("unsaid") => FetcherHighWatermark::Unsaid,
                Some("-") => FetcherHighWatermark::Unknown,
                Some(number) => FetcherHighWatermark::Known(Offset(parse(number)?)),
            };
            Request::Fetch(FetchRequest {
                replica,
                epoch,
                offset: Offset(words.value("offset")?.unwrap_or(end.offset.0)),
                last_fetched_epoch: Epoch(words.value("last")?.unwrap_or(end.epoch.0)),
                max_wait_ms: words.value("wait")?.unwrap_or(500),
                max_bytes: words.value("max")?.unwrap_or(1 << 20),
                high_watermark,
            })
        }
        "fetch-snapshot-request" => Request::FetchSnapshot(FetchSnapshotRequest {
            replica,
            epoch,
            snapshot: place(&words.text("id").ok_or("id=OFFSET@EPOCH is missing")?)?,
            position: words.value("position")?.unwrap_or(0),
            max_bytes: 1 << 20,
        }),
        other => return Err(format!("no peer sends `{other}`")),
    })
}

/// The answer of `from` to a request of ours, or why there is none.
pub(crate) fn answer(
    harness: &Harness,
    from: NodeId,
    asked: &Request,
    words: &mut Words,
) -> Result<Answer, String> {
    let kind = words.next()?;
    let asked_epoch = match asked {
        Request::Vote(vote) => vote.epoch,
        Request::BeginQuorumEpoch(begin) => begin.epoch,
        Request::EndQuorumEpoch(end) => end.epoch,
        Request::Fetch(fetch) => fetch.epoch,
        other => return Err(format!("{other:?} was asked")),
    };
    let usual_leader = match asked {
        Request::Vote(_) => None,
        Request::BeginQuorumEpoch(_) | Request::EndQuorumEpoch(_) => Some(NodeId(harness.node())),
        _ => harness.leader(),
    };
    let epoch = Epoch(words.value("epoch")?.unwrap_or(asked_epoch.0));
    let leader = match words.text("leader") {
        Some(text) => optional::<i32>(&text)?.map(NodeId),
        None => usual_leader,
    };
    let no_endpoint = words.flag("no-endpoint");
    let at = leader.filter(|_| !no_endpoint).map(|leader| endpoint(leader.0));
    let current = CurrentLeader { epoch, leader, endpoint: at };
    let error = words.text("error").map(|text| error_code(&text)).transpose()?;
    let error = error.unwrap_or(ErrorCode::NONE);
    Ok(Ok(match kind.as_str() {
        "vote" => {
            let granted = words.flag("granted");
            if !granted && !words.flag("refused") {
                return Err("granted or refused?".into());
            }
            Response::Vote(VoteResponse { error, current, granted })
        }
        "begin" => Response::BeginQuorumEpoch(QuorumEpochResponse { error, current }),
        "end" => Response::EndQuorumEpoch(QuorumEpochResponse { error, current }),
        "fetch" => {
            let high_watermark = words.value("hw")?.map(Offset);
            let outcome = fetch_outcome(words)?;
            let log_start = Some(Offset(0));
            Response::Fetch(FetchResponse { error, current, high_watermark, log_start, outcome })
        }
        other => return Err(format!("{from} answers no `{other}`")),
    }))
}

fn fetch_outcome(words: &mut Words) -> Result<FetchOutcome<Received>, String> {
    if let Some(text) = words.text("diverging") {
        return Ok(FetchOutcome::Diverging(place(&text)?));
    }
    if let Some(text) = words.text("snapshot") {
        return Ok(FetchOutcome::Snapshot(place(&text)?));
    }
    let mut batches = Vec::new();
    for text in words.text("batches").iter().flat_map(|text| text.split(',')) {
        let (text, bytes) = match text.split_once(':') {
            Some((text, len)) => (text, Bytes::from(vec![b'x'; parse(len)?])),
            None => (text, Bytes::from(format!("batch {text}"))),
        };
        let (offsets, epoch) = text.split_once('@').ok_or("batches=FROM..TO@EPOCH,...")?;
        let (base, end) = range(offsets)?;
        batches.push(ReceivedBatch {
            base: Offset(base),
            end: Offset(end),
            epoch: Epoch(parse(epoch)?),
            bytes,
            control: Vec::new(),
        });
    }
    let mut control = Vec::new();
    for (offset, text) in words.placed("kraft")? {
        control.push((Offset(offset), ControlRecord::KRaftVersion(KRaftVersion(parse(&text)?))));
    }
    for (offset, text) in words.placed("voters")? {
        control.push((Offset(offset), ControlRecord::Voters(voters(&text)?)));
    }
    for (offset, record) in control {
        let batch = batches.iter_mut().find(|batch| batch.base <= offset && offset < batch.end);
        let batch = batch.ok_or_else(|| format!("no batch has the offset {offset}"))?;
        batch.control.push((offset, record));
    }
    Ok(FetchOutcome::Records(Received { batches, rejected: words.text("rejected") }))
}
