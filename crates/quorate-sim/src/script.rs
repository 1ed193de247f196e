//! One replica's part of a run, in the language of the core's scripts (`quorate-core/tests/scripts/README.md`): its
//! inputs from its last start on. The core's runner replays them verbatim; `UPDATE=1` fills in what they give.

use std::fmt::Write as _;
use std::time::Duration;

use quorate_core::config::{Config, Recovered};
use quorate_core::io::{Event, Input, Message, RequestId, Write, WriteId};
use quorate_core::message::{
    ControlRecord, CurrentLeader, ErrorCode, FetchOutcome, FetcherHighWatermark, Received, Request,
    Response, Unreachable,
};
use quorate_core::voters::VoterSet;
use quorate_core::{Endpoint, Instant, NodeId, Offset, ReplicaKey};

/// What a replica was told since its last start, and what it said.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The steps, the start first.
    pub steps: Vec<Step>,
}

/// One input and what it gave.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// The commands of the script: the time, unless it is that of the step before, and the input.
    pub commands: Vec<String>,
    /// The request that came in, and from whom the script says it did.
    pub asker: Option<(RequestId, String)>,
    /// What was asked for.
    pub writes: Vec<(WriteId, Write)>,
    /// What listeners were told.
    pub events: Vec<Event>,
    /// What was sent.
    pub messages: Vec<Message>,
    /// Whom the replica takes for the leader after it.
    pub leader: Option<NodeId>,
}

impl Recording {
    pub(crate) fn of_start(config: &Config, recovered: &Recovered) -> Recording {
        let commands = vec![opening(config, recovered)];
        Recording { steps: vec![Step { commands, ..Step::default() }] }
    }

    pub(crate) fn begin_step(&mut self, now: Instant, input: &Input) {
        let (line, from) = command(input);
        let at = format!("at {}", us(now.since_start()));
        let before = self
            .steps
            .iter()
            .rev()
            .find_map(|step| step.commands.first().filter(|line| line.starts_with("at ")));
        let mut commands = Vec::new();
        if before != Some(&at) {
            commands.push(at);
        }
        commands.push(line);
        let asker = match input {
            Input::Request { id, .. } => from.map(|from| (*id, from)),
            _ => None,
        };
        self.steps.push(Step { commands, asker, ..Step::default() });
    }

    /// The script, with nothing below `----` yet.
    pub fn text(&self, title: &str) -> String {
        let mut text = format!("# {title}");
        for step in &self.steps {
            if step.commands.len() > 1
                || step.commands.first().is_some_and(|c| c.starts_with("replica"))
            {
                text.push_str(if text.lines().count() > 1 { "----\n\n" } else { "\n" });
            }
            for command in &step.commands {
                let _ = writeln!(text, "{command}");
            }
        }
        text.push_str("----\n");
        text
    }
}

fn us(time: Duration) -> String {
    format!("{}us", time.as_micros())
}

fn opening(config: &Config, recovered: &Recovered) -> String {
    let directory = char::from(config.directory.as_bytes()[0]);
    let mut line = format!("replica {} dir={directory} by-hand disk=slow", config.node);
    if !config.static_voters.is_empty() {
        let _ = write!(line, " voters={}", voters(&config.static_voters));
    }
    for record in &recovered.bootstrap {
        match record {
            ControlRecord::Voters(set) => {
                let _ = write!(line, " voters={}", voters(set));
            }
            ControlRecord::KRaftVersion(version) if !has_voters(&recovered.bootstrap) => {
                let _ = write!(line, " kraft@-1={}", version.0);
            }
            _ => {}
        }
    }
    if !config.bootstrap_servers.is_empty() {
        let ports = config.bootstrap_servers.iter().map(id_at);
        let _ = write!(line, " bootstrap={}", ports.collect::<Vec<_>>().join(","));
    }
    line.push_str(&control(recovered.control.iter()));
    let ends = recovered.epochs.iter().skip(1).map(|(_, start)| *start);
    let ends = ends.chain([recovered.log_end]);
    let log = recovered.epochs.iter().zip(ends);
    let log: Vec<String> =
        log.map(|((epoch, start), end)| format!("{epoch}:{start}..{end}")).collect();
    if !log.is_empty() {
        let _ = write!(line, " log={}", log.join(","));
    }
    if let Some(state) = &recovered.election {
        let _ = write!(line, " epoch={}", state.epoch);
        if let Some(leader) = state.leader {
            let _ = write!(line, " leader={leader}");
        }
        if let Some(voted) = &state.voted {
            let _ = write!(line, " voted={}", key(voted));
        }
    }
    for (name, time) in [
        ("election", config.election_timeout),
        ("election-backoff", config.election_backoff_max),
        ("fetch", config.fetch_timeout),
        ("request", config.request_timeout),
        ("backoff", config.retry_backoff),
        ("hint", config.hint_delay),
        ("linger", config.linger),
        ("hw-linger", config.high_watermark_linger),
    ] {
        let _ = write!(line, " {name}={}", us(time));
    }
    let _ = write!(
        line,
        " max-batch={} max-uncommitted={} max-parked={} seed={}",
        config.max_batch_bytes,
        config.max_uncommitted_bytes,
        config.max_parked_fetches,
        config.seed
    );
    line
}

