//! The observers: one process, which `bench/growth` builds.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Command};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::CHECK;
use super::load::ids;
use crate::interop::process::Process;
use crate::interop::quorum::Quorum;
use crate::step::{cargo, step, succeed, target};
use crate::usage;

/// So many observers.
pub(super) struct Crowd {
    pub(super) binary: PathBuf,
    pub(super) count: u32,
}

/// Builds what runs them.
pub(super) fn build() -> Result<PathBuf> {
    step(CHECK, "build the observers", || {
        let mut build = cargo();
        build.args(["build", "--release", "--locked", "--package", "quorate-bench-growth"]);
        build.arg("--target-dir").arg(target());
        succeed(&mut build)?;
        Ok(String::new())
    })?;
    Ok(target().join("release").join("observers"))
}

/// A crowd that observes.
pub(super) struct Observers {
    process: Process,
    stdin: ChildStdin,
    lines: Receiver<String>,
    is_ready: bool,
}

/// What the observers have seen so far, or in a while.
#[derive(Clone, Debug)]
pub(super) struct Served {
    at: Instant,
    cpu_seconds: f64,
    answers: f64,
    empty: f64,
    bytes: f64,
    closed: f64,
    refused: f64,
    timed_out: f64,
    /// Since the look before.
    longest_wait_ms: f64,
    /// How far the one that is furthest behind has come.
    least_offset: f64,
    /// How many committed records that one does not have; NaN where the leader was not asked what is committed.
    behind: f64,
}

/// What they saw, by second.
impl Served {
    /// The high watermark is the leader's own: observers that it does not answer do not know what they lack.
    pub(super) fn since(&self, before: &Served, high_watermark: i64) -> Result<Served> {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        if self.least_offset <= before.least_offset {
            bail!("an observer has not come on from {} in {seconds:.1} s", before.least_offset);
        }
        let rate = |now: f64, then: f64| (now - then) / seconds;
        Ok(Served {
            cpu_seconds: rate(self.cpu_seconds, before.cpu_seconds),
            answers: rate(self.answers, before.answers),
            empty: rate(self.empty, before.empty),
            bytes: rate(self.bytes, before.bytes),
            closed: rate(self.closed, before.closed),
            refused: rate(self.refused, before.refused),
            timed_out: rate(self.timed_out, before.timed_out),
            // Observers have records that are not committed yet, too.
            behind: (high_watermark as f64 - self.least_offset).max(0.0),
            ..self.clone()
        })
    }

    pub(super) fn cpu_percent(&self) -> f64 {
        self.cpu_seconds * 100.0
    }

    pub(super) fn answers(&self) -> f64 {
        self.answers
    }

    /// Connections that the leader closed, and Fetches that it refused, having no room or no time for their answers; and
    /// Fetches that had no answer within 2 s.
    pub(super) fn turned_away(&self) -> f64 {
        self.closed + self.refused + self.timed_out
    }

    /// Fetches that had no answer within 2 s.
    pub(super) fn timed_out(&self) -> f64 {
        self.timed_out
    }

    /// From the first request to the answer, of the one that had to wait longest, however often it had to ask again.
    pub(super) fn longest_wait_ms(&self) -> f64 {
        self.longest_wait_ms
    }

    /// How many committed records the one that is furthest behind does not have.
    pub(super) fn behind(&self) -> f64 {
        self.behind
    }

    pub(super) fn figures(&self) -> String {
        format!(
            "observers {:.0} % of a core, {:.0} answers/s, {:.0} of them empty, {:.1} MB/s, {:.0} turned away/s, {:.0} of them after 2 s, the longest wait {:.0} ms, the last lacks {:.0} committed records",
            self.cpu_percent(),
            self.answers,
            self.empty,
            self.bytes / 1e6,
            self.turned_away(),
            self.timed_out,
            self.longest_wait_ms,
            self.behind
        )
    }
}

/// How long an answer of the process itself may take.
const PATIENCE: Duration = Duration::from_secs(30);

impl Crowd {
    /// Starts them; they find the leader themselves.
    pub(super) fn start(&self, quorum: &Quorum) -> Result<Observers> {
        let mut command = Command::new(&self.binary);
        command.arg(self.count.to_string()).arg(&quorum.cluster);
        for id in ids(quorum) {
            command.arg(format!("127.0.0.1:{}", quorum.port(id)?));
        }
        let log = quorum.dir.join("observers.log");
        let (process, stdin, stdout) = Process::start_piped("the observers", &command, &log)?;
        let (sender, lines) = mpsc::sync_channel(16);
        let read = move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(read).context("a thread does not start")?;
        Ok(Observers { process, stdin, lines, is_ready: false })
    }
}

impl Observers {
    /// What they have seen so far. The first look fails unless all of them have been answered before.
    pub(super) fn look(&mut self) -> Result<Served> {
        if !self.is_ready {
            self.process.check()?;
            match self.lines.try_recv() {
                Ok(line) if line == "ready" => self.is_ready = true,
                _ => bail!(
                    "the observers were not ready when the measurement began: give them more time with --gathering"
                ),
            }
        }
        self.stdin.write_all(b"\n").context("the observers do not listen")?;
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(_) => {
                self.process.check()?;
                bail!("the observers do not answer");
            }
        };
        let said: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        let number = |name: &str| {
            let number = said[name].as_f64();
            number.with_context(|| format!("no {name} in {line}"))
        };
        Ok(Served {
            at: Instant::now(),
            cpu_seconds: usage::of(self.process.id())?.cpu_seconds,
            answers: number("answers")?,
            empty: number("empty")?,
            bytes: number("bytes")?,
            closed: number("closed")?,
            refused: number("refused")?,
            timed_out: number("timed_out")?,
            longest_wait_ms: number("longest_wait_us")? / 1e3,
            least_offset: number("least_offset")?,
            behind: f64::NAN,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lacks_what_the_leader_has_committed() {
        let before = Served {
            at: Instant::now(),
            cpu_seconds: 0.0,
            answers: 0.0,
            empty: 0.0,
            bytes: 0.0,
            closed: 0.0,
            refused: 0.0,
            timed_out: 1.0,
            longest_wait_ms: 0.0,
            least_offset: 10.0,
            behind: f64::NAN,
        };
        let at = before.at + Duration::from_secs(2);
        let now = Served { at, timed_out: 5.0, least_offset: 20.0, ..before.clone() };
        let since = |high_watermark| now.since(&before, high_watermark).expect("it has come on");
        assert_eq!((since(5000).behind(), since(5000).timed_out()), (4980.0, 2.0));
        assert_eq!(since(19).behind(), 0.0);
        assert!(before.since(&before, 5000).is_err());
    }
}
