//! A quorum of `quorate run --workload` processes; the one that leads appends, and measures.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::crowd::{Crowd, Served};
use super::table::number as shown;
use crate::interop::process::wait_for;
use crate::interop::quorum::{Make, Quorum};
use crate::usage::Usage;

/// What is appended, and how it is measured.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// `inflight=64,size=256`.
    pub(super) spec: String,
    pub(super) window: Duration,
    pub(super) warm_up: Duration,
    /// How long all do nothing afterwards, until their memory is looked at once more.
    pub(super) rest: Option<Duration>,
}

/// One measurement.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) commits_per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Records that were not committed, or not seen to be.
    pub(super) failed: u64,
    /// Of a core, over the window.
    pub(super) leader_cpu_percent: f64,
    /// At its end.
    pub(super) leader_mib: f64,
    /// Microseconds of processor for each commit, of all voters.
    pub(super) cpu_us_per_commit: f64,
    /// What the observers did in the window.
    pub(super) served: Option<Served>,
    /// Of the node that has most, after its rest; NaN without one.
    pub(super) rested_mib: f64,
}

impl Measured {
    /// For a line of progress.
    pub(super) fn figures(&self) -> String {
        let commits = shown(self.commits_per_second, 0);
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} not committed"),
        };
        format!(
            "{commits} commits/s, p50 {:.2} ms, p99 {:.2} ms{failed}, leader {:.0} % of a core and {:.1} MiB",
            self.p50_ms, self.p99_ms, self.leader_cpu_percent, self.leader_mib
        )
    }
}

/// How long an election may take, or what the load leaves to be done.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts all nodes, which are down, and `crowd` of observers beside them; ends all after one measurement.
pub(super) fn measure(quorum: &mut Quorum, load: &Load, crowd: Option<&Crowd>) -> Result<Measured> {
    let Load { spec, window, warm_up, rest } = load;
    let (seconds, warm) = (window.as_secs_f64(), warm_up.as_secs_f64());
    let mut lines = start(quorum, &format!("{spec},seconds={seconds},warmup={warm}"))?;
    let mut observers = crowd.map(|crowd| crowd.start(quorum)).transpose()?;
    let leader = lines.wait_for(quorum, "begins", PATIENCE + *warm_up)?;
    let served = observers.as_mut().map(|observers| observers.look()).transpose()?;
    let (from, before) = (Instant::now(), usages(quorum)?);
    lines.wait_for(quorum, "ends", PATIENCE + *window)?;
    let (elapsed, after) = (from.elapsed().as_secs_f64(), usages(quorum)?);
    let served = match (observers.as_mut(), served) {
        (Some(observers), Some(before)) => {
            let now = observers.look()?;
            // Afterwards: what is committed in between counts as lacking.
            let known = wait_for("a high watermark", PATIENCE, || quorum.describe())?;
            Some(now.since(&before, known.high_watermark)?)
        }
        _ => None,
    };
    let (_, report) = lines.next(quorum, PATIENCE)?;
    drop(observers);
    let mut rested_mib = f64::NAN;
    if let Some(rest) = rest {
        thread::sleep(*rest);
        quorum.check()?;
        rested_mib = mib(quorum.most_resident_kib()?);
    }
    quorum.kill_all();
    let report: Value =
        serde_json::from_str(&report).with_context(|| format!("no report: {report:?}"))?;
    if let Some(why) = report["ended_early"].as_str() {
        bail!("the measurement ended early: {why}");
    }
    let figure = |path: &str| {
        let figure = report.pointer(path).and_then(Value::as_f64);
        figure.with_context(|| format!("no number {path} in {report}"))
    };
    let count = |name: &str| {
        let count = report[name].as_u64();
        count.with_context(|| format!("there is no count {name} in {report}"))
    };
    let cpu: f64 =
        before.iter().zip(&after).map(|((_, b), (_, a))| a.cpu_seconds - b.cpu_seconds).sum();
    let of_leader = |usages: &[(i32, Usage)]| {
        let found = usages.iter().find(|(id, _)| *id == leader);
        found.map(|(_, usage)| *usage).context("the leader is none of them")
    };
    let (leader_before, leader_after) = (of_leader(&before)?, of_leader(&after)?);
    let commits_per_second = figure("/records_per_second")?;
    ensure!(commits_per_second > 0.0, "nothing was committed: {report}");
    Ok(Measured {
        commits_per_second,
        p50_ms: figure("/latency_us/p50")? / 1e3,
        p99_ms: figure("/latency_us/p99")? / 1e3,
        failed: count("not_appended")? + count("unknown")? + count("unfinished")?,
        leader_cpu_percent: (leader_after.cpu_seconds - leader_before.cpu_seconds) / elapsed
            * 100.0,
        leader_mib: mib(leader_after.resident_kib),
        cpu_us_per_commit: cpu * 1e6 / figure("/records")?,
        served,
        rested_mib,
    })
}

