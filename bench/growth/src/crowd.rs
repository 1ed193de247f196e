//! The observers, and the loop that serves them all.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use quorate_wire::frame::{SIZE_LEN, frame_size};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::answer::{self, Answer};
use crate::leader::Leader;
use crate::request::Request;

/// Voters have small ids.
const FIRST_ID: i32 = 10_000;
/// What stands for our own input among the observers' numbers.
const INPUT: u64 = u64::MAX;
/// Files that are no observer's.
const OTHER_FILES: u64 = 64;
/// The largest answer that is taken: what was asked for, or one batch.
const MAX_ANSWER: usize = 16 << 20;
/// What a leader answers for which much else waits to be read from disk.
const UNKNOWN_SERVER_ERROR: i16 = -1;
/// How long one waits that was refused: the retry backoff of Kafka's replicas.
const BACKOFF: Duration = Duration::from_millis(20);
/// How long a request may take before the connection is given up: `controller.quorum.request.timeout.ms`.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked who has waited so long.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How much is read at a time.
const READ: usize = 256 << 10;

/// One observer.
struct Observer {
    stream: TcpStream,
    request: Request,
    offset: i64,
    high_watermark: i64,
    /// What has come of an answer that is not whole.
    partial: Vec<u8>,
    is_heard: bool,
    /// When its request went out, if one is on its way.
    asked: Option<Instant>,
    /// Since when it has no answer, however often it has asked.
    waits_since: Instant,
}

/// What came of an observer's turn.
enum Turn {
    /// It waits for an answer, or for more of one.
    Waits,
    /// It has to ask again, after a while.
    Refused,
    /// It has to connect again.
    Closed,
}

/// All of them, and what lies between them and the leader.
struct Crowd {
    poll: OwnedFd,
    /// Where the leader listens.
    leader: String,
    observers: Vec<Observer>,
    /// Who asks again, in the order of the times.
    refused: VecDeque<(Instant, usize)>,
    scratch: Vec<u8>,
    seen: Seen,
}

/// What all of them have seen.
#[derive(Default)]
struct Seen {
    answers: u64,
    /// Answers without records.
    empty: u64,
    bytes: u64,
    /// Connections that the leader closed, answers that it has no time for this Fetch, and requests without an answer.
    closed: u64,
    refused: u64,
    timed_out: u64,
    /// For an answer that has come since the last report.
    longest_wait: Duration,
    /// Observers that have had an answer.
    heard: usize,
}

/// Connects, and serves until the input ends.
pub(crate) fn run(count: usize, cluster: &str, leader: &Leader) -> Result<()> {
    raise_file_limit(u64::try_from(count)? + OTHER_FILES)?;
    let mut crowd = Crowd::connect(count, cluster, leader)?;
    epoll::add(&crowd.poll, io::stdin(), EventData::new_u64(INPUT), EventFlags::IN)?;
    crowd.serve()
}

fn raise_file_limit(wanted: u64) -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = limit.maximum.map_or(Some(wanted), |maximum| Some(maximum.min(wanted)));
        setrlimit(Resource::Nofile, limit).context("the limit of open files cannot be raised")?;
    }
    Ok(())
}

impl Crowd {
    fn connect(count: usize, cluster: &str, leader: &Leader) -> Result<Crowd> {
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut observers = Vec::with_capacity(count);
        for at in 0..count {
            let what = || format!("observer {at} of {count}");
            let mut observer = Observer {
                stream: TcpStream::connect(&leader.endpoint).with_context(what)?,
                request: Request::new(cluster, FIRST_ID + i32::try_from(at)?, leader.epoch)?,
                offset: leader.high_watermark,
                high_watermark: leader.high_watermark,
                partial: Vec::new(),
                is_heard: false,
                asked: None,
                waits_since: Instant::now(),
            };
            observer.begin(&poll, u64::try_from(at)?).with_context(what)?;
            observers.push(observer);
        }
        Ok(Crowd {
            poll,
            leader: leader.endpoint.clone(),
            observers,
            refused: VecDeque::new(),
            scratch: vec![0; READ],
            seen: Seen::default(),
        })
    }

