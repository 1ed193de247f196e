//! Voters: what each more of them costs a commit.

use anyhow::Result;

use super::load::{self, Load};
use super::table::{Axis, Column, Panel, Plot, Sample, Table, number};
use super::{Bench, Found};

const COLUMNS: [Column; 7] = [
    Column::new("commits/s", 0),
    Column::new("p50 ms", 2),
    Column::new("p99 ms", 2),
    Column::new("CPU us/commit, all voters", 1),
    Column::new("leader % of a core", 0),
    Column::new("leader MiB", 1),
    Column::most("failed", 0),
];

pub(super) fn run(bench: &Bench) -> Result<Found> {
    let load = Load {
        spec: "inflight=64,size=256".to_owned(),
        window: bench.plan.window,
        warm_up: bench.plan.warm_up,
        rest: None,
    };
    let mut samples = Vec::new();
    for round in 1..=bench.plan.rounds {
        for voters in bench.plan.voters.clone() {
            let what = format!("round {round}, {} voters", number(f64::from(voters), 0));
            let measured = bench.point(&what, |dir| {
                let measured = load::measure(&mut bench.quorum(dir, voters, "")?, &load, None)?;
                let figures = measured.figures();
                Ok((measured, figures))
            })?;
            let figures = vec![
                measured.commits_per_second,
                measured.p50_ms,
                measured.p99_ms,
                measured.cpu_us_per_commit,
                measured.leader_cpu_percent,
                measured.leader_mib,
                measured.failed as f64,
            ];
            samples.push(Sample { x: f64::from(voters), figures });
        }
    }
    let table = Table {
        title: "256-byte records, 64 in flight, by voters, which all share one machine.".to_owned(),
        x: Axis { name: "voters", is_log: false },
        columns: COLUMNS.into(),
        samples,
        plots: vec![Plot {
            name: "growth-voters",
            title: "Commits by voters (64 in flight, one machine)",
            panels: vec![
                Panel {
                    y: Axis { name: "commits/s", is_log: false },
                    series: vec![(0, "commits/s")],
                },
                Panel {
                    y: Axis { name: "latency, ms", is_log: false },
                    series: vec![(1, "p50"), (2, "p99")],
                },
                Panel {
                    y: Axis { name: "CPU us/commit", is_log: false },
                    series: vec![(3, "all voters")],
                },
            ],
        }],
    };
    Ok(Found { tables: vec![table], targets: Vec::new() })
}
