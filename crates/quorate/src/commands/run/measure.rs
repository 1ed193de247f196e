//! A workload measured from inside, on a thread of its own: how many records commit, and how long each takes.
//!
//! At a rate a record's time counts from when it was due, not from when it was appended: one that had to wait for
//! those before it is as late as its caller would find it, and one that finds no room is as late as the window is long.
//! Without a rate as many are appended as have committed, in one append where the batch allows.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use quorate_node::{NotAppended, Outcome as Fate};
use serde::Serialize;

use super::workload::{Measure, Workload};

/// How long outcomes are waited for once the window is over. What has none by then is at least as late.
const DRAIN: Duration = Duration::from_secs(10);

/// How long to wait after a record that found no room.
const BACKOFF: Duration = Duration::from_millis(1);

/// Where the measuring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The window begins.
    Begins,
    /// The window has ended; the last outcomes are waited for.
    Ends,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Committed within the window.
    records: u64,
    /// The append calls that those came in.
    appends: u64,
    /// Of the window.
    seconds: f64,
    records_per_second: f64,
    /// Of every record that was due within the window; at a rate, also of those that found no room.
    latency_us: Latency,
    /// Found no room.
    not_appended: u64,
    /// May commit or not.
    unknown: u64,
    /// Had no outcome when the waiting ended.
    unfinished: u64,
    /// How often this node synced within the window.
    durable_groups: u64,
    /// Why it ended early, if it did.
    ended_early: Option<&'static str>,
}

/// Microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    p50: f64,
    p75: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// Appends until the window is over, or an outcome says that this node leads no more.
///
/// `append` appends one batch, and its outcomes come in the order of the calls; `groups` counts syncs.
pub(super) fn run<F>(
    workload: &Workload,
    measure: &Measure,
    value: &Bytes,
    append: impl FnMut(Vec<Bytes>) -> F,
    groups: impl Fn() -> u64,
    mut on_mark: impl FnMut(Mark),
) -> Report
where
    F: Future<Output = Fate> + Unpin,
{
    let start = Instant::now();
    let begin = start + measure.warm_up;
    let pace = match workload.rate {
        0 => Pace::Closed,
        rate => Pace::Open { start, rate },
    };
    let mut load = Load {
        append,
        value,
        batch: measure.batch,
        in_flight: workload.in_flight,
        pace,
        appended: 0,
        waiting: VecDeque::new(),
        outstanding: 0,
        tally: Tally::new(begin, begin + measure.window),
    };
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut begun, mut ended) = (None, None);
    loop {
        let now = Instant::now();
        // An end in the warm-up is one too: whoever listens waits for both.
        if begun.is_none() && now >= begin.min(load.tally.end) {
            begun = Some(groups());
            on_mark(Mark::Begins);
        }
        if ended.is_none() && now >= load.tally.end {
            ended = Some(groups());
            on_mark(Mark::Ends);
        }
        load.append_what_is_due(now);
        if load.take_outcomes(&waker) {
            continue;
        }
        let end = load.tally.end;
        let is_done = load.waiting.is_empty() && load.next_due().is_none_or(|due| due >= end);
        if ended.is_some() && (is_done || now >= end + DRAIN) {
            break;
        }
        let next_mark = [begin, end, end + DRAIN].into_iter().find(|mark| *mark > now);
        let wake = [next_mark, load.next_due()].into_iter().flatten().min();
        thread::park_timeout(wake.map_or(BACKOFF, |wake| wake.saturating_duration_since(now)));
    }
    load.give_up(Instant::now());
    let groups = ended.unwrap_or_default().saturating_sub(begun.unwrap_or_default());
    load.tally.report(groups)
}

/// When records are due.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// As soon as there is room.
    Closed,
    /// At a constant rate, whatever became of those before.
    Open { start: Instant, rate: u32 },
}

