//! A replica under script: commands become inputs, outputs become lines.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_core::io::{
    Content, CorrelationId, ElectionState, Input, Message, Output, ProposalId, RequestId,
    StorageTrouble, Timeout, Write, WriteId,
};
use quorate_core::message::{Request, Via};
use quorate_core::{Epoch, Instant, NodeId, Replica};

use super::language::{Words, parse, time};
use super::replica::{Description, description, listener};
use super::{peers, print};

/// What a script speaks to.
#[derive(Default)]
pub(crate) struct Harness {
    replica: Option<Replica>,
    node: i32,
    now: Instant,
    is_disk_instant: bool,
    is_by_hand: bool,
    unfinished: VecDeque<WriteId>,
    deadline: Option<(Instant, Timeout)>,
    last_election: Option<ElectionState>,
    /// Who sent the requests that have no answer yet.
    askers: BTreeMap<RequestId, String>,
    last_request: u64,
    last_proposal: u64,
    /// What was asked of whom, the newest last.
    asked: Vec<(NodeId, CorrelationId, Request)>,
    /// The last server that was asked who leads.
    somebody: Option<NodeId>,
    out: String,
}

impl Harness {
    /// Runs one line, and gives what it put out.
    pub(crate) fn run(&mut self, line: &str) -> Result<String, String> {
        let mut words = Words::new(line);
        let command = words.next()?;
        self.out.clear();
        match command.as_str() {
            "replica" => self.start(&mut words)?,
            "<-" => self.receive(&mut words)?,
            "elect" => self.elect()?,
            "propose" => self.propose(&mut words)?,
            "resign" => {
                let epoch = words.value("epoch")?.map_or(self.epoch(), Epoch);
                self.step(Input::Resign { epoch })?;
            }
            "durable" => self.durable(&words.next()?)?,
            "storage" if words.flag("failed") => {
                self.is_disk_instant = false;
                self.step(Input::Storage(StorageTrouble::Failed))?;
            }
            "disk" => {
                self.is_disk_instant = words.flag("instant");
                if !self.is_disk_instant && !words.flag("slow") {
                    return Err("disk instant, or disk slow".into());
                }
                self.settle()?;
            }
            "shutdown" => self.step(Input::Shutdown)?,
            "tick" => self.step(Input::Tick)?,
            "advance" => {
                let end = self.now + time(&words.next()?)?;
                self.advance(end)?;
            }
            "at" => self.now = Instant::from_start(time(&words.next()?)?),
            "until" => self.until(&words.next()?)?,
            "deadline" => self.print_deadline(),
            "describe" => {
                let description = self.replica()?.describe(self.now);
                self.line(print::describe(&description));
            }
            other => return Err(format!("`{other}` is no command")),
        }
        words.end()?;
        Ok(std::mem::take(&mut self.out))
    }

    fn replica(&self) -> Result<&Replica, String> {
        self.replica.as_ref().ok_or_else(|| "there is no replica".into())
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.replica.as_ref().map_or(Epoch(0), |replica| replica.describe(self.now).epoch)
    }

    /// The end of the log, and its last epoch.
    pub(crate) fn log_end(&self) -> quorate_core::OffsetAndEpoch {
        self.replica.as_ref().map(|replica| replica.describe(self.now).log_end).unwrap_or_default()
    }

    pub(crate) fn leader(&self) -> Option<NodeId> {
        self.replica.as_ref().and_then(|replica| replica.describe(self.now).leader)
    }

    pub(crate) fn node(&self) -> i32 {
        self.node
    }

    fn line(&mut self, line: String) {
        self.out.push_str(&line);
        self.out.push('\n');
    }

    fn start(&mut self, words: &mut Words) -> Result<(), String> {
        let description = description(words)?;
        let now = self.now;
        let Description { is_disk_instant, is_by_hand, .. } = description;
        *self = Harness { now, is_disk_instant, is_by_hand, ..Harness::default() };
        self.node = description.config.node.0;
        self.last_election = description.recovered.election.clone();
        let mut output = Output::default();
        match Replica::start(description.config, description.recovered, now, &mut output) {
            Ok(replica) => self.replica = Some(replica),
            Err(refused) => {
                self.line(format!("refused to start: {refused}"));
                return Ok(());
            }
        }
        self.take(output)?;
        self.settle()
    }

    /// One input, and what a driver does after it.
    fn step(&mut self, input: Input) -> Result<(), String> {
        self.step_once(input)?;
        self.settle()
    }

    fn step_once(&mut self, input: Input) -> Result<(), String> {
        let now = self.now;
        let replica = self.replica.as_mut().ok_or("there is no replica")?;
        let mut output = Output::default();
        replica.step(now, input, &mut output);
        self.take(output)
    }

