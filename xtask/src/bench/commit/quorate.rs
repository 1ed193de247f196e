//! Three `quorate run --workload` processes; the one that leads appends, and measures.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::sample::{Load, Sample, Used, Window, number};
use crate::interop::process::Process;
use crate::kill_loop::build::Binary;
use crate::kill_loop::cluster::{Cluster, NODES};

/// How long an election may take, or what the load leaves to be done.
const PATIENCE: Duration = Duration::from_secs(60);

/// Formats three voters with the defaults, and measures once.
pub(super) fn measure(binary: &Binary, dir: &Path, load: Load, window: &Window) -> Result<Sample> {
    let cluster = Cluster::format(binary, dir.join("quorum"), "")?;
    let spec = spec(load, window);
    let (said, heard) = mpsc::sync_channel(64);
    let mut processes = Vec::new();
    for node in 0..NODES {
        let mut command = Command::new(&binary.path);
        command.env("NO_COLOR", "1").arg("run").arg("--config").arg(cluster.config(node));
        command.args(["--workload", &spec]);
        let log = dir.join(format!("node-{}.log", node + 1));
        let name = format!("node {}", node + 1);
        let (process, _stdin, stdout) = Process::start_piped(&name, &command, &log)?;
        listen(stdout, &said)?;
        processes.push(process);
    }
    let pids: Vec<u32> = processes.iter().map(Process::id).collect();
    let mut lines = Lines { heard, processes };
    lines.wait_for("begins", PATIENCE + window.warm_up)?;
    let before = Used::of(&pids)?;
    lines.wait_for("ends", PATIENCE + window.length)?;
    let after = Used::of(&pids)?;
    let report = lines.next(PATIENCE)?;
    drop(lines);
    sample(&report, before, after)
}

fn spec(load: Load, window: &Window) -> String {
    let load = match load {
        Load::Closed(in_flight) => format!("inflight={in_flight}"),
        Load::Open(rate) => format!("rate={rate}"),
    };
    format!(
        "{load},size={},seconds={},warmup={}",
        window.record_bytes,
        window.length.as_secs_f64(),
        window.warm_up.as_secs_f64()
    )
}

fn listen(stdout: ChildStdout, said: &SyncSender<String>) -> Result<()> {
    let said = said.clone();
    let read = move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if said.send(line).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().spawn(read).context("a thread does not start")?;
    Ok(())
}

/// What the processes print, while all of them run.
struct Lines {
    heard: Receiver<String>,
    processes: Vec<Process>,
}

impl Lines {
    fn next(&mut self, patience: Duration) -> Result<String> {
        let deadline = Instant::now() + patience;
        loop {
            match self.heard.recv_timeout(Duration::from_millis(200)) {
                Ok(line) => return Ok(line),
                Err(_) if Instant::now() < deadline => {
                    self.processes.iter_mut().try_for_each(Process::check)?;
                }
                Err(_) => bail!("the leader said nothing for {} s", patience.as_secs()),
            }
        }
    }

    fn wait_for(&mut self, wanted: &str, patience: Duration) -> Result<()> {
        match self.next(patience)? {
            line if line == wanted => Ok(()),
            line => bail!("the leader says {line:?} instead of {wanted:?}"),
        }
    }
}

fn sample(report: &str, before: Used, after: Used) -> Result<Sample> {
    let report: Value =
        serde_json::from_str(report).with_context(|| format!("no report: {report:?}"))?;
    if let Some(why) = report["ended_early"].as_str() {
        bail!("the measurement ended early: {why}");
    }
    let records = number(&report, "/records")?;
    let groups = number(&report, "/durable_groups")?;
    let latency = |name: &str| number(&report, &format!("/latency_us/{name}")).map(Some);
    let count = |name: &str| {
        let count = report[name].as_u64();
        count.with_context(|| format!("there is no count {name} in {report}"))
    };
    Ok(Sample {
        commits_per_second: number(&report, "/records_per_second")?,
        p50_us: latency("p50")?,
        p75_us: latency("p75")?,
        p99_us: latency("p99")?,
        p999_us: latency("p999")?,
        records_per_fsync: (groups > 0.0).then(|| records / groups),
        cpu_us_per_commit: after.cpu_us_since(before, records),
        memory_mib: Some(after.peak_mib),
        failed: count("not_appended")? + count("unknown")? + count("unfinished")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_becomes_a_workload() {
        let window = Window {
            record_bytes: 256,
            warm_up: Duration::from_millis(500),
            length: Duration::from_secs(3),
        };
        assert_eq!(spec(Load::Closed(64), &window), "inflight=64,size=256,seconds=3,warmup=0.5");
        assert_eq!(spec(Load::Open(100), &window), "rate=100,size=256,seconds=3,warmup=0.5");
    }

    #[test]
    fn a_report_is_read() {
        let report = r#"{"records":300,"appends":30,"seconds":3.0,"records_per_second":100.0,
            "latency_us":{"p50":1.0,"p75":2.0,"p90":3.0,"p99":4.0,"p999":5.0,"max":6.0},
            "not_appended":1,"unknown":2,"unfinished":3,"durable_groups":10,"ended_early":null}"#;
        let read = sample(report, Used::default(), Used::default()).expect("a report");
        assert_eq!((read.commits_per_second, read.failed), (100.0, 6));
        assert_eq!((read.p99_us, read.records_per_fsync), (Some(4.0), Some(30.0)));
        let early = report.replace("null", "\"leadership was lost\"");
        let error = sample(&early, Used::default(), Used::default()).expect_err("early");
        assert!(error.to_string().contains("leadership was lost"), "{error}");
    }
}