/// Appends until the log has so many records, and ends all at once, whatever they are at.
pub(super) fn fill(quorum: &mut Quorum, records: u32) -> Result<()> {
    // As few in a batch as a busy leader has: what a start reads is batches. And all in a second, where that can be, so that not
    // many more come before it is seen that there are enough.
    start(quorum, &format!("rate={records},inflight=8192,size=32,batch=64,seconds=3600"))?;
    let deadline = Instant::now() + FILL;
    loop {
        let high_watermark = quorum.describe()?.map_or(0, |now| now.high_watermark);
        if high_watermark >= i64::from(records) {
            quorum.kill_all();
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!("only {high_watermark} records of {records} within {} s", FILL.as_secs());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// How long a log may take to be filled.
const FILL: Duration = Duration::from_secs(900);

/// Starts all nodes with a workload.
fn start(quorum: &mut Quorum, spec: &str) -> Result<Lines> {
    let mut lines = Lines::default();
    for node in &mut quorum.nodes {
        node.make = Make::Quorate(vec!["--workload".to_owned(), spec.to_owned()]);
        let log = node.log();
        let position = log.metadata().map_or(0, |metadata| metadata.len());
        lines.logs.push(Log { node: node.id, path: log, position, text: Vec::new() });
    }
    for id in ids(quorum) {
        quorum.start(id)?;
    }
    Ok(lines)
}

pub(super) fn ids(quorum: &Quorum) -> Vec<i32> {
    quorum.nodes.iter().map(|node| node.id).collect()
}

pub(super) fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn usages(quorum: &Quorum) -> Result<Vec<(i32, Usage)>> {
    ids(quorum).into_iter().map(|id| Ok((id, quorum.usage(id)?))).collect()
}

/// What the workloads print into the logs of their nodes, from the last start on.
#[derive(Default)]
struct Lines {
    logs: Vec<Log>,
}

struct Log {
    node: i32,
    path: PathBuf,
    position: u64,
    /// What is not yet a whole line.
    text: Vec<u8>,
}

impl Lines {
    /// The next line of a workload, and whose it is.
    fn next(&mut self, quorum: &mut Quorum, patience: Duration) -> Result<(i32, String)> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            for log in &mut self.logs {
                while let Some(line) = log.line()? {
                    if line == "begins" || line == "ends" || line.starts_with('{') {
                        return Ok((log.node, line));
                    }
                }
            }
            quorum.check()?;
            thread::sleep(Duration::from_millis(5));
        }
        bail!("no workload said anything for {} s", patience.as_secs())
    }

    fn wait_for(&mut self, quorum: &mut Quorum, wanted: &str, patience: Duration) -> Result<i32> {
        match self.next(quorum, patience)? {
            (node, line) if line == wanted => Ok(node),
            (_, line) => bail!("the leader says {line:?} instead of {wanted:?}"),
        }
    }
}

impl Log {
    fn line(&mut self) -> Result<Option<String>> {
        let problem = || self.path.display().to_string();
        let mut file = File::open(&self.path).with_context(problem)?;
        file.seek(SeekFrom::Start(self.position)).with_context(problem)?;
        let read = file.read_to_end(&mut self.text).with_context(problem)?;
        self.position += u64::try_from(read)?;
        let Some(end) = self.text.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.text.drain(..=end).collect();
        Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_line_counts_when_it_is_whole() {
        let dir = std::env::temp_dir().join(format!("quorate-growth-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let path = dir.join("log");
        let mut file = File::create(&path).expect("a file");
        let mut log = Log { node: 1, path, position: 4, text: Vec::new() };
        file.write_all(b"old\nbegins\nen").expect("written");
        assert_eq!(log.line().expect("read").as_deref(), Some("begins"));
        assert_eq!(log.line().expect("read"), None);
        file.write_all(b"ds\n").expect("written");
        assert_eq!(log.line().expect("read").as_deref(), Some("ends"));
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
