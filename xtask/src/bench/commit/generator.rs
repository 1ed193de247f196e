//! What a load generator prints: `begins` and `ends` around the window, and then its report, a line of JSON.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::sample::{Used, Window};
use crate::interop::process::Process;

/// How long an election may take, or what the load leaves to be done.
const PATIENCE: Duration = Duration::from_secs(60);

/// The processes of a system, and what those print of them that generate load.
pub(super) struct Generators {
    lines: Receiver<String>,
    sender: SyncSender<String>,
    /// Whose use of processor and memory counts.
    system: Vec<Process>,
    others: Vec<Process>,
}

/// What one window came to.
pub(super) struct Report {
    pub(super) report: Value,
    pub(super) before: Used,
    pub(super) after: Used,
}

impl Generators {
    pub(super) fn new() -> Generators {
        let (sender, lines) = mpsc::sync_channel(64);
        Generators { lines, sender, system: Vec::new(), others: Vec::new() }
    }

    /// A process of the system.
    pub(super) fn add(&mut self, process: Process) {
        self.system.push(process);
    }

    /// A process beside it.
    pub(super) fn add_other(&mut self, process: Process) {
        self.others.push(process);
    }

    /// Reads what a process prints; several may print, but one alone measures.
    pub(super) fn listen(&self, stdout: ChildStdout) -> Result<()> {
        let sender = self.sender.clone();
        let read = move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(read).context("a thread does not start")?;
        Ok(())
    }

    /// Waits for the window and its report, and ends all processes.
    pub(super) fn measure(mut self, window: &Window) -> Result<Report> {
        let pids: Vec<u32> = self.system.iter().map(Process::id).collect();
        self.wait_for("begins", PATIENCE + window.warm_up)?;
        let before = Used::of(&pids)?;
        self.wait_for("ends", PATIENCE + window.length)?;
        let after = Used::of(&pids)?;
        let report = self.next(PATIENCE)?;
        let report = serde_json::from_str(&report)
            .with_context(|| format!("this is no report: {report:?}"))?;
        Ok(Report { report, before, after })
    }

    fn wait_for(&mut self, wanted: &str, patience: Duration) -> Result<()> {
        match self.next(patience)? {
            line if line == wanted => Ok(()),
            line => bail!("the load generator says {line:?} instead of {wanted:?}"),
        }
    }

    fn next(&mut self, patience: Duration) -> Result<String> {
        let deadline = Instant::now() + patience;
        loop {
            match self.lines.recv_timeout(Duration::from_millis(200)) {
                Ok(line) => return Ok(line),
                Err(_) if Instant::now() < deadline => self.check()?,
                Err(_) => bail!("the load generator said nothing for {} s", patience.as_secs()),
            }
        }
    }

    /// Fails if a process has ended that was not told to.
    fn check(&mut self) -> Result<()> {
        self.system.iter_mut().chain(&mut self.others).try_for_each(Process::check)
    }
}