    /// A quick disk has done its writes, and a batch that is due is cut.
    fn settle(&mut self) -> Result<(), String> {
        loop {
            if self.is_disk_instant
                && let Some(through) = self.unfinished.pop_back()
            {
                self.unfinished.clear();
                self.step_once(Input::Durable { through })?;
            } else if !self.is_by_hand && self.deadline.is_some_and(|(at, _)| at <= self.now) {
                self.step_once(Input::Tick)?;
                if self.deadline.is_some_and(|(at, _)| at <= self.now) {
                    return Err(format!("a busy loop: {:?} is due after a tick", self.deadline));
                }
            } else {
                return Ok(());
            }
        }
    }

    fn take(&mut self, output: Output) -> Result<(), String> {
        let mut elections = 0;
        for (id, write) in output.writes {
            if let Write::ElectionState(state) = &write {
                elections += 1;
                if self.last_election.replace(state.clone()).as_ref() == Some(state) {
                    return Err("the election state is written without a change".into());
                }
            }
            self.unfinished.push_back(id);
            self.line(format!("write  #{} {}", id.0, print::write(&write)));
            if let Write::Append(batch) = &write {
                self.check_len(batch)?;
            }
        }
        if elections > 1 {
            return Err("two election states in one step".into());
        }
        for event in output.events {
            self.line(format!("event  {}", print::event(&event)));
        }
        for message in output.messages {
            self.take_message(message)?;
        }
        self.deadline = output.deadline;
        if !self.is_by_hand
            && self.deadline.is_some_and(|(at, why)| at <= self.now && why != Timeout::Linger)
        {
            return Err(format!("{:?} is due and was not acted on", self.deadline));
        }
        Ok(())
    }

    /// Offsets count records.
    fn check_len(&self, batch: &quorate_core::io::Batch) -> Result<(), String> {
        let count = match &batch.content {
            Content::Data(records) => records.len(),
            Content::Control(records) => records.len(),
            Content::Encoded(_) => return Ok(()),
        };
        if batch.base.plus(count) != batch.end {
            return Err(format!("{count} records in {}..{}", batch.base, batch.end));
        }
        Ok(())
    }