impl Pace {
    /// When the record of this number is due, if time decides.
    fn due(self, number: u64) -> Option<Instant> {
        let Pace::Open { start, rate } = self else { return None };
        let nanos = u128::from(number) * 1_000_000_000 / u128::from(rate);
        Some(start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// How many records are due by a time.
    fn due_by(self, time: Instant) -> u64 {
        match self {
            Pace::Closed => u64::MAX,
            Pace::Open { start, rate } => {
                let nanos = time.saturating_duration_since(start).as_nanos();
                u64::try_from(nanos * u128::from(rate) / 1_000_000_000 + 1).unwrap_or(u64::MAX)
            }
        }
    }
}

struct Load<'a, A, F> {
    append: A,
    value: &'a Bytes,
    batch: usize,
    in_flight: usize,
    pace: Pace,
    /// How many records were appended: the number of the next one.
    appended: u64,
    waiting: VecDeque<Append<F>>,
    /// Records in `waiting`.
    outstanding: usize,
    tally: Tally,
}

/// An append call under way.
struct Append<F> {
    at: Instant,
    /// The number of its first record.
    first: u64,
    count: usize,
    fate: F,
}

impl<A, F> Load<'_, A, F>
where
    A: FnMut(Vec<Bytes>) -> F,
    F: Future<Output = Fate> + Unpin,
{
    fn append_what_is_due(&mut self, now: Instant) {
        let is_over = now >= self.tally.end;
        let due = match self.pace {
            Pace::Closed if is_over => return,
            _ if self.tally.ended_early.is_some() => return,
            // What was due before the end is still appended after it.
            pace => pace.due_by(now.min(self.tally.end)).saturating_sub(self.appended),
        };
        let room = self.in_flight - self.outstanding;
        let mut left = usize::try_from(due).unwrap_or(usize::MAX).min(room);
        while left > 0 {
            let count = left.min(self.batch);
            let records = vec![self.value.clone(); count];
            let at = Instant::now();
            let fate = (self.append)(records);
            self.waiting.push_back(Append { at, first: self.appended, count, fate });
            self.appended += count as u64;
            self.outstanding += count;
            left -= count;
        }
    }

    /// When the next record is due, unless it waits for room.
    fn next_due(&self) -> Option<Instant> {
        let can_append = self.outstanding < self.in_flight && self.tally.ended_early.is_none();
        if can_append { self.pace.due(self.appended) } else { None }
    }

    /// Takes the outcomes that are there; false if there is none. The waker is called when the next one comes.
    fn take_outcomes(&mut self, waker: &Waker) -> bool {
        let mut taken = false;
        while let Some(first) = self.waiting.front_mut() {
            let fate = Pin::new(&mut first.fate).poll(&mut Context::from_waker(waker));
            let Poll::Ready(fate) = fate else { break };
            if let Some(append) = self.waiting.pop_front() {
                self.outstanding -= append.count;
                self.on_fate(&append, &fate);
                taken = true;
            }
        }
        taken
    }

    fn on_fate(&mut self, append: &Append<F>, fate: &Fate) {
        let now = Instant::now();
        let count = append.count as u64;
        match fate {
            Fate::Committed { .. } => {
                self.tally.committed(now, count);
                self.count_latencies(append.at, append.first, count, now);
            }
            Fate::NotAppended(NotAppended::QueueFull) => {
                self.tally.not_appended += count;
                self.count_refused(append.first, count);
                thread::sleep(BACKOFF);
            }
            Fate::NotAppended(reason) => {
                self.tally.not_appended += count;
                self.tally.end_early(now, reason_of(reason));
            }
            Fate::OutcomeUnknown { .. } => {
                self.tally.unknown += count;
                self.tally.end_early(now, "leadership was lost");
            }
        }
    }

    fn count_latencies(&mut self, at: Instant, first: u64, count: u64, now: Instant) {
        match self.pace {
            Pace::Closed => self.tally.latency(at, now, count),
            pace => {
                let dues = (first..first + count).filter_map(|number| pace.due(number));
                dues.for_each(|due| self.tally.latency(due, now, 1));
            }
        }
    }

    /// A caller would have to come again, for as long as there is no room. Without a rate, the next append is that.
    fn count_refused(&mut self, first: u64, count: u64) {
        let (pace, window) = (self.pace, self.tally.window());
        let dues = (first..first + count).filter_map(|number| pace.due(number));
        dues.for_each(|due| self.tally.latency(due, due + window, 1));
    }

    /// Counts what has no outcome as late as it is by now.
    fn give_up(&mut self, now: Instant) {
        while let Some(append) = self.waiting.pop_front() {
            let count = append.count as u64;
            self.tally.unfinished += count;
            self.count_latencies(append.at, append.first, count, now);
        }
        while let Some(due) = self.pace.due(self.appended)
            && due < self.tally.end
            && self.tally.ended_early.is_none()
        {
            self.tally.unfinished += 1;
            self.tally.latency(due, now, 1);
            self.appended += 1;
        }
    }
}

fn reason_of(reason: &NotAppended) -> &'static str {
    match reason {
        NotAppended::NotLeader { .. } => "leadership was lost",
        NotAppended::QueueFull => "the queue was full",
        NotAppended::TooLarge { .. } => "a batch was too large: give a smaller batch or size",
        NotAppended::Empty => "a batch was empty",
        NotAppended::Stopped => "the node has stopped",
    }
}

