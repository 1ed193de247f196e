//! Bytes of a record: where commits/s end and bytes/s begin to tell.

use anyhow::Result;

use super::load::{self, Load};
use super::table::{Axis, Column, Panel, Plot, Sample, Table, number};
use super::{Bench, Found};

const COLUMNS: [Column; 8] = [
    Column::new("in flight", 0),
    Column::new("commits/s", 0),
    Column::new("MB/s", 1),
    Column::new("p50 ms", 2),
    Column::new("p99 ms", 2),
    Column::new("leader % of a core", 0),
    Column::new("leader MiB", 1),
    Column::most("failed", 0),
];

const IN_FLIGHT: u32 = 64;
/// A leader holds 64 MiB that are not committed; half of that leaves room for what records bear beside their bytes.
const MAX_BYTES_IN_FLIGHT: u32 = 32 << 20;
/// A batch has 8 MiB at the most.
const MAX_BATCH_BYTES: u32 = 4 << 20;

pub(super) fn run(bench: &Bench) -> Result<Found> {
    let mut samples = Vec::new();
    for round in 1..=bench.plan.rounds {
        for size in bench.plan.sizes.clone() {
            samples.push(point(bench, round, size)?);
        }
    }
    let table = Table {
        title: "Three voters, by bytes of a record.".to_owned(),
        x: Axis { name: "record bytes", is_log: true },
        columns: COLUMNS.into(),
        samples,
        plots: vec![Plot {
            name: "growth-sizes",
            title: "Commits by record size (64 in flight, 32 MiB at most)",
            panels: vec![
                Panel {
                    y: Axis { name: "commits/s", is_log: true },
                    series: vec![(1, "commits/s")],
                },
                Panel { y: Axis { name: "MB/s", is_log: true }, series: vec![(2, "payload")] },
                Panel {
                    y: Axis { name: "latency, ms", is_log: true },
                    series: vec![(3, "p50"), (4, "p99")],
                },
            ],
        }],
    };
    Ok(Found { tables: vec![table], targets: Vec::new() })
}

fn point(bench: &Bench, round: u32, size: u32) -> Result<Sample> {
    let in_flight = IN_FLIGHT.min(MAX_BYTES_IN_FLIGHT / size);
    let batch = (MAX_BATCH_BYTES / size).clamp(1, IN_FLIGHT);
    let load = Load {
        spec: format!("inflight={in_flight},size={size},batch={batch}"),
        window: bench.plan.window,
        warm_up: bench.plan.warm_up,
        rest: None,
    };
    let what = format!("round {round}, records of {} bytes", number(f64::from(size), 0));
    let measured = bench.point(&what, |dir| {
        let measured = load::measure(&mut bench.quorum(dir, 3, "")?, &load, None)?;
        let figures = measured.figures();
        Ok((measured, figures))
    })?;
    let figures = vec![
        f64::from(in_flight),
        measured.commits_per_second,
        measured.commits_per_second * f64::from(size) / 1e6,
        measured.p50_ms,
        measured.p99_ms,
        measured.leader_cpu_percent,
        measured.leader_mib,
        measured.failed as f64,
    ];
    Ok(Sample { x: f64::from(size), figures })
}
