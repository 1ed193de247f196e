//! Three `quorate run --workload` processes; the one that leads appends, and measures.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::generator::{Generators, Report};
use super::sample::{LeadershipLost, Load, Sample, Window, count, number};
use crate::interop::process::Process;
use crate::kill_loop::build::Binary;
use crate::kill_loop::cluster::{Cluster, NODES};

/// Why a measurement ends early that another one may not.
const LOST: &str = "leadership was lost";

/// Formats three voters with the defaults, and measures once. The error is [`LeadershipLost`] where the leader did not
/// stay the same.
pub(super) fn measure(binary: &Binary, dir: &Path, load: Load, window: &Window) -> Result<Sample> {
    let cluster = Cluster::format(binary, dir.join("quorum"), "")?;
    let spec = spec(load, window);
    let mut generators = Generators::new();
    for node in 0..NODES {
        let mut command = Command::new(&binary.path);
        command.env("NO_COLOR", "1").arg("run").arg("--config").arg(cluster.config(node));
        command.args(["--workload", &spec]);
        let log = dir.join(format!("node-{}.log", node + 1));
        let name = format!("node {}", node + 1);
        let (process, _stdin, stdout) = Process::start_piped(&name, &command, &log)?;
        generators.listen(stdout)?;
        generators.add(process);
    }
    sample(&generators.measure(window)?)
}

fn spec(load: Load, window: &Window) -> String {
    let load = match load {
        Load::Closed(in_flight) => format!("inflight={in_flight}"),
        Load::Open(rate) => format!("rate={rate}"),
    };
    let batch = window.batch.map_or(String::new(), |batch| format!(",batch={batch}"));
    format!(
        "{load},size={},seconds={},warmup={}{batch}",
        window.record_bytes,
        window.length.as_secs_f64(),
        window.warm_up.as_secs_f64()
    )
}

fn sample(measured: &Report) -> Result<Sample> {
    let Report { report, before, after } = measured;
    match report["ended_early"].as_str() {
        None => {}
        Some(LOST) => return Err(LeadershipLost.into()),
        Some(why) => bail!("the measurement ended early: {why}"),
    }
    let records = number(report, "/records")?;
    let groups = number(report, "/durable_groups")?;
    let latency = |name: &str| number(report, &format!("/latency_us/{name}")).map(Some);
    let failed = ["not_appended", "unknown", "unfinished"].map(|name| count(report, name));
    Ok(Sample {
        commits_per_second: number(report, "/records_per_second")?,
        p50_us: latency("p50")?,
        p75_us: latency("p75")?,
        p99_us: latency("p99")?,
        p999_us: latency("p999")?,
        records_per_fsync: (groups > 0.0).then(|| records / groups),
        cpu_us_per_commit: after.cpu_us_since(*before, records),
        memory_mib: Some(after.peak_mib),
        failed: failed.into_iter().sum::<Result<u64>>()?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::bench::commit::sample::Used;

    #[test]
    fn the_load_becomes_a_workload() {
        let window = Window {
            record_bytes: 256,
            batch: None,
            warm_up: Duration::from_millis(500),
            length: Duration::from_secs(3),
        };
        assert_eq!(spec(Load::Closed(64), &window), "inflight=64,size=256,seconds=3,warmup=0.5");
        let alone = Window { batch: Some(1), ..window };
        assert!(spec(Load::Closed(64), &alone).ends_with(",batch=1"));
        assert_eq!(spec(Load::Open(100), &window), "rate=100,size=256,seconds=3,warmup=0.5");
    }

    #[test]
    fn a_report_is_read() {
        let report = |ended_early: Option<&str>| Report {
            report: json!({
                "records": 300, "seconds": 3.0, "records_per_second": 100.0,
                "latency_us": {"p50": 1.0, "p75": 2.0, "p99": 4.0, "p999": 5.0},
                "not_appended": 1, "unknown": 2, "unfinished": 3, "durable_groups": 10,
                "ended_early": ended_early,
            }),
            before: Used::default(),
            after: Used::default(),
        };
        let read = sample(&report(None)).expect("a report");
        assert_eq!((read.commits_per_second, read.failed), (100.0, 6));
        assert_eq!((read.p99_us, read.records_per_fsync), (Some(4.0), Some(30.0)));
        let early = |why| sample(&report(Some(why))).expect_err("early");
        assert!(early("leadership was lost").is::<LeadershipLost>());
        let error = early("the node has stopped");
        assert!(!error.is::<LeadershipLost>() && error.to_string().contains("stopped"), "{error}");
    }
}