/// What is counted.
struct Tally {
    begin: Instant,
    end: Instant,
    records: u64,
    appends: u64,
    not_appended: u64,
    unknown: u64,
    unfinished: u64,
    nanos: Histogram<u64>,
    ended_early: Option<&'static str>,
}

/// The longest latency that is told apart from a longer one.
const LONGEST: Duration = Duration::from_secs(3600);

impl Tally {
    fn new(begin: Instant, end: Instant) -> Tally {
        let longest = u64::try_from(LONGEST.as_nanos()).unwrap_or(u64::MAX);
        Tally {
            begin,
            end,
            records: 0,
            appends: 0,
            not_appended: 0,
            unknown: 0,
            unfinished: 0,
            nanos: Histogram::new_with_bounds(1000, longest, 3).expect("these bounds are valid"),
            ended_early: None,
        }
    }

    fn committed(&mut self, now: Instant, count: u64) {
        if self.begin <= now && now < self.end {
            self.records += count;
            self.appends += 1;
        }
    }

    fn latency(&mut self, due: Instant, now: Instant, count: u64) {
        if self.begin <= due && due < self.end {
            let nanos = now.saturating_duration_since(due).as_nanos();
            self.nanos.saturating_record_n(u64::try_from(nanos).unwrap_or(u64::MAX), count);
        }
    }

    fn window(&self) -> Duration {
        self.end.saturating_duration_since(self.begin)
    }

    fn end_early(&mut self, now: Instant, why: &'static str) {
        self.ended_early.get_or_insert(why);
        self.end = self.end.min(now);
    }

    fn report(&self, durable_groups: u64) -> Report {
        let seconds = self.window().as_secs_f64();
        let micros = |nanos: u64| nanos as f64 / 1000.0;
        let at = |quantile| micros(self.nanos.value_at_quantile(quantile));
        Report {
            records: self.records,
            appends: self.appends,
            seconds,
            records_per_second: if seconds > 0.0 { self.records as f64 / seconds } else { 0.0 },
            latency_us: Latency {
                p50: at(0.5),
                p75: at(0.75),
                p90: at(0.9),
                p99: at(0.99),
                p999: at(0.999),
                max: micros(self.nanos.max()),
            },
            not_appended: self.not_appended,
            unknown: self.unknown,
            unfinished: self.unfinished,
            durable_groups,
            ended_early: self.ended_early,
        }
    }
}

