//! The driver: one loop that joins core, storage and network.
//!
//! It takes what has come in, steps the replica with each input, and then submits the writes, sends the messages
//! and notifies the listeners once. Nothing here waits for a disk or decides what may leave when: that is the
//! core's.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use quorate_core::io::{
    Event, Input, Message, Output, RequestId, StorageTrouble, Timeout, WriteId,
};
use quorate_core::message::{
    ErrorCode, FetchOutcome, LogRange, Received, Request, Response, Unreachable, VoterAnswer,
};
use quorate_core::{Instant as CoreInstant, NodeId, Offset, Replica};
use quorate_driver::{
    Filled, LeaderToken, Leadership, Log, NotAppended, Outcome, Proposals, unreadable,
};
use quorate_network::{Incoming, Listener, PeerEvent, Peers, Reply};
use quorate_rpc::server::ServerContext;
use quorate_storage::{StorageError, Submitter};
use tokio::sync::{mpsc, oneshot, watch};

use crate::apply::Applier;
use crate::cold::ColdAnswer;
use crate::handle::Command;
use crate::node::StopReason;
use crate::observers::{Observers, Pace};

/// What the commit thread has reported; only the newest counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreState {
    pub(crate) durable: WriteId,
    pub(crate) failed: Option<StorageError>,
}

pub(crate) struct Driver {
    pub(crate) replica: Replica,
    pub(crate) clock: Instant,
    pub(crate) output: Output,
    pub(crate) log: Log,
    pub(crate) submitter: Submitter,
    pub(crate) store: watch::Receiver<StoreState>,
    /// Whether the commit thread is to wake this one; else what it has done is seen at the next input.
    pub(crate) waits_for_disk: Arc<AtomicBool>,
    pub(crate) requests: mpsc::Receiver<Incoming>,
    pub(crate) peers: Peers,
    pub(crate) peer_events: mpsc::Receiver<PeerEvent>,
    pub(crate) commands: mpsc::Receiver<Command>,
    /// Whether a batch begins at an offset that memory does not have any more.
    pub(crate) is_boundary_on_disk: Box<dyn Fn(Offset) -> bool + Send>,
    pub(crate) cold: SyncSender<ColdAnswer>,
    pub(crate) cold_answers: mpsc::Receiver<ColdAnswer>,
    pub(crate) applier: Applier,
    pub(crate) context: watch::Sender<ServerContext>,
    /// Closed with the driver.
    pub(crate) listeners: Vec<Listener>,
    pub(crate) state: State,
}

/// What the driver itself keeps account of.
#[derive(Default)]
pub(crate) struct State {
    proposals: Proposals<oneshot::Sender<Outcome>>,
    asked: HashMap<RequestId, Asked>,
    observers: Observers<Reply, ColdAnswer>,
    last_request: u64,
    committed: Offset,
    submitted: WriteId,
    durable: WriteId,
    pace: Pace,
    stopping: Option<Stopping>,
}

/// A request that has no answer yet.
struct Asked {
    reply: Reply,
    is_observer: bool,
}

/// The node is about to stop: what is on its way still leaves.
struct Stopping {
    at: Instant,
    reason: StopReason,
}

/// So many inputs of one kind are stepped before their output is flushed.
const MAX_INPUTS: usize = 4096;

/// How long a node whose disk failed goes on telling others, and those who ask.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long answers may take to leave after a shutdown is complete.
const FAREWELL: Duration = Duration::from_millis(50);

impl Driver {
    /// Runs until the node has stopped; the directory is closed then.
    pub(crate) async fn run(mut self) -> StopReason {
        self.flush();
        let reason = loop {
            self.wait().await;
            self.drain();
            // What the driver had at hand shares a batch: cut it now.
            while let Some((at, Timeout::Linger)) = self.output.deadline
                && at <= self.now()
            {
                self.step(Input::Tick);
            }
            self.flush();
            self.serve_observers().await;
            self.watch_disk();
            let is_gone = self.applier.is_gone() || self.cold_answers.is_closed();
            if is_gone && self.state.stopping.is_none() {
                let reason =
                    self.applier.failure().map_or(StopReason::Died, StopReason::StorageFailed);
                self.stop_in(Duration::ZERO, reason);
            }
            if let Some(stopping) = &self.state.stopping
                && stopping.at <= Instant::now()
            {
                break stopping.reason.clone();
            }
        };
        self.close(reason)
    }