    fn serve(&mut self) -> Result<()> {
        let mut is_ready = false;
        let mut next_look = Instant::now() + LOOK_EVERY;
        // All that can be ready at once: whoever is not among them has no answer.
        let mut events: Vec<Event> = Vec::with_capacity(self.observers.len() + 1);
        loop {
            let now = Instant::now();
            self.ask_again(now)?;
            let wake = self.refused.front().map_or(next_look, |(at, _)| next_look.min(*at));
            let wait = Timespec::try_from(wake.saturating_duration_since(now))?;
            events.clear();
            match epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), Some(&wait))
            {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error).context("waiting"),
            }
            let now = Instant::now();
            let mut was_asked = false;
            for event in &events {
                match event.data.u64() {
                    INPUT => was_asked = true,
                    number => self.on_readable(number)?,
                }
            }
            if now >= next_look {
                self.give_up(now)?;
                next_look = now + LOOK_EVERY;
            }
            if !is_ready && self.seen.heard == self.observers.len() {
                is_ready = true;
                println!("ready");
            }
            if was_asked {
                // Lines are short and come one at a time.
                if io::stdin().read(&mut [0; 64])? == 0 {
                    return Ok(());
                }
                println!("{}", self.report(Instant::now()));
            }
        }
    }

    /// Those whose backoff is over.
    fn ask_again(&mut self, now: Instant) -> Result<()> {
        while let Some((_, number)) = self.refused.pop_front_if(|(at, _)| *at <= now) {
            if let Some(observer) = self.observers.get_mut(number) {
                observer.ask()?;
            }
        }
        Ok(())
    }

    fn on_readable(&mut self, number: u64) -> Result<()> {
        let at = usize::try_from(number)?;
        let Some(observer) = self.observers.get_mut(at) else { return Ok(()) };
        let what = || format!("observer {number}");
        match observer.on_readable(&mut self.scratch, &mut self.seen).with_context(what)? {
            Turn::Waits => {}
            Turn::Refused => {
                self.seen.refused += 1;
                self.refused.push_back((Instant::now() + BACKOFF, at));
            }
            Turn::Closed => {
                self.seen.closed += 1;
                observer.connect_again(&self.leader, &self.poll, number).with_context(what)?;
            }
        }
        Ok(())
    }

    /// Those whose request had no answer in time, as it was seen at `now`, leave their connection and ask over another.
    fn give_up(&mut self, now: Instant) -> Result<()> {
        for (number, observer) in (0_u64..).zip(&mut self.observers) {
            if observer.asked.is_some_and(|at| now.saturating_duration_since(at) >= PATIENCE) {
                self.seen.timed_out += 1;
                let again = observer.connect_again(&self.leader, &self.poll, number);
                again.with_context(|| format!("observer {number}"))?;
            }
        }
        Ok(())
    }

    /// A line of JSON. The longest wait is that since the last report, and counts those who still wait.
    fn report(&mut self, now: Instant) -> String {
        let so_far = mem::take(&mut self.seen.longest_wait);
        let waits = self
            .observers
            .iter()
            .map(|observer| now.saturating_duration_since(observer.waits_since));
        let longest_wait_us = waits.max().unwrap_or_default().max(so_far).as_micros();
        let least = self.observers.iter().map(|observer| observer.offset).min().unwrap_or(-1);
        let Seen { answers, empty, bytes, closed, refused, timed_out, .. } = self.seen;
        format!(
            r#"{{"answers":{answers},"empty":{empty},"bytes":{bytes},"closed":{closed},"refused":{refused},"timed_out":{timed_out},"longest_wait_us":{longest_wait_us},"least_offset":{least}}}"#
        )
    }
}

