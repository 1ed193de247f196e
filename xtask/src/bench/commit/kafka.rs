//! Apache Kafka's own measure of its quorum: three `kafka.tools.TestRaftServer`, the leader of which appends at a rate.
//!
//! It counts whole milliseconds up to 249, from when a record is appended, so that what it could not append in time does
//! not count as late. It prints a line every five seconds, whose figures look back over 60 to 90 seconds: only after 90
//! of them is what the JVM did while it warmed up forgotten.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::sample::{Sample, Used, Window};
use crate::interop::process::Process;
use crate::interop::quorum::free_ports;
use crate::kafka::Release;

/// The release that is measured.
pub(super) const VERSION: &str = "4.4.0";

const CLASS: &str = "kafka.tools.TestRaftServer";

const NODES: usize = 3;

/// How long the first line may take, or the next one.
const PATIENCE: Duration = Duration::from_secs(120);

/// A line is printed so often.
const EVERY: Duration = Duration::from_secs(5);

/// Processor time is read over so many lines, the last ones.
const LINES: usize = 4;

/// How it is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) rate: u32,
    /// `controller.quorum.append.linger.ms`, unless it is the default.
    pub(super) linger_ms: Option<u32>,
    /// How long the load runs until its figures are taken.
    pub(super) length: Duration,
}

/// Starts three empty nodes, and takes the last line that their leader prints in time.
pub(super) fn measure(release: &Release, dir: &Path, run: Run, window: &Window) -> Result<Sample> {
    let ports = free_ports(NODES)?;
    let voters: Vec<String> =
        (1..).zip(&ports).map(|(id, port)| format!("{id}@127.0.0.1:{port}")).collect();
    let (sender, lines) = mpsc::sync_channel(64);
    let mut processes = Vec::new();
    for (id, port) in (1..).zip(&ports) {
        let config = dir.join(format!("node-{id}.properties"));
        let data = dir.join(format!("node-{id}"));
        let linger = run.linger_ms.map_or(String::new(), |linger| {
            format!("controller.quorum.append.linger.ms={linger}\n")
        });
        let properties = format!(
            "node.id={id}\ncontroller.listener.names=CONTROLLER\n\
             listeners=CONTROLLER://127.0.0.1:{port}\ncontroller.quorum.voters={}\n\
             log.dirs={}\n{linger}",
            voters.join(","),
            data.display()
        );
        std::fs::write(&config, properties).with_context(|| config.display().to_string())?;
        let mut command = release.server(CLASS);
        command.arg("--config").arg(&config);
        command.args(["--replica-directory-id", &format!("QuorateDirOfNode{id:03}AAA")]);
        command.args(["--throughput", &run.rate.to_string()]);
        command.args(["--record-size", &window.record_bytes.to_string()]);
        let log = dir.join(format!("node-{id}.log"));
        let (process, _stdin, stdout) =
            Process::start_piped(&format!("TestRaftServer {id}"), &command, &log)?;
        processes.push(process);
        let sender = sender.clone();
        let read = move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(read).context("a thread does not start")?;
    }
    let pids: Vec<u32> = processes.iter().map(Process::id).collect();
    let mut read: Vec<(Instant, Used)> = Vec::new();
    let mut heard = Instant::now();
    loop {
        let Ok(line) = lines.recv_timeout(Duration::from_millis(500)) else {
            processes.iter_mut().try_for_each(Process::check)?;
            if heard.elapsed() > PATIENCE {
                bail!("no node printed a line for {} s; see {}", PATIENCE.as_secs(), dir.display());
            }
            continue;
        };
        heard = Instant::now();
        let printed = parse(&line).with_context(|| format!("a line of {CLASS}: {line:?}"))?;
        read.push((heard, Used::of(&pids)?));
        let since_first = read.first().map_or(Duration::ZERO, |(first, _)| heard - *first);
        if since_first + EVERY >= run.length {
            return Ok(printed.sample(window, &read));
        }
    }
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Printed {
    bytes_per_second: f64,
    /// Milliseconds.
    p75: f64,
    p99: f64,
    p999: f64,
}

/// `Throughput (bytes/second): 2490871.35, Latency (ms): 52.0 p75 241.0 p99 249.0 p999`.
fn parse(line: &str) -> Result<Printed> {
    let rest = line.strip_prefix("Throughput (bytes/second): ").context("no throughput")?;
    let (throughput, latency) = rest.split_once(", Latency (ms): ").context("no latency")?;
    let words: Vec<&str> = latency.split_ascii_whitespace().collect();
    let [p75, "p75", p99, "p99", p999, "p999"] = words[..] else { bail!("other percentiles") };
    Ok(Printed {
        bytes_per_second: throughput.parse()?,
        p75: p75.parse()?,
        p99: p99.parse()?,
        p999: p999.parse()?,
    })
}

impl Printed {
    fn sample(self, window: &Window, read: &[(Instant, Used)]) -> Sample {
        let commits_per_second = self.bytes_per_second / f64::from(window.record_bytes);
        let recent = read.get(read.len().saturating_sub(LINES)..).unwrap_or(&[]);
        let (cpu_us_per_commit, memory_mib) = match recent {
            [(begin, before), .., (end, after)] => {
                let commits = commits_per_second * (*end - *begin).as_secs_f64();
                (after.cpu_us_since(*before, commits), Some(after.peak_mib))
            }
            _ => (None, recent.last().map(|(_, used)| used.peak_mib)),
        };
        // Where it has counted nothing it prints NaN.
        let micros = |millis: f64| millis.is_finite().then_some(millis * 1000.0);
        Sample {
            commits_per_second,
            p50_us: None,
            p75_us: micros(self.p75),
            p99_us: micros(self.p99),
            p999_us: micros(self.p999),
            records_per_fsync: None,
            cpu_us_per_commit,
            memory_mib,
            failed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line =
            "Throughput (bytes/second): 2560000.00, Latency (ms): 52.0 p75 241.0 p99 249.0 p999";
        let printed = parse(line).expect("a line");
        let window = Window {
            record_bytes: 256,
            batch: None,
            warm_up: Duration::ZERO,
            length: Duration::from_secs(3),
        };
        let start = Instant::now();
        let used = Used { cpu_seconds: 2.0, peak_mib: 1.0 };
        let read = [(start, Used::default()), (start + EVERY, used)];
        let sample = printed.sample(&window, &read);
        assert_eq!((sample.commits_per_second, sample.p75_us), (10_000.0, Some(52_000.0)));
        assert_eq!((sample.p99_us, sample.cpu_us_per_commit), (Some(241_000.0), Some(40.0)));
        assert_eq!(printed.sample(&window, &read[..1]).cpu_us_per_commit, None);
        let nothing = "Throughput (bytes/second): NaN, Latency (ms): NaN p75 NaN p99 NaN p999";
        assert_eq!(parse(nothing).expect("a line").sample(&window, &read).p75_us, None);
        assert!(parse("Throughput: 1").is_err());
    }
}