    fn now(&self) -> CoreInstant {
        CoreInstant::from_start(self.clock.elapsed())
    }

    fn step(&mut self, input: Input) {
        self.replica.step(self.now(), input, &mut self.output);
    }

    /// Waits until something has come in, or the deadline; steps the first input.
    async fn wait(&mut self) {
        let core_deadline = self.output.deadline.map(|(at, _)| self.clock + at.since_start());
        let stop = self.state.stopping.as_ref().map(|stopping| stopping.at);
        let now = Instant::now();
        let observers = self.state.observers.due(now, self.is_busy(now));
        // Who rests for a caller that has gone rests no more.
        let gone = observers.and(self.state.pace.gone_at()).filter(|at| *at > now);
        let deadline = [core_deadline, stop, observers, gone].into_iter().flatten().min();
        let sleep = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Ok(()) = self.store.changed() => self.on_store(),
            Some(incoming) = self.requests.recv() => {
                self.on_store();
                self.on_request(incoming);
            }
            Some(event) = self.peer_events.recv() => {
                self.on_store();
                self.on_peer_event(event);
            }
            Some(command) = self.commands.recv() => {
                self.on_store();
                self.on_command(command);
            }
            Some(answer) = self.cold_answers.recv() => self.on_cold_answer(answer),
            () = sleep => {
                self.on_store();
                self.step(Input::Tick);
            }
        }
    }

    /// Steps whatever else is there already.
    fn drain(&mut self) {
        self.on_store();
        for _ in 0..MAX_INPUTS {
            let Ok(event) = self.peer_events.try_recv() else { break };
            self.on_peer_event(event);
        }
        for _ in 0..MAX_INPUTS {
            let Ok(incoming) = self.requests.try_recv() else { break };
            self.on_request(incoming);
        }
        for _ in 0..MAX_INPUTS {
            let Ok(command) = self.commands.try_recv() else { break };
            self.on_command(command);
        }
        for _ in 0..MAX_INPUTS {
            let Ok(answer) = self.cold_answers.try_recv() else { break };
            self.on_cold_answer(answer);
        }
    }

    /// Has the commit thread wake this one, if something waits for it.
    fn watch_disk(&mut self) {
        let waits = self.replica.waits_for_disk();
        self.waits_for_disk.store(waits, Ordering::Relaxed);
        // What became durable before the commit thread could see that is looked at now: both go through the same lock.
        if waits && self.store.borrow().durable > self.state.durable {
            self.store.mark_changed();
        }
    }

    fn on_store(&mut self) {
        let StoreState { durable, failed } = self.store.borrow_and_update().clone();
        if durable > self.state.durable {
            self.state.durable = durable;
            self.log.on_durable(durable);
            self.step(Input::Durable { through: durable });
            self.advance_applier();
        }
        if let Some(error) = failed
            && self.state.stopping.is_none()
        {
            tracing::error!(%error, "storage failed: this node resigns, promises nothing more, and stops");
            self.step(Input::Storage(StorageTrouble::Failed));
            self.stop_in(LAST_WORDS, StopReason::StorageFailed(error));
        }
    }

    fn on_request(&mut self, incoming: Incoming) {
        let Incoming { via, request, reply, .. } = incoming;
        self.state.last_request += 1;
        let id = RequestId(self.state.last_request);
        let is_observer = match &request {
            Request::Fetch(fetch) => !self.replica.voters().contains(&fetch.replica),
            _ => false,
        };
        self.state.asked.insert(id, Asked { reply, is_observer });
        self.step(Input::Request { id, via, request });
    }

    fn on_peer_event(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Response { id, to, response } => {
                let response = response.and_then(|response| self.check_divergence(to, response));
                self.step(Input::Response { id, response });
            }
            PeerEvent::Closed { to } => {
                tracing::debug!(peer = %to, "the peer closed its connection")
            }
        }
    }

    /// Histories part between batches: an answer that would have us cut a batch in two is nobody's history.
    fn check_divergence(
        &self,
        from: NodeId,
        response: Response<Received>,
    ) -> Result<Response<Received>, Unreachable> {
        if let Response::Fetch(fetch) = &response
            && let FetchOutcome::Diverging(diverging) = fetch.outcome
        {
            let target = self.replica.truncation_target(diverging);
            // What would cut nothing, or too much, is the core's to refuse. Few truncations reach back beyond memory, so that
            // reading the few kilobytes around one from disk, here, holds up nothing that matters.
            let is_boundary = target >= self.replica.log_end()
                || target.0 <= 0
                || self
                    .log
                    .tail()
                    .is_boundary(target)
                    .unwrap_or_else(|| (self.is_boundary_on_disk)(target));
            if !is_boundary {
                tracing::warn!(peer = %from, %diverging, "refused: the log would be cut inside a batch, at {target}");
                return Err(Unreachable::Malformed);
            }
        }
        Ok(response)
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Propose { epoch, records, outcome } => {
                let id = self.state.proposals.add(outcome);
                self.step(Input::Propose { id, epoch, records });
            }
            Command::Resign { epoch } => self.step(Input::Resign { epoch }),
            Command::Describe(reply) => {
                let _ = reply.send(self.replica.describe(self.now()));
            }
            Command::Shutdown => self.step(Input::Shutdown),
        }
    }

    fn stop_in(&mut self, wait: Duration, reason: StopReason) {
        self.state.stopping.get_or_insert(Stopping { at: Instant::now() + wait, reason });
    }

    /// Does what the steps asked for.
    fn flush(&mut self) {
        self.submit_writes();
        self.send_messages();
        self.notify();
    }

    fn submit_writes(&mut self) {
        if self.output.writes.is_empty() {
            return;
        }
        let now_ms = now_ms();
        let mut writes = Vec::with_capacity(self.output.writes.len());
        for (id, write) in self.output.writes.drain(..) {
            self.state.submitted = id;
            writes.push((id, self.log.submit(id, write, now_ms)));
        }
        self.submitter.submit(writes);
        self.state.pace.on_append(Instant::now());
        self.update_context();
    }

    /// ApiVersions reports kraft.version, which may have come with an append or gone with a truncation.
    fn update_context(&self) {
        let kraft_version = self.replica.kraft_version();
        self.context.send_if_modified(|context| {
            let changed = context.kraft_version != kraft_version;
            context.kraft_version = kraft_version;
            changed
        });
    }

    fn send_messages(&mut self) {
        // Their room is kept for the next steps, which begin with none of these.
        let mut messages = std::mem::take(&mut self.output.messages);
        for message in messages.drain(..) {
            match message {
                Message::Request { to, id, request } => self.peers.send(&to, id, request),
                Message::Response { id, response } => {
                    let Some(Asked { reply, is_observer }) = self.state.asked.remove(&id) else {
                        continue;
                    };
                    let now = if is_observer {
                        self.state.observers.push(reply, response)
                    } else {
                        Some((reply, response))
                    };
                    if let Some((reply, response)) = now {
                        self.answer(reply, response, is_observer);
                    }
                }
            }
        }
        self.output.messages = messages;
    }

    /// Whether observers are to leave the thread to others.
    fn is_busy(&self, now: Instant) -> bool {
        let is_committing = self.state.committed < self.replica.log_end();
        self.state.stopping.is_none() && (is_committing || self.state.pace.is_in_step(now))
    }

    /// Answers some of the observers if it is their turn, and lets their connections write.
    async fn serve_observers(&mut self) {
        let began = Instant::now();
        let is_busy = self.is_busy(began);
        if self.state.observers.has_slice(began, is_busy) {
            let (mut answers, mut bytes) = (0, 0);
            while let Some((reply, response)) = self.state.observers.pop(answers, bytes) {
                if reply.is_closed() {
                    continue;
                }
                answers += 1;
                bytes += self.answer(reply, response, true);
            }
            tokio::task::yield_now().await;
            let ended = Instant::now();
            self.state.observers.on_slice(ended, ended - began);
            self.state.pace.on_slice(began, ended);
        }
        let is_gone = |job: &ColdAnswer| job.reply.is_closed();
        if let Some(job) = self.state.observers.pop_cold(Instant::now(), is_busy, is_gone) {
            self.read_cold(job);
        }
    }

    /// Answers a request, a Fetch with the batches of its range: from memory, or from disk in a while. Returns how
    /// many bytes of them leave now.
    fn answer(&mut self, reply: Reply, response: Response<LogRange>, is_observer: bool) -> usize {
        match self.log.fill(response) {
            Filled::Ready(response, records) => {
                let bytes = records.iter().map(Bytes::len).sum();
                reply.send(response, records);
                bytes
            }
            Filled::Cold(range, response) => {
                let took = Duration::ZERO;
                let job = ColdAnswer { range, response, reply, is_observer, records: None, took };
                let now = if is_observer {
                    self.state.observers.push_cold(job, |job| job.reply.is_closed())
                } else {
                    self.read_cold(job);
                    None
                };
                if let Some(job) = now {
                    job.reply.send(unreadable(job.response), Vec::new());
                }
                0
            }
        }
    }

    fn read_cold(&mut self, job: ColdAnswer) {
        match self.cold.try_send(job) {
            Ok(()) => {}
            // Too much waits for the disk: the fetcher asks again in a while.
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => {
                if job.is_observer {
                    self.state.observers.on_read(Instant::now(), Duration::ZERO);
                }
                job.reply.send(unreadable(job.response), Vec::new());
            }
        }
    }

    fn on_cold_answer(&mut self, answer: ColdAnswer) {
        let ColdAnswer { range, response, reply, is_observer, records, took } = answer;
        if is_observer {
            self.state.observers.on_read(Instant::now(), took);
        }
        match records {
            Some(records) => {
                let (response, records) = self.log.fill_cold(range, response, records);
                reply.send(response, records);
            }
            None => reply.send(unreadable(response), Vec::new()),
        }
    }

    fn notify(&mut self) {
        let mut events = std::mem::take(&mut self.output.events);
        for event in events.drain(..) {
            match event {
                Event::HighWatermark(high_watermark) => {
                    self.state.committed = high_watermark;
                    if high_watermark >= self.replica.log_end() {
                        self.state.pace.on_quiet(Instant::now());
                    }
                    tell(self.state.proposals.on_committed(high_watermark));
                    self.advance_applier();
                }
                Event::Leader { epoch, leader } => self.on_leader(epoch, leader),
                Event::Appended { id, base, end, epoch } => {
                    self.state.proposals.on_appended(id, base, end, epoch)
                }
                Event::NotAppended { id, reason } => {
                    tell(self.state.proposals.on_not_appended(id, reason.into()))
                }
                Event::Truncated { to, generation } => {
                    tracing::info!(%to, generation, "the log was truncated")
                }
                Event::Role { role, epoch, reason } => tracing::info!(role, %epoch, reason, "role"),
                Event::Round(round) => log_round(&round),
                Event::IntegrityFault(fault) => tracing::error!(%fault, "integrity fault"),
                Event::Refused { peer, what } => match peer {
                    Some(peer) => tracing::warn!(%peer, "refused: {what}"),
                    None => tracing::warn!("refused: {what}"),
                },
                Event::ShutDown => self.stop_in(FAREWELL, StopReason::ShutDown),
            }
        }
        self.output.events = events;
    }

    fn on_leader(&mut self, epoch: quorate_core::Epoch, leader: Option<quorate_core::NodeId>) {
        let is_me = leader == Some(self.replica.id());
        if is_me {
            tracing::info!(epoch = epoch.0, "leader");
        } else {
            tell(self.state.proposals.on_leadership_lost());
            match leader {
                Some(leader) => tracing::info!(epoch = epoch.0, %leader, "following"),
                None => tracing::info!(epoch = epoch.0, "leaderless"),
            }
        }
        let token = is_me.then(|| LeaderToken::new(epoch));
        self.applier.leader_changed(Leadership { epoch, leader, token });
    }

    fn advance_applier(&mut self) {
        self.applier.advance(self.log.tail(), self.state.committed, self.replica.durable_end());
    }

    /// Ends everything, in order: no more inputs, every caller has its outcome, the directory is closed.
    fn close(mut self, reason: StopReason) -> StopReason {
        drop(self.listeners);
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Propose { outcome, .. } = command {
                let _ = outcome.send(Outcome::NotAppended(NotAppended::Stopped));
            }
        }
        tell(self.state.proposals.on_stopped());
        self.applier.stop();
        match (self.submitter.close(), reason) {
            (Err(error), StopReason::ShutDown) => StopReason::StorageFailed(error),
            (_, reason) => reason,
        }
    }
}

