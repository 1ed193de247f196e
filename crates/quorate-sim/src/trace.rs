//! What happened, line by line, in the words of the core's test scripts.

use std::collections::BTreeMap;

use quorate_core::Offset;
use quorate_core::io::{Event, Message};
use quorate_core::message::{
    ErrorCode, FetchOutcome, FetcherHighWatermark, LogRange, Received, Request, Response,
    Unreachable,
};
use quorate_storage::StoreWrite;

use crate::clock::Micros;
use crate::script::Recording;

/// A line of a story.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) at: Micros,
    pub(crate) node: usize,
    pub(crate) what: What,
}

/// What a line tells.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A message leaves for another node, and perhaps never comes.
    Sends { to: usize, text: String, lost: bool },
    /// A message has come.
    Hears { from: usize, text: String },
    /// A write was asked for.
    Write(String),
    /// Writes are durable, or failed.
    Disk(String),
    /// Listeners are told.
    Event(String),
    /// A disturbance, or a client's deed.
    Note(String),
}

/// Lines, if anybody wants them.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) is_on: bool,
    pub(crate) lines: Vec<Line>,
    /// Of each node, since its last start.
    pub(crate) recordings: BTreeMap<usize, Recording>,
}

impl Trace {
    pub(crate) fn tell(&mut self, at: Micros, node: usize, what: impl FnOnce() -> What) {
        if self.is_on {
            self.lines.push(Line { at, node, what: what() });
        }
    }
}

impl Line {
    /// `  1.234567 n1  -> n2   fetch offset=103`
    pub(crate) fn text(&self) -> String {
        let node = self.node + 1;
        let what = match &self.what {
            What::Sends { to, text, lost } => {
                format!("-> n{}   {text}{}", to + 1, if *lost { "   (lost)" } else { "" })
            }
            What::Hears { from, text } => format!("<- n{}   {text}", from + 1),
            What::Write(text) => format!("write  {text}"),
            What::Disk(text) => format!("disk   {text}"),
            What::Event(text) => format!("event  {text}"),
            What::Note(text) => format!("# {text}"),
        };
        format!("{:>4}.{:06} n{node}  {what}", self.at / 1_000_000, self.at % 1_000_000)
    }
}

pub(crate) fn write(id: u64, write: &StoreWrite) -> String {
    match write {
        StoreWrite::ElectionState(state) => format!(
            "#{id} election epoch={} leader={} voted={}",
            state.epoch,
            or_none(state.leader),
            or_none(state.voted.map(|voted| voted.id))
        ),
        StoreWrite::Append(batch) => {
            format!("#{id} append {}..{}@{}", batch.base, batch.end, batch.epoch)
        }
        StoreWrite::Truncate { to } => format!("#{id} truncate {to}"),
    }
}

pub(crate) fn message(message: &Message) -> String {
    match message {
        Message::Request { request, .. } => self::request(request),
        Message::Response { response, .. } => {
            self::response(response, |range: &LogRange| span(range.from, range.to))
        }
    }
}

pub(crate) fn request(request: &Request) -> String {
    match request {
        Request::Vote(vote) => format!(
            "{} epoch={} end={}",
            if vote.pre_vote { "pre-vote" } else { "vote" },
            vote.epoch,
            vote.log_end
        ),
        Request::BeginQuorumEpoch(begin) => format!("begin-quorum-epoch epoch={}", begin.epoch),
        Request::EndQuorumEpoch(end) => format!(
            "end-quorum-epoch epoch={} preferred={:?}",
            end.epoch,
            end.preferred_candidates.iter().map(|key| key.id).collect::<Vec<_>>()
        ),
        Request::Fetch(fetch) => {
            let known = match fetch.high_watermark {
                FetcherHighWatermark::Known(offset) => format!(" hw={offset}"),
                FetcherHighWatermark::Unknown => " hw=none".to_owned(),
                FetcherHighWatermark::Unsaid => String::new(),
            };
            format!(
                "fetch epoch={} offset={}@{}{known}",
                fetch.epoch, fetch.offset, fetch.last_fetched_epoch
            )
        }
        Request::FetchSnapshot(_) => "fetch-snapshot".to_owned(),
        Request::DescribeQuorum => "describe-quorum".to_owned(),
        Request::DescribeReplica => "describe-replica".to_owned(),
    }
}

