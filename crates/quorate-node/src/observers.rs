//! Answers to Fetches of observers, some at a time: however many there are, voters and commits come first.
//!
//! One thread runs the replica and all sockets, and each append is news for every observer. What is sent to them in a row is
//! bounded; and while records wait for their commit, so is their share of the time: each slice is followed by rest, a multiple of
//! the time that it took. Whoever waits falls behind, and takes more at its turn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use quorate_core::message::{FetchOutcome, LogRange, Response};

/// So many answers go out in a row.
const SLICE_ANSWERS: usize = 32;
/// And not many more bytes than this.
const SLICE_BYTES: usize = 512 << 10;
/// What one answer may bring, unless a single batch is larger.
const ANSWER_BYTES: u32 = 256 << 10;
/// So many times as long as a slice took is the rest after it: a sixteenth of the time is theirs.
const REST: u32 = 15;

/// Answers that wait for their turn, each with its `Reply`; at most one for each connection.
#[derive(Debug)]
pub(crate) struct Observers<R> {
    waiting: VecDeque<(R, Response<LogRange>)>,
    rests_until: Option<Instant>,
    /// How many answers wait for the disk.
    reading: usize,
}

impl<R> Default for Observers<R> {
    fn default() -> Self {
        Observers { waiting: VecDeque::new(), rests_until: None, reading: 0 }
    }
}

impl<R> Observers<R> {
    pub(crate) fn push(&mut self, reply: R, mut response: Response<LogRange>) {
        if let Response::Fetch(fetch) = &mut response
            && let FetchOutcome::Records(range) = &mut fetch.outcome
        {
            range.max_bytes = range.max_bytes.min(ANSWER_BYTES);
        }
        self.waiting.push_back((reply, response));
    }

    /// When the next slice is due: none while nobody waits, or some of the last one are still being read from disk.
    /// Nobody rests while all is committed.
    pub(crate) fn due(&self, now: Instant, is_committing: bool) -> Option<Instant> {
        let at = self.rests_until.filter(|_| is_committing).unwrap_or(now);
        (!self.waiting.is_empty() && self.reading == 0).then_some(at)
    }

    /// The next answer of a slice that so far has so many answers and bytes.
    pub(crate) fn pop(&mut self, answers: usize, bytes: usize) -> Option<(R, Response<LogRange>)> {
        let is_full = answers >= SLICE_ANSWERS || bytes >= SLICE_BYTES;
        if is_full { None } else { self.waiting.pop_front() }
    }

    /// A slice took so long, with all that its connections did.
    pub(crate) fn rest(&mut self, now: Instant, took: Duration) {
        let from = self.rests_until.map_or(now, |until| until.max(now));
        self.rests_until = Some(from + took * REST);
    }

    /// The batches of one answer are to be read from disk.
    pub(crate) fn on_cold(&mut self) {
        self.reading += 1;
    }

    /// They were read, which took so long.
    pub(crate) fn on_read(&mut self, now: Instant, took: Duration) {
        self.reading -= 1;
        self.rest(now, took);
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::message::{CurrentLeader, ErrorCode, FetchResponse};
    use quorate_core::{Epoch, Offset};

    use super::*;

    fn answer(from: i64) -> Response<LogRange> {
        let range = LogRange {
            from: Offset(from),
            to: Offset(from + 1),
            max_bytes: 8 << 20,
            generation: 0,
        };
        Response::Fetch(FetchResponse {
            error: ErrorCode::NONE,
            current: CurrentLeader { epoch: Epoch(1), leader: None, endpoint: None },
            high_watermark: None,
            log_start: None,
            outcome: FetchOutcome::Records(range),
        })
    }

    fn range(response: &Response<LogRange>) -> LogRange {
        match response {
            Response::Fetch(FetchResponse { outcome: FetchOutcome::Records(range), .. }) => *range,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_slice_has_an_end_and_is_followed_by_rest() {
        let (now, mut observers) = (Instant::now(), Observers::default());
        assert_eq!(observers.due(now, true), None, "nobody waits");
        for number in 0..100 {
            observers.push(number, answer(number));
        }
        assert_eq!(observers.due(now, true), Some(now));
        let slice: Vec<i64> = (0..)
            .map_while(|answers| observers.pop(answers, 0))
            .map(|(number, _)| number)
            .collect();
        assert_eq!(slice, (0..32).collect::<Vec<_>>(), "first come, first served");
        assert!(observers.pop(1, SLICE_BYTES).is_none(), "so many bytes are enough");
        observers.rest(now, Duration::from_millis(2));
        assert_eq!(observers.due(now, true), Some(now + Duration::from_millis(30)));
        observers.rest(now, Duration::from_millis(1));
        assert_eq!(observers.due(now, true), Some(now + Duration::from_millis(45)), "one more");
        assert_eq!(observers.due(now, false), Some(now), "nothing else is to be done");
        observers.on_cold();
        assert_eq!(observers.due(now, false), None, "one is still read from disk");
        observers.on_read(now, Duration::from_millis(1));
        assert_eq!(observers.due(now, true), Some(now + Duration::from_millis(60)));
    }

    #[test]
    fn an_answer_has_an_end_too() {
        let mut observers = Observers::default();
        observers.push((), answer(7));
        let (_, response) = observers.pop(0, 0).expect("it waits");
        assert_eq!(range(&response).max_bytes, ANSWER_BYTES);
    }
}