/// Tells callers what became of their proposals. Whoever does not listen any more need not know.
fn tell(outcomes: impl IntoIterator<Item = (oneshot::Sender<Outcome>, Outcome)>) {
    for (caller, outcome) in outcomes {
        let _ = caller.send(outcome);
    }
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// One line for each election round, which says why each voter refused.
fn log_round(round: &quorate_core::message::ElectionRound) {
    let kind = if round.pre_vote { "pre-vote" } else { "vote" };
    let outcome = match round.won {
        Some(true) => "won",
        Some(false) => "not won",
        None => "open",
    };
    let answers: Vec<String> = round
        .answers
        .iter()
        .map(|(voter, answer)| format!("{voter}: {}", describe_answer(answer)))
        .collect();
    tracing::info!(
        epoch = %round.epoch, log_end = %round.log_end, outcome, "election round, {kind}: {}", answers.join("; ")
    );
}

fn describe_answer(answer: &VoterAnswer) -> String {
    match answer {
        VoterAnswer::None => "has not answered".to_owned(),
        VoterAnswer::Granted => "granted".to_owned(),
        VoterAnswer::Refused { error: ErrorCode::NONE, epoch, leader: Some(leader) } => {
            format!("refused, it follows leader {leader} of epoch {epoch}")
        }
        VoterAnswer::Refused { error: ErrorCode::NONE, epoch, leader: None } => {
            format!("refused in epoch {epoch}: its log is longer, or it voted already")
        }
        VoterAnswer::Refused { error: ErrorCode::FENCED_LEADER_EPOCH, epoch, .. } => {
            format!("refused, it is in the later epoch {epoch}")
        }
        VoterAnswer::Refused { error: ErrorCode::INVALID_VOTER_KEY, .. } => {
            "refused, its directory id is another than the voter set has".to_owned()
        }
        VoterAnswer::Refused { error, epoch, .. } => {
            format!("refused with error {} in epoch {epoch}", error.0)
        }
        VoterAnswer::Unreachable(why) => match why {
            Unreachable::Refused => "unreachable, nothing listens there".to_owned(),
            Unreachable::Reset => "unreachable, the connection was reset".to_owned(),
            Unreachable::TimedOut => "unreachable, no answer in time".to_owned(),
            Unreachable::UnsupportedVersion => {
                "speaks no version of Vote that can ask this".to_owned()
            }
            Unreachable::TopLevel(error) => format!("refused the request with error {}", error.0),
            Unreachable::Malformed => "answered something that makes no sense".to_owned(),
        },
    }
}
