//! What is measured, and the figures of one measurement.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::who::Who;
use crate::usage::{self, Usage};

/// The load that a system is put under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Load {
    /// So many records are always on their way.
    Closed(u32),
    /// So many records a second, whatever became of those before.
    Open(u32),
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Closed(in_flight) => write!(f, "{in_flight} in flight"),
            Load::Open(rate) => write!(f, "{} records/s", grouped(f64::from(*rate))),
        }
    }
}

/// How records are made, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) record_bytes: u32,
    /// The most records of an append, where records are appended and not put or sent.
    pub(super) batch: Option<u32>,
    pub(super) warm_up: Duration,
    pub(super) length: Duration,
}

/// One measurement of one system.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) commits_per_second: f64,
    /// Latencies in microseconds; none where the system does not tell.
    pub(super) p50_us: Option<f64>,
    pub(super) p75_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) p999_us: Option<f64>,
    /// Of the leader.
    pub(super) records_per_fsync: Option<f64>,
    /// Microseconds for each commit, of all processes of the system.
    pub(super) cpu_us_per_commit: Option<f64>,
    /// Peak of all processes of the system together, in MiB.
    pub(super) memory_mib: Option<f64>,
    /// Records that were not committed, or not seen to be.
    pub(super) failed: u64,
}

impl Sample {
    /// Fails where this is no measurement: nothing was committed, or a closed loop of ours was not one.
    pub(super) fn check(&self, who: Who, load: Load) -> Result<()> {
        if self.commits_per_second.is_nan() || self.commits_per_second <= 0.0 {
            bail!("nothing was committed within the window");
        }
        let is_closed = matches!(load, Load::Closed(_));
        // What others fail at is theirs: it is in the table, and meets no target.
        if is_closed && who != Who::Etcd && self.failed > 0 {
            bail!("{} records failed in a closed loop", self.failed);
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "commitsPerSecond": self.commits_per_second,
            "p50Us": self.p50_us,
            "p75Us": self.p75_us,
            "p99Us": self.p99_us,
            "p999Us": self.p999_us,
            "recordsPerFsync": self.records_per_fsync,
            "cpuUsPerCommit": self.cpu_us_per_commit,
            "memoryMib": self.memory_mib,
            "failed": self.failed,
        })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} commits/s", grouped(self.commits_per_second))?;
        let latencies = [("p50", self.p50_us), ("p75", self.p75_us), ("p99", self.p99_us)];
        for (name, value) in latencies {
            if let Some(value) = value {
                write!(f, ", {name} {}", millis(value))?;
            }
        }
        if let Some(cpu) = self.cpu_us_per_commit {
            write!(f, ", {cpu:.1} us of processor a commit")?;
        }
        if self.failed > 0 {
            write!(f, ", {} records failed", self.failed)?;
        }
        Ok(())
    }
}

/// The node that measured leads no more.
#[derive(Debug)]
pub(super) struct LeadershipLost;

impl fmt::Display for LeadershipLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("leadership was lost")
    }
}

impl std::error::Error for LeadershipLost {}

/// Processor time is told in hundredths of a second: with fewer than a hundred of them a figure would be their rounding.
const LEAST_CPU_SECONDS: f64 = 1.0;

/// What several processes have used together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub(super) cpu_seconds: f64,
    pub(super) peak_mib: f64,
}

impl Used {
    /// Reads what these have used so far.
    pub(super) fn of(pids: &[u32]) -> Result<Used> {
        let mut used = Used::default();
        for pid in pids {
            let Usage { cpu_seconds, peak_kib, .. } = usage::of(*pid)?;
            used.cpu_seconds += cpu_seconds;
            used.peak_mib += peak_kib as f64 / 1024.0;
        }
        Ok(used)
    }

    /// Microseconds of processor for each of so many commits since then, if it was enough to tell.
    pub(super) fn cpu_us_since(&self, before: Used, commits: f64) -> Option<f64> {
        let seconds = self.cpu_seconds - before.cpu_seconds;
        (commits > 0.0 && seconds >= LEAST_CPU_SECONDS).then(|| seconds * 1e6 / commits)
    }
}

/// A number in a report that a load generator printed.
pub(super) fn number(report: &Value, path: &str) -> Result<f64> {
    report
        .pointer(path)
        .and_then(Value::as_f64)
        .with_context(|| format!("there is no number {path} in {report}"))
}

/// A count in such a report.
pub(super) fn count(report: &Value, name: &str) -> Result<u64> {
    let count = report[name].as_u64();
    count.with_context(|| format!("there is no count {name} in {report}"))
}

/// `12,345`.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds as milliseconds.
pub(super) fn millis(micros: f64) -> String {
    format!("{:.2} ms", micros / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        for (number, text) in
            [(0.4, "0"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.2, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn processor_time_is_counted_from_the_first_reading() {
        let before = Used { cpu_seconds: 1.5, peak_mib: 3.0 };
        let after = Used { cpu_seconds: 3.5, peak_mib: 4.0 };
        assert_eq!(after.cpu_us_since(before, 1000.0), Some(2000.0));
        assert_eq!(after.cpu_us_since(before, 0.0), None);
        let soon = Used { cpu_seconds: 2.25, peak_mib: 4.0 };
        assert_eq!(soon.cpu_us_since(before, 1000.0), None, "75 ticks are too few");
    }

    #[test]
    fn a_sample_of_nothing_is_none() {
        let some = Sample { commits_per_second: 1.0, ..Sample::default() };
        let failed = Sample { failed: 1, ..some.clone() };
        let (closed, open) = (Load::Closed(1), Load::Open(1));
        for (who, load) in [(Who::Quorate, closed), (Who::Quorate, open), (Who::Floor, closed)] {
            assert!(some.check(who, load).is_ok());
            for commits_per_second in [0.0, f64::NAN] {
                let none = Sample { commits_per_second, ..Sample::default() };
                assert!(none.check(who, load).is_err(), "{commits_per_second} of {who:?}");
            }
        }
        assert!(failed.check(Who::QuorateCalls, closed).is_err());
        assert!(failed.check(Who::Quorate, open).is_ok(), "the table tells");
        assert!(failed.check(Who::Etcd, closed).is_ok(), "the table tells");
    }
}
