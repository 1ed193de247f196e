//! Observers of one leader: what they cost its commits.
//!
//! "Commits within 25 % of those without" is read as what one sees who appends to a leader with and without observers in
//! the same round: commits/s in the closed loop. All share the machine, so the observers' own clients count
//! against the leader there. At a rate that the leader sustains either way, the latency tells what observers cost.

use anyhow::Result;

use super::crowd::{self, Crowd};
use super::load::{self, Load, Measured};
use super::table::{Axis, Column, Panel, Plot, Sample, Table, Target, number};
use super::{Bench, Found, Pressure};

/// Of the commits without observers.
const WITHIN: f64 = 0.75;
/// The observers that the target is about.
const MANY: f64 = 2000.0;

/// Its column.
const RATIO: usize = 1;

/// All come from one address.
const PROPERTIES: &str = "max.connections=8192\nmax.connections.per.ip=8192\n";

fn columns() -> Vec<Column> {
    vec![
        Column { name: "commits/s", decimals: 0 },
        Column { name: "of those without", decimals: 2 },
        Column { name: "p50 ms", decimals: 2 },
        Column { name: "p99 ms", decimals: 2 },
        Column { name: "leader % of a core", decimals: 0 },
        Column { name: "leader MiB", decimals: 1 },
        Column { name: "answers/s to observers", decimals: 0 },
        Column { name: "observers' clients % of a core", decimals: 0 },
        Column { name: "turned away/s", decimals: 0 },
        Column { name: "records that the last observer lacks", decimals: 0 },
    ]
}

/// A load, and what is shown of it.
struct Shown {
    name: String,
    spec: String,
    target: &'static str,
    plot: (&'static str, &'static str),
}

fn shown(load: Pressure, rate: u32) -> Shown {
    match load {
        Pressure::Closed => Shown {
            name: "64 in flight".to_owned(),
            spec: "inflight=64,size=256".to_owned(),
            target: "commits/s with 2,000 observers, closed loop",
            plot: ("growth-observers-closed", "Observers of one leader (64 in flight)"),
        },
        Pressure::Rate => Shown {
            name: format!("{} records/s", number(f64::from(rate), 0)),
            spec: format!("rate={rate},size=256"),
            target: "commits/s with 2,000 observers, fixed rate",
            plot: ("growth-observers-rate", "Observers of one leader (at a fixed rate)"),
        },
    }
}

pub(super) fn run(bench: &Bench) -> Result<Found> {
    let binary = crowd::build()?;
    let counts: Vec<u32> = std::iter::once(0).chain(bench.plan.observers.iter().copied()).collect();
    let mut found = Found::default();
    for load in &bench.plan.loads {
        let shown = shown(*load, bench.plan.rate);
        let mut samples = Vec::new();
        for round in 1..=bench.plan.rounds {
            let mut without = None;
            for count in &counts {
                let what = format!("round {round}, {}, {count} observers", shown.name);
                let crowd = Crowd { binary: binary.clone(), count: *count };
                let measured = point(bench, &what, &shown.spec, crowd)?;
                let commits = measured.commits_per_second;
                let ratio = commits / *without.get_or_insert(commits);
                samples.push(Sample { x: f64::from(*count), figures: figures(&measured, ratio) });
            }
        }
        let table = table(&shown, samples);
        if let Some(ratio) = table.median(MANY, RATIO) {
            found.targets.push(Target {
                what: shown.target,
                wanted: "at least 0.75 of those without",
                measured: format!("{ratio:.2}"),
                is_met: ratio >= WITHIN,
            });
        }
        found.tables.push(table);
    }
    Ok(found)
}

fn point(bench: &Bench, what: &str, spec: &str, crowd: Crowd) -> Result<Measured> {
    let load =
        Load { spec: spec.to_owned(), window: bench.plan.window, warm_up: bench.plan.gathering };
    bench.point(what, |dir| {
        let mut quorum = bench.quorum(dir, 3, PROPERTIES)?;
        let crowd = (crowd.count > 0).then_some(crowd);
        let measured = load::measure(&mut quorum, &load, crowd.as_ref())?;
        let served = measured
            .served
            .as_ref()
            .map_or(String::new(), |served| format!("; {}", served.figures()));
        let figures = format!("{}{served}", measured.figures());
        Ok((measured, figures))
    })
}

fn figures(measured: &Measured, ratio: f64) -> Vec<f64> {
    let served = |figure: fn(&crowd::Served) -> f64| measured.served.as_ref().map_or(0.0, figure);
    vec![
        measured.commits_per_second,
        ratio,
        measured.p50_ms,
        measured.p99_ms,
        measured.leader_cpu_percent,
        measured.leader_mib,
        served(crowd::Served::answers),
        served(crowd::Served::cpu_percent),
        served(crowd::Served::turned_away),
        served(crowd::Served::behind),
    ]
}

fn table(shown: &Shown, samples: Vec<Sample>) -> Table {
    let (name, title) = shown.plot;
    Table {
        title: format!(
            "Three voters, 256-byte records, {}, by observers of the leader.",
            shown.name
        ),
        x: Axis { name: "observers", is_log: false },
        columns: columns(),
        samples,
        plots: vec![Plot {
            name,
            title,
            panels: vec![
                Panel {
                    y: Axis { name: "commits/s", is_log: false },
                    series: vec![(0, "commits/s")],
                },
                Panel {
                    y: Axis { name: "latency, ms", is_log: false },
                    series: vec![(2, "p50"), (3, "p99")],
                },
                Panel {
                    y: Axis { name: "% of a core", is_log: false },
                    series: vec![(4, "leader"), (7, "all observers' clients")],
                },
                Panel {
                    y: Axis { name: "memory, MiB", is_log: false },
                    series: vec![(5, "leader")],
                },
            ],
        }],
    }
}
