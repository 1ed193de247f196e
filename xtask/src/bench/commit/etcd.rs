//! Three members of etcd, and a load generator on the gRPC API of their leader.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::generator::{Generators, Report};
use super::sample::{Sample, Window, count, number};
use crate::interop::process::Process;
use crate::interop::quorum::free_ports;
use crate::step::{root, succeed, target};

/// The programs.
#[derive(Clone, Debug)]
pub(super) struct Etcd {
    server: PathBuf,
    load: PathBuf,
}

/// Where Go is if it is not on the path.
const GO: &str = "/usr/local/go/bin/go";

/// Builds server and load generator.
pub(super) fn build() -> Result<Etcd> {
    let folder = target().join("bench-etcd");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut build = Command::new(go()?);
    build.current_dir(root().join("bench/etcd")).args(["build", "-mod=readonly", "-o"]);
    // The final slash has Go take it for a folder.
    build.arg(folder.join("")).args(["./server", "./load"]);
    succeed(&mut build).context(
        "bench/etcd does not build; Go brings its modules from proxy.golang.org at the first time",
    )?;
    Ok(Etcd { server: folder.join("server"), load: folder.join("load") })
}

fn go() -> Result<&'static str> {
    let starts = |go: &&str| {
        let mut version = Command::new(go);
        version.arg("version").stdin(Stdio::null()).stdout(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    ["go", GO].into_iter().find(starts).context(
        "go does not start; etcd needs it: bring it from https://go.dev/dl, or leave etcd out of --systems",
    )
}

const MEMBERS: usize = 3;

/// Starts three empty members with the defaults, and measures once.
pub(super) fn measure(etcd: &Etcd, dir: &Path, in_flight: u32, window: &Window) -> Result<Sample> {
    let ports = free_ports(2 * MEMBERS)?;
    let (clients, peers) = ports.split_at(MEMBERS);
    let cluster: Vec<String> = peers
        .iter()
        .enumerate()
        .map(|(member, peer)| format!("member-{member}=http://127.0.0.1:{peer}"))
        .collect();
    let mut generators = Generators::new();
    for (member, (client, peer)) in clients.iter().zip(peers).enumerate() {
        let name = format!("member-{member}");
        let (client, peer) =
            (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let mut server = Command::new(&etcd.server);
        server.args(["--log-level", "warn", "--name", &name, "--data-dir"]).arg(dir.join(&name));
        server.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        server.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        server.args(["--initial-cluster", &cluster.join(",")]);
        let log = dir.join(format!("{name}.log"));
        generators.add(Process::start(&name, &server, &log)?);
    }
    let endpoints: Vec<String> = clients.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut load = Command::new(&etcd.load);
    load.arg(format!("--endpoints={}", endpoints.join(",")));
    load.arg(format!("--inflight={in_flight}"));
    load.arg(format!("--value-bytes={}", window.record_bytes));
    load.arg(format!("--warmup={}ms", window.warm_up.as_millis()));
    load.arg(format!("--window={}ms", window.length.as_millis()));
    let (process, _stdin, stdout) = Process::start_piped("load", &load, &dir.join("load.log"))?;
    generators.listen(stdout)?;
    generators.add_other(process);
    sample(&generators.measure(window)?)
}

fn sample(measured: &Report) -> Result<Sample> {
    let Report { report, before, after } = measured;
    let puts = number(report, "/puts")?;
    let fsyncs = number(report, "/fsyncs")?;
    let latency = |name: &str| number(report, &format!("/latency_us/{name}")).map(Some);
    Ok(Sample {
        commits_per_second: number(report, "/puts_per_second")?,
        p50_us: latency("p50")?,
        p75_us: latency("p75")?,
        p99_us: latency("p99")?,
        p999_us: latency("p999")?,
        records_per_fsync: (fsyncs > 0.0).then(|| puts / fsyncs),
        cpu_us_per_commit: after.cpu_us_since(*before, puts),
        memory_mib: Some(after.peak_mib),
        failed: count(report, "failed")?,
    })
}

/// The version of etcd that `go.mod` asks for.
pub(super) fn version() -> Result<String> {
    let file = root().join("bench/etcd/go.mod");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("go.etcd.io/etcd/server/v3 "));
    Ok(line.with_context(|| format!("{} names no etcd", file.display()))?.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::bench::commit::sample::Used;

    fn report() -> Report {
        let latency = json!({"p50": 1.0, "p75": 2.0, "p99": 3.0, "p999": 4.0});
        let report: Value = json!({
            "puts": 150, "puts_per_second": 50.0, "latency_us": latency, "fsyncs": 10, "failed": 1
        });
        Report { report, before: Used::default(), after: Used::default() }
    }

    #[test]
    fn a_report_is_read() {
        let read = sample(&report()).expect("a report");
        assert_eq!((read.commits_per_second, read.failed), (50.0, 1));
        assert_eq!((read.p99_us, read.records_per_fsync), (Some(3.0), Some(15.0)));
    }

    #[test]
    fn the_version_is_the_one_that_is_built() {
        assert!(version().expect("go.mod").starts_with("v3.6."));
    }
}
