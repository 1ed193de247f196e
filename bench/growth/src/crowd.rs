//! The observers, and the loop that serves them all.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
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

/// What all of them have seen.
#[derive(Default)]
struct Seen {
    answers: u64,
    /// Answers without records.
    empty: u64,
    bytes: u64,
    /// Connections that the leader closed, and answers that it has no time for this Fetch.
    closed: u64,
    refused: u64,
    /// The largest that any of them knows.
    high_watermark: i64,
    /// Observers that have had an answer.
    heard: usize,
}

/// Connects, and serves until the input ends.
pub(crate) fn run(count: usize, cluster: &str, leader: &Leader) -> Result<()> {
    raise_file_limit(u64::try_from(count)? + OTHER_FILES)?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let input = io::stdin();
    epoll::add(&poll, &input, EventData::new_u64(INPUT), EventFlags::IN)?;
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
        };
        observer.begin(&poll, u64::try_from(at)?).with_context(what)?;
        observers.push(observer);
    }
    serve(&poll, &leader.endpoint, &mut observers)
}

fn raise_file_limit(wanted: u64) -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = limit.maximum.map_or(Some(wanted), |maximum| Some(maximum.min(wanted)));
        setrlimit(Resource::Nofile, limit).context("the limit of open files cannot be raised")?;
    }
    Ok(())
}

fn serve(poll: &OwnedFd, leader: &str, observers: &mut [Observer]) -> Result<()> {
    let mut seen = Seen::default();
    let mut is_ready = false;
    let mut events: Vec<Event> = Vec::with_capacity(1024);
    let mut scratch = vec![0; READ];
    // In the order of their times.
    let mut refused: VecDeque<(Instant, usize)> = VecDeque::new();
    loop {
        while let Some((_, number)) = refused.pop_front_if(|(at, _)| *at <= Instant::now()) {
            if let Some(observer) = observers.get_mut(number) {
                observer.ask()?;
            }
        }
        let wait = refused.front().map(|(at, _)| at.saturating_duration_since(Instant::now()));
        let wait = wait.map(Timespec::try_from).transpose()?;
        events.clear();
        match epoll::wait(poll, rustix::buffer::spare_capacity(&mut events), wait.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error).context("waiting"),
        }
        let mut was_asked = false;
        for event in &events {
            let number = event.data.u64();
            if number == INPUT {
                was_asked = true;
            } else if let Some(observer) = observers.get_mut(usize::try_from(number)?) {
                let what = || format!("observer {number}");
                match observer.on_readable(&mut scratch, &mut seen).with_context(what)? {
                    Turn::Waits => {}
                    Turn::Refused => {
                        seen.refused += 1;
                        refused.push_back((Instant::now() + BACKOFF, usize::try_from(number)?));
                    }
                    Turn::Closed => {
                        seen.closed += 1;
                        observer.stream = TcpStream::connect(leader).with_context(what)?;
                        observer.begin(poll, number).with_context(what)?;
                    }
                }
            }
        }
        if !is_ready && seen.heard == observers.len() {
            is_ready = true;
            println!("ready");
        }
        if was_asked {
            // Lines are short and come one at a time.
            if io::stdin().read(&mut [0; 64])? == 0 {
                return Ok(());
            }
            println!("{}", report(&seen, observers));
        }
    }
}

fn report(seen: &Seen, observers: &[Observer]) -> String {
    let least = observers.iter().map(|observer| observer.offset).min().unwrap_or(-1);
    let Seen { answers, empty, bytes, closed, refused, high_watermark, .. } = seen;
    format!(
        r#"{{"answers":{answers},"empty":{empty},"bytes":{bytes},"closed":{closed},"refused":{refused},"least_offset":{least},"high_watermark":{high_watermark}}}"#
    )
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

    fn ask(&mut self) -> Result<()> {
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
        seen.answers += 1;
        seen.empty += u64::from(end == self.offset);
        seen.bytes += u64::try_from(answer.records.len())?;
        seen.heard += usize::from(!self.is_heard);
        self.is_heard = true;
        self.offset = end;
        self.high_watermark = answer.high_watermark;
        seen.high_watermark = seen.high_watermark.max(answer.high_watermark);
        Ok(())
    }
}
