//! Answers to Fetches of observers, some at a time: however many there are, voters and commits come first.
//!
//! One thread runs the replica and all sockets, and each append is news for every observer. What is sent to them in a row is
//! bounded; and while records are being appended, so is their share of the time: each slice is followed by rest, a multiple
//! of the time that it took. Whoever waits falls behind, and takes more at its turn. Those whose batches only the disk has
//! wait in a queue of their own, and are read for one by one.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use quorate_core::message::{ErrorCode, FetchOutcome, LogRange, Response};

/// So many answers go out in a row.
const SLICE_ANSWERS: usize = 32;
/// And not many more bytes than this.
const SLICE_BYTES: usize = 512 << 10;
/// What one answer may bring, unless a single batch is larger.
const ANSWER_BYTES: u32 = 64 << 10;
/// So many times as long as a slice took is the rest after it: a twelfth of the time is theirs.
const REST: u32 = 11;
/// No rest is longer: what a slice took may be time that others had.
const LONGEST_REST: Duration = Duration::from_millis(50);

/// A caller that appends so soon after a commit waits for each.
const IN_STEP: Duration = Duration::from_micros(100);
/// Such a caller has gone once it has been quiet for so long.
const GONE: Duration = Duration::from_millis(5);

/// So many may wait for the disk; others are told to ask again.
const MAX_COLD: usize = 4096;

/// Answers that wait for their turn, at most one for each connection: `R` is where an answer goes, `C` one that needs the
/// disk.
#[derive(Debug)]
pub(crate) struct Observers<R, C> {
    waiting: VecDeque<(R, Response<LogRange>)>,
    rests_until: Option<Instant>,
    cold: VecDeque<C>,
    is_reading: bool,
    reads_at: Option<Instant>,
}

impl<R, C> Default for Observers<R, C> {
    fn default() -> Self {
        Observers {
            waiting: VecDeque::new(),
            rests_until: None,
            cold: VecDeque::new(),
            is_reading: false,
            reads_at: None,
        }
    }
}

impl<R, C> Observers<R, C> {
    /// Takes an answer, to be sent at its turn; gives it back if it is to be sent now, as one that says where the leader is.
    pub(crate) fn push(
        &mut self,
        reply: R,
        mut response: Response<LogRange>,
    ) -> Option<(R, Response<LogRange>)> {
        match &mut response {
            Response::Fetch(fetch) if fetch.error == ErrorCode::NONE => {
                if let FetchOutcome::Records(range) = &mut fetch.outcome {
                    range.max_bytes = range.max_bytes.min(ANSWER_BYTES);
                }
                self.waiting.push_back((reply, response));
                None
            }
            _ => Some((reply, response)),
        }
    }

    /// One of a slice needs the disk: it waits for its turn there, or comes back if there are too many.
    pub(crate) fn push_cold(&mut self, job: C, is_gone: impl Fn(&C) -> bool) -> Option<C> {
        if self.cold.len() >= MAX_COLD {
            self.cold.retain(|job| !is_gone(job));
        }
        if self.cold.len() >= MAX_COLD {
            return Some(job);
        }
        self.cold.push_back(job);
        None
    }

    /// When the next slice is due, or the next reading; none while nobody waits. Nobody rests unless the leader is busy.
    pub(crate) fn due(&self, now: Instant, is_busy: bool) -> Option<Instant> {
        let slice = (!self.waiting.is_empty()).then(|| rested(self.rests_until, now, is_busy));
        let reading = (!self.cold.is_empty() && !self.is_reading)
            .then(|| rested(self.reads_at, now, is_busy));
        [slice, reading].into_iter().flatten().min()
    }

    /// The next answer of a slice that so far has so many answers and bytes.
    pub(crate) fn pop(&mut self, answers: usize, bytes: usize) -> Option<(R, Response<LogRange>)> {
        let is_full = answers >= SLICE_ANSWERS || bytes >= SLICE_BYTES;
        if is_full { None } else { self.waiting.pop_front() }
    }

    /// Whether a slice is due.
    pub(crate) fn has_slice(&self, now: Instant, is_busy: bool) -> bool {
        !self.waiting.is_empty() && rested(self.rests_until, now, is_busy) <= now
    }

    /// A slice took so long, with all that its connections did.
    pub(crate) fn on_slice(&mut self, now: Instant, took: Duration) {
        self.rests_until = Some(now + rest(took));
    }

    /// The one to be read for, if that is due and it still waits; [`on_read`](Observers::on_read) ends it.
    pub(crate) fn pop_cold(
        &mut self,
        now: Instant,
        is_busy: bool,
        is_gone: impl Fn(&C) -> bool,
    ) -> Option<C> {
        if self.is_reading || rested(self.reads_at, now, is_busy) > now {
            return None;
        }
        while let Some(job) = self.cold.pop_front() {
            if !is_gone(&job) {
                self.is_reading = true;
                return Some(job);
            }
        }
        None
    }

    /// The reading took so long.
    pub(crate) fn on_read(&mut self, now: Instant, took: Duration) {
        self.is_reading = false;
        self.reads_at = Some(now + rest(took));
    }
}

/// Tells a caller that waits for each commit, and so appends at once after it, from records that come at their own time.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Since when all is committed; slices do not count.
    quiet_since: Option<Instant>,
    in_step: bool,
}

impl Pace {
    pub(crate) fn on_quiet(&mut self, now: Instant) {
        self.quiet_since = Some(now);
    }

    pub(crate) fn on_append(&mut self, now: Instant) {
        if let Some(since) = self.quiet_since.take() {
            self.in_step = now.saturating_duration_since(since) < IN_STEP;
        }
    }

