//! What the nodes that are left say while there is no leader, each with the time at which it was read.
//!
//! Each is asked every millisecond who leads, whatever its make; a Quorate node also says itself, in its log, when a record
//! was committed.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::ask::{Account, Asker};

/// How often a node is asked, and its log looked at.
const PERIOD: Duration = Duration::from_millis(1);

/// A node that is left.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) id: i32,
    pub(super) port: u16,
    /// Where it says what was acknowledged; none for a node that says nothing of the kind.
    pub(super) log: Option<PathBuf>,
}

/// Something that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) at: Instant,
    pub(super) by: i32,
    pub(super) epoch: i32,
    pub(super) what: What,
}

/// What it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A leader of a later epoch has a high watermark, and so a commit in that epoch.
    Committed,
    /// A record of a later epoch was acknowledged.
    Acknowledged,
}

/// The threads that watch.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Receiver<Seen>,
    so_far: Vec<Seen>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch for epochs above this one; every node has answered once when this returns.
    pub(super) fn begin(nodes: Vec<Left>, above_epoch: i32) -> Result<Watch> {
        let (sender, seen) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for node in nodes {
            let mut asker = Asker::connect(node.port)?;
            if let Some(account) = asker.ask()? {
                bail!("node {} leads epoch {} all at once", node.id, account.epoch);
            }
            let watcher = Watcher {
                by: node.id,
                above_epoch,
                is_over: is_over.clone(),
                sender: sender.clone(),
            };
            if let Some(log) = node.log {
                let file = tail(&log).with_context(|| log.display().to_string())?;
                let watcher = watcher.clone();
                threads.push(spawn(move || watcher.read(file))?);
            }
            threads.push(spawn(move || watcher.ask(asker, node.port))?);
        }
        Ok(Watch { seen, so_far: Vec::new(), is_over, threads })
    }

    /// The first commit; fails if none comes within `bound`.
    pub(super) fn first_commit(&mut self, bound: Duration) -> Result<Seen> {
        let commit = self.first(bound, |seen| seen.what == What::Committed);
        commit.with_context(|| {
            format!("no commit in a later epoch within {} s of the leader's end", bound.as_secs())
        })
    }

    /// The first acknowledgement in this epoch, if it comes within `bound`.
    pub(super) fn first_acknowledgement(&mut self, epoch: i32, bound: Duration) -> Option<Seen> {
        self.first(bound, |seen| seen.what == What::Acknowledged && seen.epoch == epoch)
    }

    fn first(&mut self, bound: Duration, wanted: impl Fn(&Seen) -> bool) -> Option<Seen> {
        let deadline = Instant::now() + bound;
        loop {
            if let Some(found) = self.so_far.iter().find(|seen| wanted(seen)) {
                return Some(*found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            self.so_far.push(self.seen.recv_timeout(left).ok()?);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It never panics; and what it saw is of no use any more.
            let _ = thread.join();
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new().spawn(work).context("a thread does not start")
}

fn tail(log: &PathBuf) -> Result<File> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

#[derive(Clone)]
struct Watcher {
    by: i32,
    above_epoch: i32,
    is_over: Arc<AtomicBool>,
    sender: Sender<Seen>,
}

impl Watcher {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn tell(&self, epoch: i32, what: What) {
        // Nobody listens once the round is over.
        let _ = self.sender.send(Seen { at: Instant::now(), by: self.by, epoch, what });
    }

    fn ask(&self, mut asker: Asker, port: u16) {
        while self.goes_on() {
            let next = Instant::now() + PERIOD;
            match asker.ask() {
                Ok(Some(Account { epoch, high_watermark, .. }))
                    if epoch > self.above_epoch && high_watermark >= 0 =>
                {
                    return self.tell(epoch, What::Committed);
                }
                Ok(_) => {}
                // A node that closes connections is asked over a new one.
                Err(_) => {
                    if let Ok(again) = Asker::connect(port) {
                        asker = again;
                    }
                }
            }
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    fn read(&self, mut file: File) {
        let (mut chunk, mut line) = ([0; 4096], Vec::new());
        while self.goes_on() {
            let read = file.read(&mut chunk).unwrap_or(0);
            for byte in chunk.iter().take(read) {
                if *byte != b'\n' {
                    line.push(*byte);
                    continue;
                }
                if let Some(epoch) = acknowledged_in(&line)
                    && epoch > self.above_epoch
                {
                    return self.tell(epoch, What::Acknowledged);
                }
                line.clear();
            }
            if read == 0 {
                thread::sleep(PERIOD);
            }
        }
    }
}

/// The epoch in `ack ID OFFSET EPOCH`.
fn acknowledged_in(line: &[u8]) -> Option<i32> {
    let words: Vec<&str> = std::str::from_utf8(line).ok()?.split(' ').collect();
    match words.as_slice() {
        ["ack", _, _, epoch] => epoch.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_tells_its_epoch() {
        assert_eq!(acknowledged_in(b"ack 00000003000000ab0000000000000001 17 3"), Some(3));
        for other in [
            "unknown 00000003000000ab0000000000000001 17 3",
            "notappended 00000003000000ab0000000000000001 not-leader",
            "ack 00000003000000ab0000000000000001 17",
            "2026-11-29T23:00:00.1Z  INFO quorate_node::driver: leader epoch=12",
            "",
        ] {
            assert_eq!(acknowledged_in(other.as_bytes()), None, "{other}");
        }
    }
}
