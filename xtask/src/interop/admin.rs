//! One admin client in one process: makes and deletes topics while others are killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::process::Process;
use crate::kafka::Release;

/// What runs in Java.
const SOURCE: &str = include_str!("TopicChurn.java");

/// The client, and what it has done so far.
pub(super) struct Admin {
    process: Process,
    stdin: ChildStdin,
    lines: Receiver<String>,
    rounds: u32,
    /// Topics that were made and deleted again.
    pub(super) topics: u32,
}

/// How long one step of ten topics may take, elections included.
const BOUND: Duration = Duration::from_secs(180);

impl Admin {
    /// Starts a client of this broker.
    pub(super) fn start(release: &Release, dir: &Path, broker: &str) -> Result<Admin> {
        let source = dir.join("TopicChurn.java");
        std::fs::write(&source, SOURCE).with_context(|| source.display().to_string())?;
        let mut java = release.jvm();
        java.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
        java.arg(&source).arg(broker);
        let (process, stdin, stdout) =
            Process::start_piped("the admin client", &java, &dir.join("admin.log"))?;
        let (sender, lines) = channel();
        thread::Builder::new().spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Admin { process, stdin, lines, rounds: 0, topics: 0 })
    }

    /// Makes and deletes so many topics. After each ten `at_step` is called with what was done, such as `created 20`, and
    /// with an empty line each second: it may find that something has stopped.
    pub(super) fn churn(
        &mut self,
        count: u32,
        mut at_step: impl FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        self.rounds += 1;
        writeln!(self.stdin, "churn round{} {count}", self.rounds)
            .context("the admin client does not listen")?;
        let mut last = Instant::now();
        loop {
            match self.lines.recv_timeout(Duration::from_secs(1)) {
                Ok(line) if line == format!("done {count}") => break,
                Ok(line) => {
                    at_step(&line)?;
                    last = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) if last.elapsed() > BOUND => {
                    bail!("the admin client waits for {BOUND:?}")
                }
                Err(RecvTimeoutError::Timeout) => at_step("")?,
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(Duration::from_millis(200));
                    self.process.check()?;
                    bail!("the admin client closed its stdout");
                }
            }
        }
        self.topics += count;
        Ok(())
    }
}
