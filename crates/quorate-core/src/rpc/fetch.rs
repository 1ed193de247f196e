//! Fetch, the leader's side: replication, acknowledgement and heartbeat in one (KIP-595, KIP-1166). The
//! fetcher's side is in `fetch/follower.rs`.

mod follower;

use alloc::format;
use core::time::Duration;

use crate::ids::{Epoch, Instant, Offset};
use crate::io::{Event, RequestId};
use crate::message::{
    ErrorCode, FetchOutcome, FetchRequest, FetchResponse, FetcherHighWatermark, LogRange, Response,
    Via,
};
use crate::outbox::Turn;
use crate::replica::Replica;
use crate::role::{Parked, Role};

/// A Fetch is held no longer, whatever it asks for: its client may be gone, and each step looks at all that are held.
/// Controllers and brokers ask for half a second, and Kafka's clients give up a request after 30 s.
///
/// Differs from Kafka, which holds it for as long as it asks, up to 24 days.
const MAX_WAIT: Duration = Duration::from_secs(30);

impl Replica {
    /// Answers a Fetch, at once or when there is news.
    pub(crate) fn on_fetch_request(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        via: Via,
        request: FetchRequest,
    ) {
        let wait = u64::try_from(request.max_wait_ms).unwrap_or(0);
        let until = turn.now + Duration::from_millis(wait).min(MAX_WAIT);
        let mut fetch = Parked { id, via, request, until };
        if let Err(error) = self.check_fetch(&fetch.request) {
            return self.answer_fetch_error(turn, &fetch, error);
        }
        if fetch.request.replica.id == self.config.node {
            return self.answer_fetch_error(turn, &fetch, ErrorCode::UNKNOWN_SERVER_ERROR);
        }
        self.drop_older_fetch(turn, &fetch);
        let outcome = self.position(&fetch.request);
        if let FetchOutcome::Records(_) = outcome {
            self.acknowledge(turn, &fetch.request);
        }
        if self.lacks_high_watermark(&fetch) {
            fetch.until = fetch.until.min(turn.now + self.config.high_watermark_linger);
        }
        if has_records(&outcome) || fetch.until <= turn.now {
            self.answer_fetch(turn, &fetch, outcome);
        } else {
            self.park(turn, fetch);
        }
    }

    fn check_fetch(&self, request: &FetchRequest) -> Result<(), ErrorCode> {
        let is_malformed = request.max_wait_ms < 0
            || request.offset.0 < 0
            || request.last_fetched_epoch.0 < 0
            || request.last_fetched_epoch > request.epoch;
        if is_malformed {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        self.check_leader(request.epoch)
    }

    /// The check of all requests that only the leader of their epoch serves.
    pub(crate) fn check_leader(&self, epoch: Epoch) -> Result<(), ErrorCode> {
        if epoch < self.epoch {
            return Err(ErrorCode::FENCED_LEADER_EPOCH);
        }
        if epoch > self.epoch {
            return Err(ErrorCode::UNKNOWN_LEADER_EPOCH);
        }
        match &self.role {
            Role::Leader(_) if self.is_shutting_down() => Err(ErrorCode::BROKER_NOT_AVAILABLE),
            Role::Leader(_) => Ok(()),
            _ => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
        }
    }

    /// Whether the fetcher's log is a prefix of ours, and what to send it (protocol reference 4.6).
    fn position(&self, request: &FetchRequest) -> FetchOutcome<LogRange> {
        let from = request.offset;
        let is_at_start = from == Offset::ZERO && self.log.start() == Offset::ZERO;
        if !is_at_start {
            let end = self.log.end_of_epoch(request.last_fetched_epoch);
            if end.epoch != request.last_fetched_epoch || end.offset < from {
                return FetchOutcome::Diverging(end);
            }
        }
        FetchOutcome::Records(LogRange {
            from,
            to: self.log.end(),
            max_bytes: u32::try_from(request.max_bytes).unwrap_or(0),
            generation: self.log.generation(),
        })
    }

    /// A Fetch at an offset promises that all below it is on the fetcher's stable media.
    fn acknowledge(&mut self, turn: &mut Turn<'_>, request: &FetchRequest) {
        let deadline = turn.now + self.config.check_quorum_timeout();
        if let Role::Leader(leader) = &mut self.role
            && request.replica.id.is_replica()
        {
            let voters = self.voters.voters();
            let (replica, offset) = (request.replica, request.offset);
            let before = leader.on_fetch(turn.now, replica, offset, self.log.end(), voters);
            leader.on_heard(replica, voters, deadline);
            if let Some(before) = before {
                let what = format!(
                    "voter {replica} asks from offset {offset} after it had acknowledged all below {before}: an old \
                     Fetch came late, or it has lost its log"
                );
                self.odd(turn, Some(replica.id), what);
            }
            self.advance_high_watermark(turn);
        }
    }

    /// Whether the fetcher's high watermark is known to be below ours (KIP-1166).
    fn lacks_high_watermark(&self, fetch: &Parked) -> bool {
        match (fetch.request.high_watermark, self.high_watermark) {
            (FetcherHighWatermark::Known(theirs), Some(ours)) => theirs < ours,
            (FetcherHighWatermark::Unknown, Some(_)) => true,
            (FetcherHighWatermark::Unsaid, _) | (_, None) => false,
        }
    }

    fn park(&mut self, turn: &mut Turn<'_>, fetch: Parked) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        leader.parked.push_back(fetch);
        let surplus = if leader.parked.len() > self.config.max_parked_fetches {
            leader.parked.pop_front()
        } else {
            None
        };
        if let Some(oldest) = surplus {
            self.answer_now(turn, &oldest);
        }
    }

    /// A replica has one Fetch at a time: a new one says that it no longer waits for the old.
    fn drop_older_fetch(&mut self, turn: &mut Turn<'_>, fetch: &Parked) {
        let replica = fetch.request.replica;
        if replica.id.is_replica() {
            self.release_parked(turn, |parked| parked.request.replica == replica);
        }
    }

    /// The log has grown: answers whoever waits for records.
    pub(crate) fn on_log_grown(&mut self, turn: &mut Turn<'_>) {
        let end = self.log.end();
        self.release_parked(turn, |parked| parked.request.offset < end);
    }

    /// Answers parked Fetches whose wait is over.
    pub(crate) fn expire_parked(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now;
        self.release_parked(turn, |parked| parked.until <= now);
    }

    pub(crate) fn parked_deadline(&self) -> Option<Instant> {
        match &self.role {
            Role::Leader(leader) => leader.parked.iter().map(|parked| parked.until).min(),
            _ => None,
        }
    }

    fn release_parked(&mut self, turn: &mut Turn<'_>, is_released: impl Fn(&Parked) -> bool) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        if !leader.parked.iter().any(&is_released) {
            return;
        }
        // Whoever stays goes to the end of the queue, and so all of them keep their order.
        for _ in 0..leader.parked.len() {
            let Role::Leader(leader) = &mut self.role else {
                return;
            };
            match leader.parked.pop_front() {
                Some(fetch) if is_released(&fetch) => self.answer_now(turn, &fetch),
                Some(fetch) => leader.parked.push_back(fetch),
                None => return,
            }
        }
    }

