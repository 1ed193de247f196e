//! Tables of medians, and what the targets come to. All ratios are taken within a round, and then their median.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::sample::{Load, Sample, grouped};
use super::who::Who;

/// A sample and where it belongs.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) who: Who,
    pub(super) load: Load,
    pub(super) round: u32,
    pub(super) sample: Sample,
}

/// The highest rate that a system keeps up with, if any of those offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    pub(super) who: Who,
    pub(super) rate: u32,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) measured: Vec<Measured>,
    pub(super) ceilings: Vec<Ceiling>,
}

/// One figure of a sample.
type Figure = fn(&Sample) -> Option<f64>;

const COMMITS: Figure = |sample| Some(sample.commits_per_second);
const P50: Figure = |sample| sample.p50_us;
const P75: Figure = |sample| sample.p75_us;
const P99: Figure = |sample| sample.p99_us;
const P999: Figure = |sample| sample.p999_us;
const PER_FSYNC: Figure = |sample| sample.records_per_fsync;
const CPU: Figure = |sample| sample.cpu_us_per_commit;
const MEMORY: Figure = |sample| sample.memory_mib;

/// A column of a table.
struct Column {
    name: &'static str,
    figure: Figure,
    shown: fn(f64) -> String,
}

const CLOSED: [Column; 6] = [
    Column { name: "commits/s", figure: COMMITS, shown: grouped },
    Column { name: "p50 ms", figure: P50, shown: in_millis },
    Column { name: "p99 ms", figure: P99, shown: in_millis },
    Column { name: "records/fsync", figure: PER_FSYNC, shown: one_decimal },
    Column { name: "CPU us/commit", figure: CPU, shown: one_decimal },
    Column { name: "memory MiB", figure: MEMORY, shown: grouped },
];

const OPEN: [Column; 7] = [
    Column { name: "commits/s", figure: COMMITS, shown: grouped },
    Column { name: "p50 ms", figure: P50, shown: in_millis },
    Column { name: "p75 ms", figure: P75, shown: in_millis },
    Column { name: "p99 ms", figure: P99, shown: in_millis },
    Column { name: "p999 ms", figure: P999, shown: in_millis },
    Column { name: "CPU us/commit", figure: CPU, shown: one_decimal },
    Column { name: "memory MiB", figure: MEMORY, shown: grouped },
];

fn in_millis(micros: f64) -> String {
    format!("{:.2}", micros / 1000.0)
}

fn one_decimal(number: f64) -> String {
    format!("{number:.1}")
}

/// What a figure of one system is to be, as a multiple of another's.
struct Target {
    what: &'static str,
    figure: Figure,
    load: Load,
    over: Who,
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn holds(self, ratio: f64) -> bool {
        match self {
            Bound::AtMost(most) => ratio <= most,
            Bound::AtLeast(least) => ratio >= least,
        }
    }

    fn text(self) -> String {
        match self {
            Bound::AtMost(most) => format!("at most {most}"),
            Bound::AtLeast(least) => format!("at least {least}"),
        }
    }
}

fn targets() -> [Target; 8] {
    use Bound::{AtLeast, AtMost};
    use Load::{Closed, Open};
    use Who::{Etcd, Floor, KafkaNoLinger};
    let target = |what, figure, load, over, bound| Target { what, figure, load, over, bound };
    [
        target("p50", P50, Closed(1), Floor, AtMost(1.5)),
        target("commits/s", COMMITS, Closed(64), Floor, AtLeast(0.5)),
        target("commits/s", COMMITS, Closed(256), Floor, AtLeast(0.5)),
        target("p99", P99, Closed(64), Floor, AtMost(2.0)),
        target("commits/s", COMMITS, Closed(64), Etcd, AtLeast(10.0)),
        target("CPU/commit", CPU, Closed(64), Etcd, AtMost(0.1)),
        target("p75", P75, Open(100), KafkaNoLinger, AtMost(0.2)),
        target("p99", P99, Open(20_000), KafkaNoLinger, AtMost(0.05)),
    ]
}

/// Quorate's ceiling over Kafka's.
const CEILING_RATIO: f64 = 10.0;

