//! What a load generator prints: `begins` and `ends` around the window, and then its report, a line of JSON.

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::sample::{LeadershipLost, Used, Window};
use crate::interop::process::Process;

/// How long an election may take, or what the load leaves to be done.
const PATIENCE: Duration = Duration::from_secs(60);

/// The window begins.
const BEGINS: &str = "begins";

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

    /// Waits for the window and its report, and ends all processes. The error is [`LeadershipLost`] where another node
    /// leads before they are there.
    pub(super) fn measure(mut self, window: &Window) -> Result<Report> {
        let pids: Vec<u32> = self.system.iter().map(Process::id).collect();
        self.wait_for(BEGINS, PATIENCE + window.warm_up)?;
        let before = Used::of(&pids)?;
        self.wait_for("ends", PATIENCE + window.length)?;
        let after = Used::of(&pids)?;
        let report = match self.next(PATIENCE)? {
            line if line == BEGINS => return Err(LeadershipLost.into()),
            line => line,
        };
        let report = serde_json::from_str(&report)
            .with_context(|| format!("this is no report: {report:?}"))?;
        Ok(Report { report, before, after })
    }

    fn wait_for(&mut self, wanted: &str, patience: Duration) -> Result<()> {
        match self.next(patience)? {
            line if line == wanted => Ok(()),
            line if line == BEGINS => Err(LeadershipLost.into()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(lines: &[&str]) -> Result<Report> {
        let generators = Generators::new();
        for line in lines {
            generators.sender.send((*line).to_owned()).expect("there is room");
        }
        let window = Window {
            record_bytes: 256,
            batch: None,
            warm_up: Duration::ZERO,
            length: Duration::from_secs(1),
        };
        generators.measure(&window)
    }

    #[test]
    fn a_report_follows_its_window() {
        let read = measured(&["begins", "ends", r#"{"puts": 3}"#]).expect("a report");
        assert_eq!(read.report["puts"], 3);
        let error = measured(&["begins", "Hello"]).err().expect("no window");
        assert!(!error.is::<LeadershipLost>() && error.to_string().contains("Hello"), "{error}");
    }

    #[test]
    fn a_second_window_says_that_leadership_was_lost() {
        for lines in [&["begins", "begins"][..], &["begins", "ends", "begins"]] {
            let error = measured(lines).err().expect("lost");
            assert!(error.is::<LeadershipLost>(), "{error}");
        }
    }
}