    fn answer_now(&mut self, turn: &mut Turn<'_>, fetch: &Parked) {
        let outcome = self.position(&fetch.request);
        self.answer_fetch(turn, fetch, outcome);
    }

    fn answer_fetch(
        &mut self,
        turn: &mut Turn<'_>,
        fetch: &Parked,
        outcome: FetchOutcome<LogRange>,
    ) {
        let response = FetchResponse {
            error: ErrorCode::NONE,
            current: self.current_leader(&fetch.via),
            high_watermark: self.high_watermark,
            log_start: Some(self.log.start()),
            outcome,
        };
        self.outbox.answer(turn, fetch.id, Response::Fetch(response));
    }

    /// A leader that leads no more: whoever waits hears of it at once.
    pub(crate) fn refuse_fetch(&mut self, turn: &mut Turn<'_>, fetch: &Parked) {
        self.answer_fetch_error(turn, fetch, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }

    fn answer_fetch_error(&mut self, turn: &mut Turn<'_>, fetch: &Parked, error: ErrorCode) {
        let from = fetch.request.offset;
        let nothing = LogRange { from, to: from, max_bytes: 0, generation: self.log.generation() };
        let response = FetchResponse {
            error,
            current: self.current_leader(&fetch.via),
            high_watermark: None,
            log_start: Some(self.log.start()),
            outcome: FetchOutcome::Records(nothing),
        };
        self.outbox.answer(turn, fetch.id, Response::Fetch(response));
    }

    /// Moves the leader's high watermark to what a majority holds, past the first record of its own epoch
    /// (Raft §5.4.2).
    pub(crate) fn advance_high_watermark(&mut self, turn: &mut Turn<'_>) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let Some(held) = leader.held_by_majority(self.voters.voters(), self.log.durable_end())
        else {
            return;
        };
        if held <= leader.epoch_start || self.high_watermark.is_some_and(|known| held <= known) {
            return;
        }
        self.set_high_watermark(turn, held);
        // Differs from Kafka, which answers at once. Records that come within the linger take the news along.
        let until = turn.now + self.config.high_watermark_linger;
        if let Role::Leader(leader) = &mut self.role {
            leader.on_committed(held);
            leader.parked.iter_mut().for_each(|parked| parked.until = parked.until.min(until));
        }
        if self.config.high_watermark_linger.is_zero() {
            self.expire_parked(turn);
        }
    }

    fn set_high_watermark(&mut self, turn: &mut Turn<'_>, high_watermark: Offset) {
        self.high_watermark = Some(high_watermark);
        if high_watermark > self.committed {
            self.committed = high_watermark;
            turn.output.events.push(Event::HighWatermark(high_watermark));
        }
    }
}

/// Whether the answer brings more than a high watermark.
fn has_records(outcome: &FetchOutcome<LogRange>) -> bool {
    match outcome {
        FetchOutcome::Records(range) => range.from < range.to,
        FetchOutcome::Diverging(_) | FetchOutcome::Snapshot(_) => true,
    }
}
