//! Observers of one leader: what they cost its commits.
//!
//! "Commits within 25 % of those without" is read as what one sees who appends to a leader with and without observers in
//! the same round: commits/s with 64 records in flight, and with one. All share the machine, so the observers' own
//! clients count against the leader there. At a rate that the leader sustains either way commits/s can hardly fall:
//! there the latency has a bound too, and so have what the last observer lacks and how long any waits.

use std::fmt::Write as _;

use anyhow::Result;

use super::crowd::{self, Crowd};
use super::load::{self, Load, Measured};
use super::table::{Axis, Column, NOT_MEASURED, Panel, Plot, Sample, Table, Target, number};
use super::{Bench, Found, Pressure};

/// Of the commits without observers.
const WITHIN: f64 = 0.75;
/// The observers that the target is about.
const MANY: f64 = 2000.0;

/// At a rate, of the p99 without observers: so many times, and so much more.
const P99_TIMES: f64 = 2.0;
const P99_MORE_MS: f64 = 5.0;
/// At a rate: how old, in seconds, the first record may be that the last observer lacks.
const BEHIND_SECONDS: f64 = 2.0;
/// At a rate: how long no observer may wait for an answer.
const WAIT_MS: f64 = 2000.0;

/// Columns that targets are about.
const RATIO: usize = 1;
const P99: usize = 3;
const TIMED_OUT: usize = 9;
const WAIT: usize = 10;
const BEHIND: usize = 11;
const FAILED: usize = 12;

/// All come from one address.
const PROPERTIES: &str = "max.connections=8192\nmax.connections.per.ip=8192\n";

fn columns() -> Vec<Column> {
    vec![
        Column::new("commits/s", 0),
        Column::new("of those without", 2),
        Column::new("p50 ms", 2),
        Column::new("p99 ms", 2),
        Column::new("leader % of a core", 0),
        Column::new("leader MiB", 1),
        Column::new("answers/s to observers", 0),
        Column::new("observers' clients % of a core", 0),
        Column::new("turned away/s", 0),
        Column::most("of them after 2 s", 2),
        Column::most("longest wait of an observer, ms", 0),
        Column::new("records that the last observer lacks", 0),
        Column::most("failed", 0),
    ]
}

const IN_A_LOOP: &str = "at least 0.75 of those without";
const AT_A_RATE: &str = "at least 0.75 of those without, p99 at most twice as long and 5 ms, the last lacks less than 2 s of records, none waits 2 s";

/// A load, and what is shown of it.
struct Shown {
    name: String,
    spec: String,
    /// Records a second, if they come at a rate.
    rate: Option<u32>,
    target: (&'static str, &'static str),
    plot: (&'static str, &'static str),
}

fn shown(load: Pressure, rate: u32) -> Shown {
    match load {
        Pressure::Closed => Shown {
            name: "64 in flight".to_owned(),
            spec: "inflight=64,size=256".to_owned(),
            rate: None,
            target: ("commits/s with 2,000 observers, 64 in flight", IN_A_LOOP),
            plot: ("growth-observers-closed", "Observers of one leader (64 in flight)"),
        },
        Pressure::One => Shown {
            name: "1 in flight".to_owned(),
            spec: "inflight=1,size=256".to_owned(),
            rate: None,
            target: ("commits/s with 2,000 observers, 1 in flight", IN_A_LOOP),
            plot: ("growth-observers-one", "Observers of one leader (1 in flight)"),
        },
        Pressure::Rate => Shown {
            name: format!("{} records/s", number(f64::from(rate), 0)),
            spec: format!("rate={rate},size=256"),
            rate: Some(rate),
            target: ("commits/s with 2,000 observers, fixed rate", AT_A_RATE),
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
                let without = *without.get_or_insert(commits);
                let figures = figures(&measured, commits / without);
                samples.push(Sample { x: f64::from(*count), figures });
            }
        }
        let table = table(&shown, samples);
        let (what, wanted) = shown.target;
        found.targets.push(Target { what, wanted, found: judge(&table, shown.rate) });
        found.tables.push(table);
    }
    Ok(found)
}

/// What is found with many observers, and whether it is as wanted; none if so many were not asked for.
fn judge(table: &Table, rate: Option<u32>) -> Option<(String, bool)> {
    let is_asked = table.points().contains(&MANY);
    is_asked.then(|| found(table, rate).unwrap_or_else(|| (NOT_MEASURED.to_owned(), false)))
}