fn has_voters(records: &[ControlRecord]) -> bool {
    records.iter().any(|record| matches!(record, ControlRecord::Voters(_)))
}

fn id_at(endpoint: &Endpoint) -> String {
    endpoint.port.saturating_sub(9000).to_string()
}

/// Directories are letters.
fn key(key: &ReplicaKey) -> String {
    match key.directory {
        Some(directory) => format!("{}/{}", key.id, char::from(directory.as_bytes()[0])),
        None => key.id.to_string(),
    }
}

fn voters(set: &VoterSet) -> String {
    let keys = set.ids().filter_map(|id| set.key(id));
    keys.map(|voter| key(&voter)).collect::<Vec<_>>().join(",")
}

fn control<'a>(records: impl Iterator<Item = &'a (Offset, ControlRecord)>) -> String {
    let mut text = String::new();
    for (offset, record) in records {
        let _ = match record {
            ControlRecord::KRaftVersion(version) => write!(text, " kraft@{offset}={}", version.0),
            ControlRecord::Voters(set) => write!(text, " voters@{offset}={}", voters(set)),
            _ => Ok(()),
        };
    }
    text
}

/// The command of an input, and who sent it.
fn command(input: &Input) -> (String, Option<String>) {
    let line = match input {
        Input::Request { request, .. } => {
            let (from, line) = self::request(request);
            return (line, Some(from));
        }
        Input::Response { id, response: Ok(response) } => {
            format!("<- reply #{} {}", id.0, self::response(response))
        }
        Input::Response { id, response: Err(why) } => {
            format!("<- #{} unreachable {}", id.0, unreachable(*why))
        }
        Input::Propose { epoch, records, .. } => {
            let sizes: Vec<String> =
                records.iter().map(|record| record.len().to_string()).collect();
            format!("propose {}+ epoch={epoch}", sizes.join("+"))
        }
        Input::Resign { epoch } => format!("resign epoch={epoch}"),
        Input::Durable { through } => format!("durable #{}", through.0),
        Input::Storage(_) => "storage failed".to_owned(),
        Input::Shutdown => "shutdown".to_owned(),
        Input::Tick => "tick".to_owned(),
    };
    (line, None)
}