pub(crate) fn answer(response: &Result<Response<Received>, Unreachable>) -> String {
    match response {
        Ok(response) => self::response(response, |received: &Received| {
            match (received.batches.first(), received.batches.last()) {
                (Some(first), Some(last)) => {
                    format!("{}@{}", span(first.base, last.end), last.epoch)
                }
                _ => "nothing".to_owned(),
            }
        }),
        Err(why) => format!("unreachable {why:?}"),
    }
}

fn response<R>(response: &Response<R>, records: impl Fn(&R) -> String) -> String {
    match response {
        Response::Vote(vote) => format!(
            "vote-response epoch={} leader={} {}{}",
            vote.current.epoch,
            or_none(vote.current.leader),
            if vote.granted { "granted" } else { "refused" },
            error(vote.error)
        ),
        Response::BeginQuorumEpoch(answer) => format!(
            "begin-quorum-epoch-response epoch={} leader={}{}",
            answer.current.epoch,
            or_none(answer.current.leader),
            error(answer.error)
        ),
        Response::EndQuorumEpoch(answer) => format!(
            "end-quorum-epoch-response epoch={} leader={}{}",
            answer.current.epoch,
            or_none(answer.current.leader),
            error(answer.error)
        ),
        Response::Fetch(fetch) => {
            let what = match &fetch.outcome {
                FetchOutcome::Records(range) => records(range),
                FetchOutcome::Diverging(end) => format!("diverging {end}"),
                FetchOutcome::Snapshot(id) => format!("snapshot {id}"),
            };
            format!(
                "fetch-response epoch={} leader={} {what} hw={}{}",
                fetch.current.epoch,
                or_none(fetch.current.leader),
                or_none(fetch.high_watermark),
                error(fetch.error)
            )
        }
        Response::FetchSnapshot(answer) => {
            format!("fetch-snapshot-response{}", error(answer.error))
        }
        Response::DescribeQuorum(_) => "describe-quorum-response".to_owned(),
        Response::DescribeReplica(_) => "describe-replica-response".to_owned(),
        Response::TopLevel(code) => format!("refused{}", error(*code)),
    }
}

pub(crate) fn event(event: &Event) -> String {
    match event {
        Event::HighWatermark(offset) => format!("high-watermark {offset}"),
        Event::Leader { epoch, leader } => format!("leader epoch={epoch} {}", or_none(*leader)),
        Event::Appended { id, base, end, epoch } => {
            format!("appended proposal={} {}@{epoch}", id.0, span(*base, *end))
        }
        Event::NotAppended { id, reason } => format!("not-appended proposal={} {reason:?}", id.0),
        Event::Truncated { to, generation } => format!("truncated {to} generation={generation}"),
        Event::Role { role, epoch, reason } => format!("{role} epoch={epoch} ({reason})"),
        Event::Round(round) => format!(
            "{} round epoch={} won={:?}",
            if round.pre_vote { "pre-vote" } else { "vote" },
            round.epoch,
            round.won
        ),
        Event::IntegrityFault(fault) => format!("integrity-fault {fault}"),
        Event::Refused { peer, what } => format!("refused {}: {what}", or_none(*peer)),
        Event::ShutDown => "shut-down".to_owned(),
    }
}

fn span(from: Offset, to: Offset) -> String {
    if from == to { "nothing".to_owned() } else { format!("{from}..{to}") }
}

fn or_none<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or("none".to_owned(), |value| value.to_string())
}

fn error(code: ErrorCode) -> String {
    if code == ErrorCode::NONE { String::new() } else { format!(" error={}", code.0) }
}