    /// A slice was sent meanwhile.
    pub(crate) fn on_slice(&mut self, began: Instant, ended: Instant) {
        if let Some(since) = &mut self.quiet_since {
            *since += ended.saturating_duration_since(began);
        }
    }

    /// Whether such a caller is to be expected at once.
    pub(crate) fn is_in_step(&self, now: Instant) -> bool {
        self.gone_at().is_some_and(|at| now < at)
    }

    /// When it is expected no more.
    pub(crate) fn gone_at(&self) -> Option<Instant> {
        self.quiet_since.filter(|_| self.in_step).map(|since| since + GONE)
    }
}

fn rest(took: Duration) -> Duration {
    (took * REST).min(LONGEST_REST)
}

fn rested(until: Option<Instant>, now: Instant, is_busy: bool) -> Instant {
    until.filter(|_| is_busy).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use quorate_core::message::{CurrentLeader, FetchResponse};
    use quorate_core::{Epoch, Offset};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn answer(error: ErrorCode) -> Response<LogRange> {
        let range = LogRange { from: Offset(1), to: Offset(2), max_bytes: 8 << 20, generation: 0 };
        Response::Fetch(FetchResponse {
            error,
            current: CurrentLeader { epoch: Epoch(1), leader: None, endpoint: None },
            high_watermark: None,
            log_start: None,
            outcome: FetchOutcome::Records(range),
        })
    }

    fn waiting(count: i32) -> Observers<i32, i32> {
        let mut observers = Observers::default();
        for number in 0..count {
            assert!(observers.push(number, answer(ErrorCode::NONE)).is_none());
        }
        observers
    }

    fn range(response: &Response<LogRange>) -> LogRange {
        match response {
            Response::Fetch(FetchResponse { outcome: FetchOutcome::Records(range), .. }) => *range,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_slice_has_an_end_and_is_followed_by_rest() {
        let now = Instant::now();
        assert_eq!(waiting(0).due(now, true), None, "nobody waits");
        let mut observers = waiting(100);
        assert_eq!(observers.due(now, true), Some(now));
        let slice: Vec<i32> = (0..)
            .map_while(|answers| observers.pop(answers, 0))
            .map(|(number, _)| number)
            .collect();
        assert_eq!(slice, (0..32).collect::<Vec<_>>(), "first come, first served");
        assert!(observers.pop(1, SLICE_BYTES).is_none(), "so many bytes are enough");
        observers.on_slice(now, 2 * MS);
        assert_eq!(observers.due(now, true), Some(now + 22 * MS));
        assert!(!observers.has_slice(now, true));
        assert!(observers.has_slice(now, false), "nothing else is to be done");
    }

    #[test]
    fn rest_has_an_end_whatever_came_before() {
        let (now, mut observers) = (Instant::now(), waiting(100));
        for _ in 0..1000 {
            observers.on_slice(now, 10 * MS);
        }
        assert_eq!(observers.due(now, true), Some(now + LONGEST_REST));
    }

    #[test]
    fn one_is_read_for_at_a_time_and_holds_up_no_other() {
        let (now, mut observers) = (Instant::now(), waiting(1));
        let stays = |_: &i32| false;
        assert_eq!(observers.push_cold(7, stays).or(observers.push_cold(8, stays)), None);
        assert_eq!(observers.pop_cold(now, true, stays), Some(7));
        assert_eq!(observers.pop_cold(now, true, stays), None, "7 is still read for");
        assert!(observers.has_slice(now, true), "those who need no disk go on");
        observers.on_read(now, MS);
        assert_eq!(observers.pop_cold(now, true, stays), None, "the disk is others'");
        assert_eq!(observers.pop_cold(now + 11 * MS, true, stays), Some(8));
        observers.on_read(now, MS);
        observers.pop(0, 0);
        assert_eq!(observers.due(now, true), None, "nobody waits");
    }

    #[test]
    fn nobody_is_read_for_who_is_gone_and_few_wait_for_the_disk() {
        let (now, mut observers) = (Instant::now(), waiting(0));
        let stays = |_: &i32| false;
        let limit = i32::try_from(MAX_COLD).expect("small");
        assert!((0..limit).all(|number| observers.push_cold(number, stays).is_none()));
        assert_eq!(observers.push_cold(limit, stays), Some(limit), "it asks again");
        let is_gone = |number: &i32| *number < limit - 1;
        assert_eq!(observers.push_cold(limit, is_gone), None, "the others have left");
        assert_eq!(observers.pop_cold(now, true, |number| *number < limit), Some(limit));
    }

    #[test]
    fn a_caller_that_waits_for_each_commit_is_known_and_forgotten() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let at = |micros| start + Duration::from_micros(micros);
        assert!(!pace.is_in_step(start));
        pace.on_quiet(at(0));
        pace.on_append(at(20));
        pace.on_quiet(at(400));
        assert!(pace.is_in_step(at(401)), "it appended 20 us after the commit");
        pace.on_slice(at(500), at(9_500));
        assert!(pace.is_in_step(at(9_600)), "a slice is no quiet");
        assert_eq!(pace.gone_at(), Some(at(14_400)));
        assert!(!pace.is_in_step(at(14_400)), "it has gone");
        pace.on_append(at(20_000));
        assert!(!pace.is_in_step(at(20_001)), "one that comes at its own time");
        assert_eq!(pace.gone_at(), None);
    }

    #[test]
    fn an_answer_has_an_end_and_an_error_does_not_wait() {
        let mut observers = waiting(1);
        let (_, response) = observers.pop(0, 0).expect("it waits");
        assert_eq!(range(&response).max_bytes, ANSWER_BYTES);
        let refusal = answer(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        assert_eq!(observers.push(1, refusal.clone()), Some((1, refusal)));
    }
}