impl Observer {
    /// The first request of a connection.
    fn begin(&mut self, poll: &OwnedFd, number: u64) -> Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_nonblocking(true)?;
        self.partial.clear();
        self.ask()?;
        Ok(epoll::add(poll, &self.stream, EventData::new_u64(number), EventFlags::IN)?)
    }

    fn connect_again(&mut self, leader: &str, poll: &OwnedFd, number: u64) -> Result<()> {
        self.stream = TcpStream::connect(leader)?;
        self.begin(poll, number)
    }

    fn ask(&mut self) -> Result<()> {
        self.asked = Some(Instant::now());
        let frame = self.request.ask(self.offset, self.high_watermark);
        // So little always has room where nothing else is on its way.
        self.stream.write_all(frame).context("a request is not taken")
    }

    /// Reads what has come; a whole answer is followed by the next request. The leader closes the connection when it
    /// has no room for an answer.
    fn on_readable(&mut self, scratch: &mut [u8], seen: &mut Seen) -> Result<Turn> {
        let read = match self.stream.read(scratch) {
            Ok(0) => return Ok(Turn::Closed),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Turn::Closed),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Turn::Waits),
            Err(error) => return Err(error.into()),
        };
        let come = scratch.get(..read).unwrap_or_default();
        let is_first = self.partial.is_empty();
        if !is_first {
            self.partial.extend_from_slice(come);
        }
        let have = if is_first { come } else { &self.partial };
        let frame = match frame_size(have, MAX_ANSWER)? {
            Some(size) if have.len() > SIZE_LEN + size => bail!("two answers to one request"),
            Some(size) if have.len() == SIZE_LEN + size => have.get(SIZE_LEN..).unwrap_or_default(),
            _ => {
                if is_first {
                    self.partial.extend_from_slice(come);
                }
                return Ok(Turn::Waits);
            }
        };
        let answer = answer::decode(Bytes::copy_from_slice(frame))?;
        self.partial.clear();
        self.asked = None;
        if answer.error == UNKNOWN_SERVER_ERROR {
            return Ok(Turn::Refused);
        }
        self.on_answer(&answer, seen)?;
        self.ask()?;
        Ok(Turn::Waits)
    }

    fn on_answer(&mut self, answer: &Answer, seen: &mut Seen) -> Result<()> {
        if answer.error != 0 {
            bail!("error {} at offset {}", answer.error, self.offset);
        }
        let end = answer::end_of(&answer.records, self.offset)?;
        let now = Instant::now();
        seen.longest_wait = seen.longest_wait.max(now.saturating_duration_since(self.waits_since));
        self.waits_since = now;
        seen.answers += 1;
        seen.empty += u64::from(end == self.offset);
        seen.bytes += u64::try_from(answer.records.len())?;
        seen.heard += usize::from(!self.is_heard);
        self.is_heard = true;
        self.offset = end;
        self.high_watermark = answer.high_watermark;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_has_no_answer_in_time_asks_over_another_connection_and_waits_on() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let endpoint = listener.local_addr().expect("an address").to_string();
        let leader = Leader { endpoint, epoch: 3, high_watermark: 7 };
        let mut crowd = Crowd::connect(1, "a cluster", &leader).expect("it connects");
        let asked = Instant::now();
        let mut first = listener.accept().expect("a connection").0;
        first.set_read_timeout(Some(PATIENCE)).expect("not zero");
        crowd.give_up(asked).expect("nobody is late");
        assert_eq!(crowd.seen.timed_out, 0);

        crowd.give_up(asked + PATIENCE).expect("it connects again");
        assert_eq!(crowd.seen.timed_out, 1);
        let (mut over_first, mut over_second) = (Vec::new(), Vec::new());
        first.read_to_end(&mut over_first).expect("the first one has ended");
        let mut second = listener.accept().expect("another connection").0;
        let report = crowd.report(asked + PATIENCE * 2);
        drop(crowd);
        second.read_to_end(&mut over_second).expect("the second one has ended");
        assert!(!over_first.is_empty() && over_first == over_second, "the same question again");

        let said = report.split(',').find_map(|field| field.strip_prefix(r#""longest_wait_us":"#));
        let waited: u128 = said.expect("it is said").parse().expect("a number");
        assert!(waited >= (PATIENCE * 2).as_micros(), "{report}");
        assert!(report.contains(r#""timed_out":1,"#), "{report}");
    }

    #[test]
    fn who_was_refused_is_not_late() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let endpoint = listener.local_addr().expect("an address").to_string();
        let leader = Leader { endpoint, epoch: 3, high_watermark: 7 };
        let mut crowd = Crowd::connect(1, "a cluster", &leader).expect("it connects");
        let late = Instant::now() + PATIENCE;
        // As an answer with that error leaves it, until its backoff is over.
        crowd.observers[0].asked = None;
        crowd.refused.push_back((late, 0));
        crowd.give_up(late).expect("nobody is late");
        crowd.ask_again(late).expect("it asks");
        assert_eq!(crowd.seen.timed_out, 0);
        assert!(crowd.observers[0].asked.is_some() && crowd.refused.is_empty());
    }
}
