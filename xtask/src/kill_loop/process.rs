//! One process of a node, and what it says.
//!
//! Two threads read its stdout and stderr and pass on what matters; stderr is kept in a file too. A process
//! never outlives its [`Process`], nor this program.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::build::Binary;
use super::history::Incarnation;
use super::lines::{Id, Outcome, is_integrity_fault, leader_epoch, outcome};

/// Something that a process said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) who: Incarnation,
    /// When it was read.
    pub(crate) at: Instant,
    pub(crate) what: What,
}

/// What it said.
#[derive(Debug)]
pub(crate) enum What {
    /// What became of a record.
    Outcome(Id, Outcome),
    /// It leads this epoch.
    Leads(i32),
    /// It believes that committed data are lost.
    IntegrityFault(String),
    /// A whole line that does not read.
    Nonsense(String),
    /// One of its two streams has ended.
    End,
}

/// A running process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) who: Incarnation,
}

impl Process {
    /// Starts `quorate run`. Must be called on the main thread: the kernel ties the child to the thread that
    /// started it.
    pub(crate) fn start(
        binary: &Binary,
        config: &Path,
        workload: Option<&str>,
        log: &Path,
        seed: u64,
        who: Incarnation,
        said: &SyncSender<Said>,
    ) -> Result<Process> {
        let mut command = Command::new(&binary.path);
        command.arg("run").arg("--config").arg(config);
        command.arg("--die-with-parent").arg(std::process::id().to_string());
        if let Some(workload) = workload {
            command.arg("--workload").arg(workload);
        }
        command.env("NO_COLOR", "1").env("QUORATE_POWER_CUT_SEED", seed.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let log = File::create(log).with_context(|| log.display().to_string())?;
        let mut child = command.spawn().context("quorate does not start")?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // From here on the child is killed whatever happens.
        let process = Process { child, who };
        let (stdout, stderr) = (stdout.context("no stdout")?, stderr.context("no stderr")?);
        let sender = said.clone();
        spawn(move || whole_lines(stdout, |line| read_stdout(line, who, &sender)))?;
        let sender = said.clone();
        spawn(move || {
            let mut log = log;
            whole_lines(stderr, |line| {
                // The file is only for whoever looks into a failure.
                let _ = writeln!(log, "{}", line.unwrap_or("(end)"));
                read_stderr(line, who, &sender)
            });
        })?;
        Ok(process)
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("a node cannot be waited for")
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("a node cannot be killed")
    }

    /// Waits until a killed process is gone.
    pub(crate) fn wait(&mut self) -> Result<()> {
        self.child.wait().context("a node cannot be waited for")?;
        Ok(())
    }

    /// SIGTERM. The process may take its time.
    pub(crate) fn terminate(&self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).context("a node cannot be signalled")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().spawn(work).context("a thread does not start")?;
    Ok(())
}

/// Calls `on_line` with each line that came whole, and then with `None`, until it returns false.
fn whole_lines(stream: impl Read, mut on_line: impl FnMut(Option<&str>) -> bool) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = stream.read_until(b'\n', &mut line);
        match line.strip_suffix(b"\n") {
            Some(whole) if read.is_ok() => {
                if !on_line(Some(&String::from_utf8_lossy(whole))) {
                    return;
                }
            }
            _ => {
                on_line(None);
                return;
            }
        }
    }
}

fn read_stdout(line: Option<&str>, who: Incarnation, sender: &SyncSender<Said>) -> bool {
    let what = match line {
        None => What::End,
        Some(line) => match outcome(line) {
            Ok((id, outcome)) => What::Outcome(id, outcome),
            Err(error) => What::Nonsense(format!("{error:#}")),
        },
    };
    say(sender, who, what)
}

fn read_stderr(line: Option<&str>, who: Incarnation, sender: &SyncSender<Said>) -> bool {
    let Some(line) = line else { return say(sender, who, What::End) };
    match leader_epoch(line) {
        Some(epoch) => say(sender, who, What::Leads(epoch)),
        None if is_integrity_fault(line) => say(sender, who, What::IntegrityFault(line.to_owned())),
        None => true,
    }
}

/// False once nobody listens.
fn say(sender: &SyncSender<Said>, who: Incarnation, what: What) -> bool {
    sender.send(Said { who, at: Instant::now(), what }).is_ok()
}

/// Waits for a command no longer than `bound`, and kills it after that.
pub(crate) fn output_within(command: &mut Command, bound: Duration) -> Result<String> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let deadline = Instant::now() + bound;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            bail!("no answer within {bound:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_killed_process_counts_only_if_it_is_whole() {
        let mut lines = Vec::new();
        whole_lines(&b"ack 1\n\nack 2\nack 3"[..], |line| {
            lines.push(line.map(str::to_owned));
            true
        });
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(lines, [text("ack 1"), text(""), text("ack 2"), None]);
    }

    #[test]
    fn a_command_that_hangs_is_killed() {
        let start = Instant::now();
        let error = output_within(Command::new("sleep").arg("60"), Duration::from_millis(50));
        assert!(error.is_err() && start.elapsed() < Duration::from_secs(30));
        let echo = output_within(Command::new("echo").arg("1"), Duration::from_secs(30));
        assert_eq!(echo.expect("it says 1"), "1\n");
        assert!(output_within(&mut Command::new("false"), Duration::from_secs(30)).is_err());
    }
}