impl Results {
    /// All tables, in Markdown.
    pub(super) fn tables(&self) -> String {
        let mut text = String::new();
        let is_closed = |load: &Load| matches!(load, Load::Closed(_));
        self.table(&mut text, "Closed loop", &CLOSED, is_closed);
        self.table(&mut text, "Open loop", &OPEN, |load| !is_closed(load));
        self.ceiling_table(&mut text);
        self.target_table(&mut text);
        text
    }

    /// How many of the targets that were measured are met.
    pub(super) fn verdict(&self) -> String {
        let lines = self.targets();
        let met = lines.iter().filter(|line| line.met).count();
        format!("{met} of {} targets met, {} samples", lines.len(), self.measured.len())
    }

    /// Every sample.
    pub(super) fn json(&self) -> Value {
        let samples: Vec<Value> = self
            .measured
            .iter()
            .map(|Measured { who, load, round, sample }| {
                let (kind, number) = match load {
                    Load::Closed(in_flight) => ("inFlight", in_flight),
                    Load::Open(rate) => ("rate", rate),
                };
                json!({"system": who.name(), kind: number, "round": round, "figures": sample.json()})
            })
            .collect();
        let ceilings = self
            .ceilings
            .iter()
            .map(|ceiling| json!({"system": ceiling.who.name(), "rate": ceiling.rate}));
        json!({"samples": samples, "ceilings": ceilings.collect::<Vec<_>>()})
    }

    fn table(
        &self,
        text: &mut String,
        title: &str,
        columns: &[Column],
        wanted: impl Fn(&Load) -> bool,
    ) {
        let mut rows: Vec<(Load, Who)> = self
            .measured
            .iter()
            .filter(|measured| wanted(&measured.load))
            .map(|measured| (measured.load, measured.who))
            .collect();
        rows.sort_unstable();
        rows.dedup();
        if rows.is_empty() {
            return;
        }
        let has_floor = rows.iter().any(|(_, who)| *who == Who::Floor);
        let mut names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        if has_floor {
            names.extend(["commits/s, of the floor's", "p50, of the floor's"]);
        }
        let _ = writeln!(text, "### {title}\n\n| load | system | {} |", names.join(" | "));
        let _ = writeln!(text, "|---|---|{}", "--:|".repeat(names.len()));
        for (load, who) in rows {
            let mut cells: Vec<String> = columns
                .iter()
                .map(|column| cell(&self.figures(who, load, column.figure), column.shown))
                .collect();
            if has_floor {
                cells.extend([COMMITS, P50].map(|figure| {
                    cell(&self.ratios(who, Who::Floor, load, figure), |ratio| format!("{ratio:.2}"))
                }));
            }
            let _ = writeln!(text, "| {load} | {} | {} |", who.name(), cells.join(" | "));
        }
        text.push('\n');
    }

    fn ceiling_table(&self, text: &mut String) {
        if self.ceilings.is_empty() {
            return;
        }
        let _ = writeln!(text, "### Ceiling\n\n| system | highest rate kept up with |\n|---|--:|");
        for Ceiling { who, rate } in &self.ceilings {
            let _ = writeln!(text, "| {} | {} records/s |", who.name(), grouped(f64::from(*rate)));
        }
        text.push('\n');
    }