/// None where a figure is missing.
fn found(table: &Table, rate: Option<u32>) -> Option<(String, bool)> {
    let ratio = table.median(MANY, RATIO)?;
    let (mut found, mut is_met) = (format!("{ratio:.2}"), ratio >= WITHIN);
    if let Some(rate) = rate {
        let (with, without) = (table.median(MANY, P99)?, table.median(0.0, P99)?);
        let behind = table.median(MANY, BEHIND)? / f64::from(rate);
        let (timed_out, wait) = (table.most(MANY, TIMED_OUT)?, table.most(MANY, WAIT)?);
        is_met &= with <= without * P99_TIMES + P99_MORE_MS && behind < BEHIND_SECONDS;
        is_met &= timed_out == 0.0 && wait < WAIT_MS;
        let _ = write!(
            found,
            ", p99 {with:.2} ms, without {without:.2} ms, the last lacks {behind:.2} s, the longest wait {wait:.0} ms"
        );
        if timed_out > 0.0 {
            let _ = write!(found, ", {timed_out:.2} Fetches/s without an answer in 2 s");
        }
    }
    let failed = table.most(MANY, FAILED)? + table.most(0.0, FAILED)?;
    if failed > 0.0 {
        is_met = false;
        let _ = write!(found, ", {} records failed", number(failed, 0));
    }
    Some((found, is_met))
}

fn point(bench: &Bench, what: &str, spec: &str, crowd: Crowd) -> Result<Measured> {
    let load = Load {
        spec: spec.to_owned(),
        window: bench.plan.window,
        warm_up: bench.plan.gathering,
        rest: None,
    };
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
        served(crowd::Served::timed_out),
        served(crowd::Served::longest_wait_ms),
        served(crowd::Served::behind),
        measured.failed as f64,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One round without observers and one with many, of which some figures differ.
    fn judged(rate: Option<u32>, with: &[(usize, f64)]) -> Option<(String, bool)> {
        let mut figures = vec![0.0; columns().len()];
        figures[P99] = 3.0;
        let mut samples = vec![Sample { x: 0.0, figures: figures.clone() }];
        figures[RATIO] = 1.0;
        for (at, figure) in with {
            figures[*at] = *figure;
        }
        samples.push(Sample { x: MANY, figures });
        judge(&table(&shown(Pressure::Closed, 1000), samples), rate)
    }

    #[test]
    fn targets_are_missed_by_each_of_their_figures() {
        let is_met = |rate, with: &[(usize, f64)]| judged(rate, with).expect("measured").1;
        for rate in [None, Some(1000)] {
            assert!(is_met(rate, &[(RATIO, WITHIN)]));
            assert!(!is_met(rate, &[(RATIO, 0.74)]));
            assert!(!is_met(rate, &[(FAILED, 1.0)]));
            let missed = Some((NOT_MEASURED.to_owned(), false));
            assert_eq!(judged(rate, &[(RATIO, f64::NAN)]), missed);
        }
        assert!(is_met(Some(1000), &[(P99, 11.0), (BEHIND, 1999.0)]));
        assert!(!is_met(Some(1000), &[(P99, 11.1)]));
        assert!(!is_met(Some(1000), &[(BEHIND, 2000.0)]));
        assert!(is_met(Some(1000), &[(WAIT, 1999.0)]));
        assert!(!is_met(Some(1000), &[(WAIT, 2000.0)]));
        assert!(!is_met(Some(1000), &[(TIMED_OUT, 0.1)]));
        assert!(is_met(None, &[(P99, 100.0), (BEHIND, 1e6), (WAIT, 1e4), (TIMED_OUT, 1.0)]));
    }

    #[test]
    fn who_asks_for_fewer_observers_has_no_target() {
        let few = Sample { x: 10.0, figures: vec![1.0; columns().len()] };
        assert_eq!(judge(&table(&shown(Pressure::Rate, 1000), vec![few]), Some(1000)), None);
    }

    #[test]
    fn the_columns_of_targets_are_where_they_are_said_to_be() {
        let names = [RATIO, P99, TIMED_OUT, WAIT, BEHIND, FAILED].map(|at| columns()[at].name);
        let wanted = [
            "of those without",
            "p99 ms",
            "of them after 2 s",
            "longest wait of an observer, ms",
            "records that the last observer lacks",
            "failed",
        ];
        assert_eq!(names, wanted);
    }
}
