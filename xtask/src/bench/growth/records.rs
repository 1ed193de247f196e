//! Records in the log: commits and latency, start and memory over its size; and the start of an empty node.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::load::{self, Load, fill, ids};
use super::start::{self, Start};
use super::table::{Axis, Column, Panel, Plot, Sample, Table, Target, median, number};
use super::{Bench, Found};
use crate::interop::process::End;

/// Of the start of an empty node, and of an idle one's memory.
const START_MS: f64 = 50.0;
const IDLE_MB: f64 = 20.0;

/// The first election, or a load, and what follows it.
const SETTLING: Duration = Duration::from_secs(3);

/// Later than any epoch that a fresh quorum comes to, twice.
const EPOCHS: [i32; 2] = [1000, 2000];

const COLUMNS: [Column; 10] = [
    Column::new("commits/s", 0),
    Column::new("p50 ms", 2),
    Column::new("p99 ms", 2),
    Column::new("leader MiB under load", 1),
    Column::new("start after kill -9, ms", 1),
    Column::new("start after SIGTERM, ms", 1),
    Column::new("MiB after start", 1),
    Column::new("MiB idle after the load", 1),
    Column::new("log MB", 1),
    Column::most("failed", 0),
];

pub(super) fn run(bench: &Bench) -> Result<Found> {
    let mut targets = empty(bench)?;
    targets.push(idle(bench)?);
    let mut samples = Vec::new();
    for round in 1..=bench.plan.rounds {
        for records in bench.plan.records.clone() {
            samples.push(point(bench, round, records)?);
        }
    }
    let table = Table {
        title: "Three voters, 256-byte records, 64 in flight, by the records of about 50 bytes that are in the log \
                when they start. Starts are of one node alone, up to its first vote, with the log in the page cache."
            .to_owned(),
        x: Axis { name: "records in the log", is_log: true },
        columns: COLUMNS.into(),
        samples,
        plots: vec![
            Plot {
                name: "growth-records-commits",
                title: "Commits by records in the log (64 in flight)",
                panels: vec![
                    Panel { y: Axis { name: "commits/s", is_log: false }, series: vec![(0, "commits/s")] },
                    Panel {
                        y: Axis { name: "latency, ms", is_log: false },
                        series: vec![(1, "p50"), (2, "p99")],
                    },
                ],
            },
            Plot {
                name: "growth-records-start",
                title: "Start and memory by records in the log",
                panels: vec![
                    Panel {
                        y: Axis { name: "start to first vote, ms", is_log: true },
                        series: vec![(4, "after kill -9"), (5, "after SIGTERM")],
                    },
                    Panel {
                        y: Axis { name: "memory, MiB", is_log: false },
                        series: vec![(6, "after start"), (3, "leader under load")],
                    },
                ],
            },
        ],
    };
    Ok(Found { tables: vec![table], targets })
}

/// The log is filled anew in each round, so that each begins with as much as it says.
fn point(bench: &Bench, round: u32, records: u32) -> Result<Sample> {
    let what = format!("round {round}, {} records in the log", number(f64::from(records), 0));
    bench.point(&what, |dir| {
        let mut quorum = bench.quorum(dir, 3, "")?;
        fill(&mut quorum, records)?;
        let bytes = log_bytes(&quorum.node(1)?.log_dir())?;
        // What filled the log was killed; the first start ends in good order before the second.
        let [first, second] = EPOCHS;
        let after_kill = start::measure(&bench.binary, &quorum, first, End::Terminate)?;
        let after_term = start::measure(&bench.binary, &quorum, second, End::Kill)?;
        let load = Load {
            spec: "inflight=64,size=256".to_owned(),
            window: bench.plan.window,
            warm_up: bench.plan.warm_up,
            rest: Some(SETTLING),
        };
        let measured = load::measure(&mut quorum, &load, None)?;
        let figures = format!(
            "{}, a start takes {:.1} ms after kill -9 and {:.1} ms after SIGTERM, {:.1} MiB after it, {:.1} MiB idle after the load",
            measured.figures(),
            after_kill.vote_ms,
            after_term.vote_ms,
            after_kill.mib,
            measured.rested_mib
        );
        let row = vec![
            measured.commits_per_second,
            measured.p50_ms,
            measured.p99_ms,
            measured.leader_mib,
            after_kill.vote_ms,
            after_term.vote_ms,
            after_kill.mib,
            measured.rested_mib,
            bytes as f64 / 1e6,
            measured.failed as f64,
        ];
        Ok((Sample { x: f64::from(records), figures: row }, figures))
    })
}

fn log_bytes(dir: &std::path::Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "log") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Formatted, empty, alone.
fn empty(bench: &Bench) -> Result<Vec<Target>> {
    let mut starts: Vec<Start> = Vec::new();
    for round in 1..=bench.plan.starts {
        let start = bench.point(&format!("start {round} of an empty node"), |dir| {
            let quorum = bench.quorum(dir, 3, "")?;
            let start = start::measure(&bench.binary, &quorum, EPOCHS[0], End::Kill)?;
            Ok((start, format!("{:.1} ms to its first vote, {:.1} MiB", start.vote_ms, start.mib)))
        })?;
        starts.push(start);
    }
    let vote = median(starts.iter().map(|start| start.vote_ms).collect());
    let vote = vote.context("no start was measured")?;
    Ok(vec![Target {
        what: "start of an empty node to its first vote",
        wanted: "under 50 ms",
        found: Some((format!("{vote:.1} ms"), vote < START_MS)),
    }])
}

/// Three empty nodes, of which one leads.
fn idle(bench: &Bench) -> Result<Target> {
    let mb = bench.point("three idle nodes", |dir| {
        let mut quorum = bench.quorum(dir, 3, "")?;
        for id in ids(&quorum) {
            quorum.start(id)?;
        }
        quorum.wait_for_leader(0)?;
        thread::sleep(SETTLING);
        let most = quorum.most_resident_kib()? as f64 * 1024.0 / 1e6;
        quorum.kill_all();
        Ok((most, format!("{most:.1} MB, the most of any")))
    })?;
    Ok(Target {
        what: "memory of an idle node",
        wanted: "under 20 MB",
        found: Some((format!("{mb:.1} MB"), mb < IDLE_MB)),
    })
}