    fn target_table(&self, text: &mut String) {
        let lines = self.targets();
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "### Targets\n\n| Quorate over | figure | target | measured | met |\n|---|---|---|--:|---|"
        );
        for Line { over, what, target, measured, met } in lines {
            let met = if met { "yes" } else { "**no**" };
            let _ = writeln!(text, "| {over} | {what} | {target} | {measured} | {met} |");
        }
        text.push('\n');
    }

    /// The targets for which both sides were measured.
    fn targets(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = targets()
            .iter()
            .filter_map(|target| {
                let ratios = self.ratios(Who::Quorate, target.over, target.load, target.figure);
                let middle = median(&ratios)?;
                Some(Line {
                    over: target.over.name(),
                    what: format!("{}, {}", target.what, target.load),
                    target: target.bound.text(),
                    measured: cell(&ratios, |ratio| format!("{ratio:.3}")),
                    met: target.bound.holds(middle),
                })
            })
            .collect();
        let ceiling = |who| {
            let found = self.ceilings.iter().find(|ceiling| ceiling.who == who);
            found.map(|ceiling| f64::from(ceiling.rate)).filter(|rate| *rate > 0.0)
        };
        if let (Some(ours), Some(theirs)) = (ceiling(Who::Quorate), ceiling(Who::KafkaNoLinger)) {
            let bound = Bound::AtLeast(CEILING_RATIO);
            lines.push(Line {
                over: Who::KafkaNoLinger.name(),
                what: "highest rate kept up with".to_owned(),
                target: bound.text(),
                measured: format!("{:.1}", ours / theirs),
                met: bound.holds(ours / theirs),
            });
        }
        lines
    }

    fn figures(&self, who: Who, load: Load, figure: Figure) -> Vec<f64> {
        let of = self.measured.iter().filter(|one| one.who == who && one.load == load);
        of.filter_map(|measured| figure(&measured.sample)).collect()
    }

    /// One system's figure over another's, round by round.
    fn ratios(&self, who: Who, over: Who, load: Load, figure: Figure) -> Vec<f64> {
        let of = |who: Who, round: u32| {
            let found = self
                .measured
                .iter()
                .find(|one| one.who == who && one.load == load && one.round == round);
            found.and_then(|measured| figure(&measured.sample))
        };
        let rounds = self.measured.iter().map(|measured| measured.round).max().unwrap_or(0);
        (1..=rounds)
            .filter_map(|round| {
                let (upper, lower) = (of(who, round)?, of(over, round)?);
                (lower > 0.0).then(|| upper / lower)
            })
            .collect()
    }
}

/// A line of the table of targets.
struct Line {
    over: &'static str,
    what: String,
    target: String,
    measured: String,
    met: bool,
}

/// The median, and the least and most if there are several.
fn cell(figures: &[f64], shown: impl Fn(f64) -> String) -> String {
    let Some(middle) = median(figures) else { return "-".to_owned() };
    if figures.len() == 1 {
        return shown(middle);
    }
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} ({} to {})", shown(middle), shown(least), shown(most))
}

/// The middle one, or what lies between the two in the middle.
pub(super) fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        1 => Some(upper),
        _ => Some((sorted.get(sorted.len() / 2 - 1)? + upper) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(who: Who, round: u32, commits_per_second: f64) -> Measured {
        let sample = Sample {
            commits_per_second,
            p50_us: Some(100_000.0 / commits_per_second),
            p75_us: None,
            p99_us: None,
            p999_us: None,
            records_per_fsync: None,
            cpu_us_per_commit: None,
            memory_mib: Some(1.0),
            failed: 0,
        };
        Measured { who, load: Load::Closed(64), round, sample }
    }

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let results = Results {
            // The machine was ten times slower in the second round.
            measured: vec![
                measured(Who::Floor, 1, 1000.0),
                measured(Who::Quorate, 1, 600.0),
                measured(Who::Floor, 2, 100.0),
                measured(Who::Quorate, 2, 60.0),
                measured(Who::Quorate, 3, 5.0),
            ],
            ceilings: Vec::new(),
        };
        let text = results.tables();
        let row = "| 64 in flight | Quorate | 60 (5 to 600) |";
        assert!(text.contains(row), "{text}");
        let target =
            "| floor | commits/s, 64 in flight | at least 0.5 | 0.600 (0.600 to 0.600) | yes |";
        assert!(text.contains(target), "{text}");
        assert!(results.verdict().starts_with("1 of 1 targets met"), "{}", results.verdict());
    }

    #[test]
    fn a_ceiling_counts_as_a_target() {
        let ceilings = [(Who::Quorate, 500), (Who::KafkaNoLinger, 100)];
        let ceilings = ceilings.map(|(who, rate)| Ceiling { who, rate }).to_vec();
        let results = Results { measured: Vec::new(), ceilings };
        assert!(results.tables().contains("| at least 10 | 5.0 | **no** |"));
        assert!(results.verdict().starts_with("0 of 1 targets"));
    }
}