    fn take_message(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Request { to, id, request } => {
                // Which server is asked for the leader is chance.
                let searches = matches!(request, Request::Fetch(_)) && self.leader() != Some(to.id);
                let name = if searches { "somebody".into() } else { to.id.to_string() };
                if searches {
                    self.somebody = Some(to.id);
                }
                self.line(format!("-> {name:<3} {}", print::request(&request)));
                self.asked.push((to.id, id, request));
            }
            Message::Response { id, response } => {
                let asker = self.askers.remove(&id).ok_or("a request is answered twice")?;
                self.line(format!("-> {asker:<3} {}", print::response(&response)));
            }
        }
        Ok(())
    }

    fn receive(&mut self, words: &mut Words) -> Result<(), String> {
        let from = words.next()?;
        if from == "reply" || from == "late" {
            let to = words.next()?;
            let age = usize::from(from == "late");
            let (to, id, request) = self.asked_of(&to, age)?;
            let response = peers::answer(self, to, &request, words)?;
            return self.step(Input::Response { id, response });
        }
        let kind = words.next()?;
        if kind == "unreachable" {
            let (_, id, _) = self.asked_of(&from, 0)?;
            let why = words.next()?;
            let response = Err(peers::unreachable(&why)?);
            return self.step(Input::Response { id, response });
        }
        let request = peers::request(self, &from, &kind, words)?;
        self.last_request += 1;
        let id = RequestId(self.last_request);
        let listener =
            words.text("via").map_or(listener(), |name| quorate_core::ListenerName::new(&name));
        let is_fetch = matches!(request, Request::Fetch(_));
        self.askers.insert(id, from);
        self.step(Input::Request { id, via: Via(listener), request })?;
        if self.out.is_empty() && self.askers.contains_key(&id) {
            self.line(if is_fetch { "(parked)".into() } else { "(held)".into() });
        }
        Ok(())
    }

    /// What was asked of this peer, `age` requests before its last one; or under this number, `#7`.
    fn asked_of(&self, of: &str, age: usize) -> Result<(NodeId, CorrelationId, Request), String> {
        if let Some(number) = of.strip_prefix('#') {
            let id = CorrelationId(parse(number)?);
            let asked = self.asked.iter().find(|(_, asked, _)| *asked == id);
            return asked.cloned().ok_or_else(|| format!("nothing was asked under {of}"));
        }
        let to = match (of, self.somebody) {
            ("somebody", Some(server)) => server,
            _ => NodeId(parse(of)?),
        };
        let asked = self.asked.iter().rev().filter(|(peer, ..)| *peer == to).nth(age);
        asked.cloned().ok_or_else(|| format!("nothing was asked of {to}"))
    }

    /// `propose 3`: a proposal of three records; `propose 1 2x100`: two proposals before the driver comes to
    /// its end, the second of two records of 100 bytes; `propose 17+19`: one of records of 17 and 19 bytes.
    fn propose(&mut self, words: &mut Words) -> Result<(), String> {
        let epoch = words.value("epoch")?.map_or(self.epoch(), Epoch);
        for proposal in words.rest() {
            let sizes: Vec<usize> = match proposal.split_once('x') {
                Some((count, size)) => vec![parse(size)?; parse(count)?],
                None if proposal.contains('+') => {
                    let sizes = proposal.split('+').filter(|size| !size.is_empty());
                    sizes.map(parse).collect::<Result<_, _>>()?
                }
                None => vec![10; parse(&proposal)?],
            };
            self.last_proposal += 1;
            let id = ProposalId(self.last_proposal);
            let records = sizes.iter().map(|size| Bytes::from(vec![b'x'; *size])).collect();
            self.step_once(Input::Propose { id, epoch, records })?;
        }
        self.settle()
    }

    fn durable(&mut self, through: &str) -> Result<(), String> {
        let last = *self.unfinished.back().ok_or("every write is durable")?;
        let through = match through.strip_prefix('#') {
            Some(number) => WriteId(parse(number)?),
            None if through == "all" => last,
            None => return Err("durable #9, or durable all".into()),
        };
        self.unfinished.retain(|id| *id > through);
        self.step(Input::Durable { through })
    }

    fn advance(&mut self, end: Instant) -> Result<(), String> {
        let mut ticks = 0;
        while let Some((at, _)) = self.deadline.filter(|(at, _)| *at <= end) {
            self.now = at;
            self.step(Input::Tick)?;
            ticks += 1;
            if ticks > 10_000 {
                return Err("ten thousand ticks: a tight loop".into());
            }
        }
        self.now = end;
        Ok(())
    }

    /// Ticks at each deadline up to the first of this kind.
    fn until(&mut self, kind: &str) -> Result<(), String> {
        for _ in 0..1_000 {
            let (at, why) = self.deadline.ok_or("there is no deadline")?;
            self.now = at;
            self.step(Input::Tick)?;
            if timeout(why) == kind {
                return Ok(());
            }
        }
        Err(format!("no {kind} deadline in a thousand"))
    }

    /// Election timeouts are random: `1000ms..2000ms` says in which stretch this one lies.
    fn print_deadline(&mut self) {
        let line = match self.deadline {
            None => "deadline none".into(),
            Some((at, Timeout::Election)) => {
                let from = at.since(self.now).as_millis() / 1000 * 1000;
                format!("deadline {from}ms..{}ms election", from + 1000)
            }
            Some((at, why)) => {
                format!("deadline {}ms {}", at.since(self.now).as_millis(), timeout(why))
            }
        };
        self.line(line);
    }

    /// Wins an election by real inputs: pre-votes, votes, and a Fetch of each voter past the first record.
    fn elect(&mut self) -> Result<(), String> {
        for _ in 0..20 {
            let now = self.now;
            let view = self.replica()?.describe(now);
            match view.role {
                "leader" if view.high_watermark.is_some() => return Ok(()),
                "leader" => {
                    let end = view.log_end;
                    let others =
                        view.voters.ids().filter(|id| id.0 != self.node).collect::<Vec<_>>();
                    for id in others {
                        for kind in ["reply", "fetch"] {
                            let line = match kind {
                                "reply" => format!("reply {id} begin"),
                                _ => format!("{id} fetch-request offset={} wait=0", end.offset),
                            };
                            self.receive(&mut Words::new(&line))?;
                        }
                    }
                    if !self.unfinished.is_empty() {
                        self.durable("all")?;
                    }
                }
                "prospective" | "candidate" => {
                    let voters =
                        view.voters.ids().filter(|id| id.0 != self.node).collect::<Vec<_>>();
                    for id in voters {
                        if self.replica()?.describe(now).role == view.role {
                            self.receive(&mut Words::new(&format!("reply {id} vote granted")))?;
                        }
                    }
                    if !self.unfinished.is_empty() {
                        self.durable("all")?;
                    }
                }
                "follower" => self.until("fetch")?,
                _ => self.until("election")?,
            }
        }
        Err("no leader after twenty tries".into())
    }
}

fn timeout(why: Timeout) -> &'static str {
    match why {
        Timeout::Linger => "linger",
        Timeout::Election => "election",
        Timeout::Fetch => "fetch",
        Timeout::CheckQuorum => "check-quorum",
        Timeout::BeginQuorumEpoch => "begin-quorum-epoch",
        Timeout::ParkedFetch => "parked-fetch",
        Timeout::Request => "request",
        Timeout::Backoff => "backoff",
        Timeout::StuckWrite => "stuck-write",
        Timeout::Shutdown => "shutdown",
    }
}