/// Wakes the thread that measures.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use quorate_core::{Epoch, Offset};
    use tokio::sync::oneshot;

    use super::*;

    /// An outcome that comes after a while.
    struct Later(oneshot::Receiver<Fate>);

    impl Future for Later {
        type Output = Fate;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Fate> {
            Pin::new(&mut self.0).poll(context).map(|fate| fate.expect("every append has one"))
        }
    }

    const COMMITTED: Fate = Fate::Committed { offset: Offset(0), epoch: Epoch(1) };

    /// A log that commits one append after another, each in this time; the outcome of the append with a number is
    /// `fate`'s.
    fn log(takes: Duration, fate: fn(u64) -> Fate) -> impl FnMut(Vec<Bytes>) -> Later {
        let (sender, appends) = std::sync::mpsc::channel::<oneshot::Sender<Fate>>();
        thread::spawn(move || {
            for (number, outcome) in appends.into_iter().enumerate() {
                thread::sleep(takes);
                let _ = outcome.send(fate(number as u64));
            }
        });
        move |_| {
            let (outcome, later) = oneshot::channel();
            sender.send(outcome).expect("the log is there");
            Later(later)
        }
    }

    fn measured(spec: &str, append: impl FnMut(Vec<Bytes>) -> Later) -> (Report, Vec<Mark>) {
        let workload: Workload = spec.parse().expect(spec);
        let measure = workload.measure.expect("seconds");
        let (groups, mut marks) = (Cell::new(0), Vec::new());
        let count = || groups.replace(groups.get() + 5);
        let value = Bytes::from_static(b"a record");
        let report = run(&workload, &measure, &value, append, count, |mark| marks.push(mark));
        (report, marks)
    }

    #[test]
    fn a_closed_loop_appends_as_many_as_committed_in_one_batch() {
        let takes = Duration::from_millis(10);
        let (report, marks) =
            measured("inflight=8,seconds=0.5,warmup=0.1", log(takes, |_| COMMITTED));
        assert_eq!(marks, [Mark::Begins, Mark::Ends]);
        assert_eq!((report.records, report.ended_early), (report.appends * 8, None));
        // A busy machine may be slow, but never faster than the log.
        assert!((1..=50).contains(&report.appends), "{report:?}");
        assert!(report.latency_us.p50 >= 10_000.0, "{report:?}");
        assert_eq!((report.durable_groups, report.unknown, report.unfinished), (5, 0, 0));
    }

    #[test]
    fn a_batch_may_be_bounded() {
        let takes = Duration::from_millis(2);
        let (report, _) = measured("inflight=8,seconds=0.3,batch=2", log(takes, |_| COMMITTED));
        assert_eq!(report.records, report.appends * 2, "{report:?}");
        // Four of them are in flight, so each waits for the three before it.
        assert!(report.latency_us.p50 >= 7_000.0, "{report:?}");
    }

    #[test]
    fn at_a_rate_a_record_counts_from_when_it_was_due() {
        // 50 of the 200 records a second commit: the last ones are late by the time that all before them take.
        let takes = Duration::from_millis(20);
        let (report, _) =
            measured("rate=200,inflight=1,seconds=0.5,batch=1", log(takes, |_| COMMITTED));
        assert!(report.records <= 25, "{report:?}");
        assert!(report.latency_us.max >= 1_400_000.0, "{report:?}");
        assert_eq!((report.unfinished, report.not_appended), (0, 0));
    }

    #[test]
    fn a_rate_is_kept() {
        let (report, _) = measured("rate=1000,seconds=0.5", log(Duration::ZERO, |_| COMMITTED));
        assert!((1..=500).contains(&report.records), "{report:?}");
        assert!(report.appends <= report.records);
    }

    #[test]
    fn no_room_counts_and_goes_on_and_a_lost_leadership_ends_it() {
        let fate = |number| match number {
            0 => Fate::NotAppended(NotAppended::QueueFull),
            3 => Fate::OutcomeUnknown { offset: Offset(9), epoch: Epoch(1) },
            _ => COMMITTED,
        };
        let start = Instant::now();
        let (report, marks) =
            measured("inflight=4,seconds=30", log(Duration::from_millis(1), fate));
        assert!(start.elapsed() < Duration::from_secs(20), "it ended early");
        assert_eq!((report.records, report.appends), (8, 2));
        assert_eq!((report.not_appended, report.unknown), (4, 4));
        assert_eq!(report.ended_early, Some("leadership was lost"));
        assert_eq!(marks, [Mark::Begins, Mark::Ends]);
    }

    #[test]
    fn at_a_rate_a_record_without_room_is_as_late_as_the_window_is_long() {
        let fate = |number| match number {
            0 => Fate::NotAppended(NotAppended::QueueFull),
            _ => COMMITTED,
        };
        let (report, _) = measured("rate=200,seconds=1,batch=1", log(Duration::ZERO, fate));
        assert_eq!((report.not_appended, report.ended_early), (1, None));
        assert!(report.latency_us.max >= 1_000_000.0, "{report:?}");
        assert!(report.latency_us.p50 < 1_000_000.0, "{report:?}");
    }

    #[test]
    fn what_ends_in_the_warm_up_has_both_marks() {
        let lost = |_| Fate::OutcomeUnknown { offset: Offset(9), epoch: Epoch(1) };
        let (report, marks) =
            measured("inflight=4,seconds=30,warmup=30", log(Duration::from_millis(1), lost));
        assert_eq!(marks, [Mark::Begins, Mark::Ends]);
        assert_eq!((report.records, report.unknown), (0, 4));
        assert_eq!(report.ended_early, Some("leadership was lost"));
    }
}
