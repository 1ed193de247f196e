//! A process that we started: its log is a file, and it never outlives us.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

/// Flags of the hidden `cargo xtask die-with`.
#[derive(clap::Args)]
pub(crate) struct DieWith {
    /// Who started us.
    parent: i32,
    /// What to become.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Becomes a command that the kernel kills when the process that started it is gone. The wish survives the exec.
pub(crate) fn die_with(options: &DieWith) -> Result<String> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("no parent death signal")?;
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(options.parent) {
        bail!("process {}, which started this one, is gone", options.parent);
    }
    let (program, args) = options.command.split_first().context("no command")?;
    Err(Command::new(program).args(args).exec())
        .with_context(|| format!("{program} does not start"))
}

/// A running process.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

/// How a process is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// SIGTERM, and time to hand over.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// How long a process may take to end after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(120);

impl Process {
    /// Starts a command whose stdout and stderr go to the end of a file. Must be called on the main thread: the kernel
    /// ties the child to the thread that started it.
    pub(crate) fn start(name: &str, command: &Command, log: &Path) -> Result<Process> {
        let file = append(log)?;
        let copy = file.try_clone().context("a file handle cannot be copied")?;
        let mut wrapped = wrap(command);
        wrapped.stdin(Stdio::null()).stdout(copy).stderr(file);
        Process::spawn(name, wrapped, log)
    }

    /// The same with pipes for stdin and stdout.
    pub(crate) fn start_piped(
        name: &str,
        command: &Command,
        log: &Path,
    ) -> Result<(Process, ChildStdin, ChildStdout)> {
        let mut wrapped = wrap(command);
        wrapped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(append(log)?);
        let mut process = Process::spawn(name, wrapped, log)?;
        let stdin = process.child.stdin.take().context("no stdin")?;
        let stdout = process.child.stdout.take().context("no stdout")?;
        Ok((process, stdin, stdout))
    }

    fn spawn(name: &str, mut command: Command, log: &Path) -> Result<Process> {
        let child = command.spawn().with_context(|| format!("{name} does not start"))?;
        Ok(Process { name: name.to_owned(), child, log: log.to_owned() })
    }

    /// Fails if it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait().with_context(|| format!("{} is lost", self.name))? {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended with {status}; its log {} ends with:\n{}",
                self.name,
                self.log.display(),
                last_lines(&self.log)
            ),
        }
    }

    /// Ends it and waits until it is gone.
    pub(crate) fn end(mut self, how: End) -> Result<ExitStatus> {
        self.check()?;
        if how == End::Kill {
            self.child.kill().with_context(|| format!("{} cannot be killed", self.name))?;
            return Ok(self.child.wait()?);
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM)
            .with_context(|| format!("{} cannot be signalled", self.name))?;
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!(
            "{} does not end within {FAREWELL:?} of SIGTERM, see {}",
            self.name,
            self.log.display()
        )
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wrap(command: &Command) -> Command {
    // Our own file may have been replaced by a newer build meanwhile.
    let mut wrapped = Command::new("/proc/self/exe");
    wrapped.arg("die-with").arg(std::process::id().to_string()).arg("--");
    wrapped.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            wrapped.env(key, value);
        }
    }
    wrapped
}

fn append(log: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| log.display().to_string())
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// The lines of a log that a check is about.
pub(crate) fn matching_lines(log: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let file = File::open(log).with_context(|| log.display().to_string())?;
    let mut found = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line.with_context(|| log.display().to_string())?;
        let line = String::from_utf8_lossy(&line);
        if wanted(&line) {
            found.push(line.into_owned());
        }
    }
    Ok(found)
}

/// Waits until there is an answer, and looks again every 50 ms.
pub(crate) fn wait_for<T>(
    what: &str,
    bound: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("{what}: not within {} s", bound.as_secs());
        }
        thread::sleep(Duration::from_millis(50));
    }
}
