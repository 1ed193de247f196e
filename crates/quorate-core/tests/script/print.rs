//! What a step asked for, a line each.

use std::fmt::Write as _;

use quorate_core::io::{Batch, Content, ElectionState, Event, NotAppended, Write};
use quorate_core::message::{
    ControlRecord, CurrentLeader, ElectionRound, ErrorCode, FetchOutcome, FetcherHighWatermark,
    LogRange, ReplicaDescription, Request, Response, Unreachable, VoterAnswer,
};
use quorate_core::voters::VoterSet;
use quorate_core::{DirectoryId, ReplicaKey};

/// Directories are letters.
pub(crate) fn directory(letter: char) -> DirectoryId {
    DirectoryId::from_bytes([u8::try_from(letter).expect("a letter"); 16]).expect("not zero")
}

pub(crate) fn key(key: &ReplicaKey) -> String {
    match key.directory {
        Some(directory) => format!("{}/{}", key.id, char::from(directory.as_bytes()[0])),
        None => key.id.to_string(),
    }
}

fn or_none<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

fn voters(set: &VoterSet) -> String {
    let keys = set.ids().filter_map(|id| set.key(id));
    keys.map(|voter| key(&voter)).collect::<Vec<_>>().join(",")
}

fn ids<T: ToString>(ids: &[T]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(crate) const ERRORS: [(&str, ErrorCode); 15] = [
    ("UNKNOWN_SERVER_ERROR", ErrorCode::UNKNOWN_SERVER_ERROR),
    ("NONE", ErrorCode::NONE),
    ("NOT_LEADER_OR_FOLLOWER", ErrorCode::NOT_LEADER_OR_FOLLOWER),
    ("REQUEST_TIMED_OUT", ErrorCode::REQUEST_TIMED_OUT),
    ("BROKER_NOT_AVAILABLE", ErrorCode::BROKER_NOT_AVAILABLE),
    ("NETWORK_EXCEPTION", ErrorCode::NETWORK_EXCEPTION),
    ("CLUSTER_AUTHORIZATION_FAILED", ErrorCode::CLUSTER_AUTHORIZATION_FAILED),
    ("UNSUPPORTED_VERSION", ErrorCode::UNSUPPORTED_VERSION),
    ("INVALID_REQUEST", ErrorCode::INVALID_REQUEST),
    ("FENCED_LEADER_EPOCH", ErrorCode::FENCED_LEADER_EPOCH),
    ("UNKNOWN_LEADER_EPOCH", ErrorCode::UNKNOWN_LEADER_EPOCH),
    ("SNAPSHOT_NOT_FOUND", ErrorCode::SNAPSHOT_NOT_FOUND),
    ("POSITION_OUT_OF_RANGE", ErrorCode::POSITION_OUT_OF_RANGE),
    ("INCONSISTENT_CLUSTER_ID", ErrorCode::INCONSISTENT_CLUSTER_ID),
    ("INVALID_VOTER_KEY", ErrorCode::INVALID_VOTER_KEY),
];

fn error(code: ErrorCode) -> String {
    let known = ERRORS.iter().find(|(_, known)| *known == code);
    known.map_or_else(|| code.0.to_string(), |(name, _)| (*name).to_owned())
}

fn unreachable(why: &Unreachable) -> String {
    match why {
        Unreachable::Refused => "refused".into(),
        Unreachable::Reset => "reset".into(),
        Unreachable::TimedOut => "timed-out".into(),
        Unreachable::UnsupportedVersion => "unsupported-version".into(),
        Unreachable::TopLevel(code) => format!("top-level:{}", error(*code)),
        Unreachable::Malformed => "malformed".into(),
    }
}

pub(crate) fn write(write: &Write) -> String {
    match write {
        Write::ElectionState(ElectionState { epoch, leader, voted, kraft_version, voters }) => {
            format!(
                "election epoch={epoch} leader={} voted={} version={}{}",
                or_none(*leader),
                or_none(voted.as_ref().map(key)),
                kraft_version.0,
                if kraft_version.0 == 0 {
                    format!(" voters={}", ids(voters))
                } else {
                    String::new()
                },
            )
        }
        Write::Truncate { to } => format!("truncate {to}"),
        Write::Append(Batch { base, end, epoch, content, .. }) => {
            let what = match content {
                Content::Data(_) => "data".into(),
                Content::Encoded(_) => "copied".into(),
                Content::Control(records) => {
                    records.iter().map(control).collect::<Vec<_>>().join(" + ")
                }
            };
            format!("append {base}..{end}@{epoch} {what}")
        }
    }
}

fn control(record: &ControlRecord) -> String {
    match record {
        ControlRecord::LeaderChange { leader, voters, granting } => {
            format!("leader-change {leader} voters={} granting={}", ids(voters), ids(granting))
        }
        ControlRecord::KRaftVersion(version) => format!("kraft-version {}", version.0),
        ControlRecord::Voters(set) => {
            let of = set.iter().map(|(id, voter)| {
                let ports: Vec<_> = voter.endpoints.values().map(|at| at.port).collect();
                let who = key(&ReplicaKey::new(id, voter.directory));
                format!("{who}:{}", ids(&ports).replace(',', "+"))
            });
            format!("voters {}", of.collect::<Vec<_>>().join(","))
        }
        ControlRecord::SnapshotHeader { .. } => "snapshot-header".into(),
        ControlRecord::SnapshotFooter => "snapshot-footer".into(),
    }
}

pub(crate) fn request(request: &Request) -> String {
    let to = |voter: &Option<ReplicaKey>| match voter {
        Some(voter) if voter.directory.is_some() => format!(" to={}", key(voter)),
        _ => String::new(),
    };
    match request {
        Request::Vote(vote) => format!(
            "vote{} epoch={} end={}{}",
            if vote.pre_vote { " pre" } else { "" },
            vote.epoch,
            vote.log_end,
            to(&vote.voter)
        ),
        Request::BeginQuorumEpoch(begin) => {
            format!("begin epoch={}{}", begin.epoch, to(&begin.voter))
        }
        Request::EndQuorumEpoch(end) => {
            let candidates: Vec<_> = end.preferred_candidates.iter().map(key).collect();
            let endpoints = if end.endpoints.is_empty() { " no-endpoints" } else { "" };
            format!("end epoch={} candidates={}{endpoints}", end.epoch, ids(&candidates))
        }
        Request::Fetch(fetch) => {
            let hw = match fetch.high_watermark {
                FetcherHighWatermark::Unsaid => "unsaid".into(),
                FetcherHighWatermark::Unknown => "-".into(),
                FetcherHighWatermark::Known(offset) => offset.to_string(),
            };
            let (offset, last) = (fetch.offset, fetch.last_fetched_epoch);
            let wait = if fetch.max_wait_ms == 0 { " wait=0" } else { "" };
            format!("fetch epoch={} offset={offset} last={last} hw={hw}{wait}", fetch.epoch)
        }
        other => format!("{other:?}"),
    }
}

fn current(current: &CurrentLeader) -> String {
    let leader = match (current.leader, &current.endpoint) {
        (Some(leader), Some(endpoint)) => format!("{leader}@{endpoint}"),
        (leader, _) => or_none(leader),
    };
    format!("epoch={} leader={leader}", current.epoch)
}

pub(crate) fn response(response: &Response<LogRange>) -> String {
    let failed = |code: ErrorCode| match code {
        ErrorCode::NONE => String::new(),
        code => format!(" {}", error(code)),
    };
    match response {
        Response::Vote(vote) => format!(
            "vote-response{} {} {}",
            failed(vote.error),
            if vote.granted { "granted" } else { "refused" },
            current(&vote.current)
        ),
        Response::BeginQuorumEpoch(answer) => {
            format!("begin-response{} {}", failed(answer.error), current(&answer.current))
        }
        Response::EndQuorumEpoch(answer) => {
            format!("end-response{} {}", failed(answer.error), current(&answer.current))
        }
        Response::Fetch(fetch) => {
            let outcome = match &fetch.outcome {
                FetchOutcome::Records(range) if range.from == range.to => "nothing".into(),
                FetchOutcome::Records(range) => format!("{}..{}", range.from, range.to),
                FetchOutcome::Diverging(at) => format!("diverging={at}"),
                FetchOutcome::Snapshot(at) => format!("snapshot={at}"),
            };
            let hw = or_none(fetch.high_watermark);
            let error = failed(fetch.error);
            format!("fetch-response{error} {outcome} hw={hw} {}", current(&fetch.current))
        }
        Response::FetchSnapshot(fetch) => {
            format!("fetch-snapshot-response{} {}", failed(fetch.error), current(&fetch.current))
        }
        Response::DescribeQuorum(Ok(quorum)) => {
            let mut text = format!(
                "describe-quorum leader={} epoch={} hw={}",
                quorum.leader,
                quorum.epoch,
                or_none(quorum.high_watermark)
            );
            for (kind, lines) in [("voter", &quorum.voters), ("observer", &quorum.observers)] {
                for line in lines {
                    let age = |age: Option<core::time::Duration>| {
                        age.map_or("-".into(), |age| format!("{}ms", age.as_millis()))
                    };
                    let end = or_none(line.log_end);
                    let (fetch, level) = (age(line.last_fetch), age(line.last_caught_up));
                    let _ = write!(
                        text,
                        "\n   {kind} {} end={end} fetched={fetch} caught-up={level}",
                        key(&line.key)
                    );
                }
            }
            text
        }
        Response::DescribeQuorum(Err(code)) => format!("describe-quorum{}", failed(*code)),
        Response::DescribeReplica(description) => describe(description),
        Response::TopLevel(code) => format!("top-level {}", error(*code)),
    }
}

/// What the replica believes.
pub(crate) fn describe(it: &ReplicaDescription) -> String {
    let mut text = format!(
        "is {} epoch={} leader={} voted={} end={} durable={} hw={} kraft={} voters={}{}",
        it.role,
        it.epoch,
        or_none(it.leader),
        or_none(it.voted.as_ref().map(key)),
        it.log_end,
        it.durable_end,
        or_none(it.high_watermark),
        it.kraft_version.0,
        voters(&it.voters),
        it.voters_offset.map_or(String::new(), |offset| format!("@{offset}")),
    );
    if !it.is_voter {
        text.push_str(" observer");
    }
    if let Some(fault) = &it.integrity_fault {
        let _ = write!(text, "\n   fault: {fault}");
    }
    for (peer, why, _) in &it.unreachable {
        let _ = write!(text, "\n   unreachable {peer} {}", unreachable(why));
    }
    text
}

fn round(round: &ElectionRound) -> String {
    let answers = round.answers.iter().map(|(id, answer)| {
        let answer = match answer {
            VoterAnswer::None => "silent".into(),
            VoterAnswer::Granted => "granted".into(),
            VoterAnswer::Refused { error: code, epoch, leader } => {
                format!("{}(epoch={epoch},leader={})", error(*code), or_none(*leader))
            }
            VoterAnswer::Unreachable(why) => unreachable(why),
        };
        format!(" {id}={answer}")
    });
    format!(
        "round {}epoch={} end={} {}{}",
        if round.pre_vote { "pre " } else { "" },
        round.epoch,
        round.log_end,
        match round.won {
            Some(true) => "won",
            Some(false) => "lost",
            None => "open",
        },
        answers.collect::<String>()
    )
}

pub(crate) fn event(event: &Event) -> String {
    match event {
        Event::HighWatermark(offset) => format!("high-watermark {offset}"),
        Event::Leader { epoch, leader } => format!("leader {} epoch={epoch}", or_none(*leader)),
        Event::Appended { id, base, end, epoch } => {
            format!("appended p{} {base}..{end}@{epoch}", id.0)
        }
        Event::NotAppended { id, reason } => {
            let reason = match reason {
                NotAppended::NotLeader { epoch, leader } => {
                    format!("not-leader epoch={epoch} leader={}", or_none(*leader))
                }
                NotAppended::QueueFull => "queue-full".into(),
                NotAppended::TooLarge { bytes, limit } => format!("too-large {bytes} of {limit}"),
                NotAppended::Empty => "empty".into(),
            };
            format!("not-appended p{} {reason}", id.0)
        }
        Event::Truncated { to, generation } => format!("truncated {to} generation={generation}"),
        Event::Role { role, epoch, reason } => format!("{role} epoch={epoch} ({reason})"),
        Event::Round(it) => round(it),
        Event::IntegrityFault(fault) => format!("integrity-fault: {fault}"),
        Event::Refused { peer, what } => format!("refused {}: {what}", or_none(*peer)),
        Event::ShutDown => "shut-down".into(),
    }
}