fn request(request: &Request) -> (String, String) {
    let to = |voter: &Option<ReplicaKey>| {
        voter.as_ref().map_or(String::new(), |voter| format!(" to={}", key(voter)))
    };
    let dir = |replica: &ReplicaKey| {
        replica.directory.map_or('-', |directory| char::from(directory.as_bytes()[0]))
    };
    let endpoints = |is_empty: bool| if is_empty { " no-endpoints" } else { "" };
    let (from, what) = match request {
        Request::Vote(vote) => (
            vote.replica.id.to_string(),
            format!(
                "vote-request{} epoch={} end={} dir={}{}",
                if vote.pre_vote { " pre" } else { "" },
                vote.epoch,
                vote.log_end,
                dir(&vote.replica),
                to(&vote.voter)
            ),
        ),
        Request::BeginQuorumEpoch(begin) => (
            begin.leader.to_string(),
            format!(
                "begin-request epoch={}{}{}",
                begin.epoch,
                to(&begin.voter),
                endpoints(begin.endpoints.is_empty())
            ),
        ),
        Request::EndQuorumEpoch(end) => {
            let candidates: Vec<String> = end.preferred_candidates.iter().map(key).collect();
            let none = endpoints(end.endpoints.is_empty());
            let candidates = candidates.join(",");
            (
                end.leader.to_string(),
                format!("end-request epoch={} candidates={candidates}{none}", end.epoch),
            )
        }
        Request::Fetch(fetch) => {
            let known = match fetch.high_watermark {
                FetcherHighWatermark::Unsaid => "unsaid".to_owned(),
                FetcherHighWatermark::Unknown => "-".to_owned(),
                FetcherHighWatermark::Known(offset) => offset.to_string(),
            };
            (
                fetch.replica.id.to_string(),
                format!(
                    "fetch-request epoch={} offset={} last={} hw={known} wait={} max={} dir={}",
                    fetch.epoch,
                    fetch.offset,
                    fetch.last_fetched_epoch,
                    fetch.max_wait_ms,
                    fetch.max_bytes,
                    dir(&fetch.replica)
                ),
            )
        }
        Request::FetchSnapshot(fetch) => (
            fetch.replica.id.to_string(),
            format!("fetch-snapshot-request epoch={} id={}", fetch.epoch, fetch.snapshot),
        ),
        Request::DescribeQuorum => ("tool".to_owned(), "describe-quorum".to_owned()),
        Request::DescribeReplica => ("tool".to_owned(), "describe-replica".to_owned()),
    };
    let line = format!("<- {from} {what}");
    (from, line)
}

fn current(current: &CurrentLeader, error: ErrorCode) -> String {
    let leader = current.leader.map_or("-".to_owned(), |leader| leader.to_string());
    let endpoint = if current.endpoint.is_none() { " no-endpoint" } else { "" };
    format!("epoch={} leader={leader}{endpoint} error={}", current.epoch, error.0)
}

fn response(response: &Response<Received>) -> String {
    match response {
        Response::Vote(vote) => format!(
            "vote {} {}",
            if vote.granted { "granted" } else { "refused" },
            current(&vote.current, vote.error)
        ),
        Response::BeginQuorumEpoch(answer) => {
            format!("begin {}", current(&answer.current, answer.error))
        }
        Response::EndQuorumEpoch(answer) => {
            format!("end {}", current(&answer.current, answer.error))
        }
        Response::Fetch(fetch) => {
            let mut text = format!("fetch {}", current(&fetch.current, fetch.error));
            if let Some(known) = fetch.high_watermark {
                let _ = write!(text, " hw={known}");
            }
            match &fetch.outcome {
                FetchOutcome::Diverging(at) => {
                    let _ = write!(text, " diverging={at}");
                }
                FetchOutcome::Snapshot(id) => {
                    let _ = write!(text, " snapshot={id}");
                }
                FetchOutcome::Records(received) => {
                    let batches = received.batches.iter().map(|batch| {
                        let len = batch.bytes.len();
                        format!("{}..{}@{}:{len}", batch.base, batch.end, batch.epoch)
                    });
                    let batches: Vec<String> = batches.collect();
                    if !batches.is_empty() {
                        let _ = write!(text, " batches={}", batches.join(","));
                    }
                    let records = received.batches.iter().flat_map(|batch| &batch.control);
                    text.push_str(&control(records));
                    if let Some(why) = &received.rejected {
                        let _ = write!(text, " rejected={}", why.replace(' ', "_"));
                    }
                }
            }
            text
        }
        other => format!("{other:?}"),
    }
}

fn unreachable(why: Unreachable) -> String {
    match why {
        Unreachable::Refused => "refused".to_owned(),
        Unreachable::Reset => "reset".to_owned(),
        Unreachable::TimedOut => "timed-out".to_owned(),
        Unreachable::UnsupportedVersion => "unsupported-version".to_owned(),
        Unreachable::TopLevel(code) => format!("top-level:{}", code.0),
        Unreachable::Malformed => "malformed".to_owned(),
    }
}
