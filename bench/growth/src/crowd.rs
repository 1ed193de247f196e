//! The observers, and the loop that serves them all.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use quorate_wire::frame::{SIZE_LEN, frame_size};
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

/// What all of them have seen.
#[derive(Default)]
struct Seen {
    answers: u64,
    /// Answers without records.
    empty: u64,
    bytes: u64,
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
        let mut observer = connect(i32::try_from(at)?, cluster, leader)
            .with_context(|| format!("observer {at} of {count}"))?;
        observer.ask()?;
        epoll::add(
            &poll,
            &observer.stream,
            EventData::new_u64(u64::try_from(at)?),
            EventFlags::IN,
        )?;
        observers.push(observer);
    }
    serve(&poll, &mut observers)
}

fn raise_file_limit(wanted: u64) -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = limit.maximum.map_or(Some(wanted), |maximum| Some(maximum.min(wanted)));
        setrlimit(Resource::Nofile, limit).context("the limit of open files cannot be raised")?;
    }
    Ok(())
}

fn connect(at: i32, cluster: &str, leader: &Leader) -> Result<Observer> {
    let stream = TcpStream::connect(&leader.endpoint)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(Observer {
        stream,
        request: Request::new(cluster, FIRST_ID + at, leader.epoch)?,
        offset: leader.high_watermark,
        high_watermark: leader.high_watermark,
        partial: Vec::new(),
        is_heard: false,
    })
}

fn serve(poll: &OwnedFd, observers: &mut [Observer]) -> Result<()> {
    let mut seen = Seen::default();
    let mut is_ready = false;
    let mut events: Vec<Event> = Vec::with_capacity(1024);
    let mut scratch = vec![0; READ];
    loop {
        events.clear();
        match epoll::wait(poll, rustix::buffer::spare_capacity(&mut events), None) {
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
                observer
                    .on_readable(&mut scratch, &mut seen)
                    .with_context(|| format!("observer {number}"))?;
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
    let offsets = || observers.iter().map(|observer| observer.offset);
    let Seen { answers, empty, bytes, .. } = seen;
    let (least, most) = (offsets().min().unwrap_or(-1), offsets().max().unwrap_or(-1));
    format!(
        r#"{{"answers":{answers},"empty":{empty},"bytes":{bytes},"least_offset":{least},"most_offset":{most}}}"#
    )
}

impl Observer {
    fn ask(&mut self) -> Result<()> {
        let frame = self.request.ask(self.offset, self.high_watermark);
        // So little always has room where nothing else is on its way.
        self.stream.write_all(frame).context("a request is not taken")
    }

    /// Reads what has come; a whole answer is followed by the next request.
    fn on_readable(&mut self, scratch: &mut [u8], seen: &mut Seen) -> Result<()> {
        let read = match self.stream.read(scratch) {
            Ok(0) => bail!("the leader closed the connection"),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
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
                return Ok(());
            }
        };
        let answer = answer::decode(Bytes::copy_from_slice(frame))?;
        self.partial.clear();
        self.on_answer(&answer, seen)?;
        self.ask()
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
        Ok(())
    }
}
