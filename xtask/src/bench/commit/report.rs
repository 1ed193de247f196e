//! Tables of medians. All ratios are taken within a round, and then their median.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::plan::{Plan, Row};
use super::sample::{Load, Sample, grouped};
use super::targets::{self, Ceiling, Line};
use super::who::Who;

/// A sample and where it belongs.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) who: Who,
    pub(super) load: Load,
    pub(super) round: u32,
    pub(super) sample: Sample,
}

/// Everything that was measured, and was to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) asked: Vec<Row>,
    pub(super) measured: Vec<Measured>,
    pub(super) asked_ceilings: Vec<Who>,
    pub(super) ceilings: Vec<Ceiling>,
}

/// One figure of a sample.
pub(super) type Figure = fn(&Sample) -> Option<f64>;

pub(super) const COMMITS: Figure = |sample| Some(sample.commits_per_second);
pub(super) const P50: Figure = |sample| sample.p50_us;
pub(super) const P75: Figure = |sample| sample.p75_us;
pub(super) const P99: Figure = |sample| sample.p99_us;
const P999: Figure = |sample| sample.p999_us;
const PER_FSYNC: Figure = |sample| sample.records_per_fsync;
pub(super) const CPU: Figure = |sample| sample.cpu_us_per_commit;
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

const OPEN: [Column; 8] = [
    Column { name: "commits/s", figure: COMMITS, shown: grouped },
    Column { name: "p50 ms", figure: P50, shown: in_millis },
    Column { name: "p75 ms", figure: P75, shown: in_millis },
    Column { name: "p99 ms", figure: P99, shown: in_millis },
    Column { name: "p999 ms", figure: P999, shown: in_millis },
    Column { name: "records/fsync", figure: PER_FSYNC, shown: one_decimal },
    Column { name: "CPU us/commit", figure: CPU, shown: one_decimal },
    Column { name: "memory MiB", figure: MEMORY, shown: grouped },
];

fn in_millis(micros: f64) -> String {
    format!("{:.2}", micros / 1000.0)
}

fn one_decimal(number: f64) -> String {
    format!("{number:.1}")
}

/// What is told of the floor too, as a multiple of it.
const OF_THE_FLOOR: [(&str, Figure); 3] = [
    ("commits/s, of the floor's", COMMITS),
    ("p50, of the floor's", P50),
    ("p99, of the floor's", P99),
];

impl Results {
    /// None of what a plan asks for.
    pub(super) fn of(plan: &Plan) -> Results {
        Results {
            asked: plan.rows.clone(),
            asked_ceilings: plan.ceilings.clone(),
            ..Results::default()
        }
    }

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

    /// How many of the targets that were asked for are met, and which are not.
    pub(super) fn verdict(&self) -> String {
        let lines = targets::judge(self);
        let missed = lines.iter().filter(|line| !line.is_met);
        let missed: Vec<String> = missed
            .map(|Line { who, over, what, .. }| format!("{what}, {who} over {over}"))
            .collect();
        let (samples, met) = (self.measured.len(), lines.len() - missed.len());
        let mut text = format!("{samples} samples, {met} of {} targets met", lines.len());
        if !missed.is_empty() {
            let _ = write!(text, ", missed: {}", missed.join("; "));
        }
        text
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
        let ceilings = self.ceilings.iter().map(|Ceiling { who, found, trial, held, hold }| {
            json!({
                "system": who.name(),
                "found": found,
                "trialSeconds": trial.as_secs_f64(),
                "held": held,
                "holdSeconds": hold.as_secs_f64(),
            })
        });
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
            names.extend(OF_THE_FLOOR.map(|(name, _)| name));
        }
        names.push("failed");
        let _ = writeln!(text, "### {title}\n\n| load | system | {} |", names.join(" | "));
        let _ = writeln!(text, "|---|---|{}", "--:|".repeat(names.len()));
        for (load, who) in rows {
            let mut cells: Vec<String> = columns
                .iter()
                .map(|column| cell(&self.figures(who, load, column.figure), column.shown))
                .collect();
            if has_floor {
                cells.extend(OF_THE_FLOOR.map(|(_, figure)| {
                    cell(&self.ratios(who, Who::Floor, load, figure), |ratio| format!("{ratio:.2}"))
                }));
            }
            let failed: u64 = self.samples(who, load).map(|sample| sample.failed).sum();
            cells.push(failed.to_string());
            let _ = writeln!(text, "| {load} | {} | {} |", who.name(), cells.join(" | "));
        }
        text.push('\n');
    }

    fn ceiling_table(&self, text: &mut String) {
        if self.ceilings.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "### Ceiling\n\n| system | found, records/s | in trials of | held, records/s | for |\n|---|--:|--:|--:|--:|"
        );
        for Ceiling { who, found, trial, held, hold } in &self.ceilings {
            let [found, held] = [found, held].map(|rate| grouped(f64::from(*rate)));
            let [trial, hold] = [trial, hold].map(|length| format!("{} s", length.as_secs()));
            let _ = writeln!(text, "| {} | {found} | {trial} | {held} | {hold} |", who.name());
        }
        text.push('\n');
    }

    fn target_table(&self, text: &mut String) {
        let lines = targets::judge(self);
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "### Targets\n\n| system | over | figure | target | measured | met |\n|---|---|---|---|--:|---|"
        );
        for Line { who, over, what, bound, measured, is_met } in lines {
            let met = if is_met { "yes" } else { "**no**" };
            let _ = writeln!(text, "| {who} | {over} | {what} | {bound} | {measured} | {met} |");
        }
        text.push('\n');
    }

    fn samples(&self, who: Who, load: Load) -> impl Iterator<Item = &Sample> {
        let of = self.measured.iter().filter(move |one| one.who == who && one.load == load);
        of.map(|one| &one.sample)
    }

    fn figures(&self, who: Who, load: Load, figure: Figure) -> Vec<f64> {
        self.samples(who, load).filter_map(figure).filter(|figure| figure.is_finite()).collect()
    }

    /// In how many rounds a row was to be measured.
    pub(super) fn rounds_asked(&self, who: Who, load: Load) -> u32 {
        let rows = self.asked.iter().filter(|row| row.who == who && row.load == load);
        rows.map(|row| row.rounds).max().unwrap_or(0)
    }

    /// The samples of two systems, round by round.
    pub(super) fn pairs(&self, who: Who, over: Who, load: Load) -> Vec<(&Sample, &Sample)> {
        let of = |who: Who, round: u32| {
            let is_it = |one: &&Measured| one.who == who && one.load == load && one.round == round;
            self.measured.iter().find(is_it).map(|one| &one.sample)
        };
        let rounds = self.measured.iter().map(|measured| measured.round).max().unwrap_or(0);
        (1..=rounds).filter_map(|round| Some((of(who, round)?, of(over, round)?))).collect()
    }

    /// One system's figure over another's, of the rounds in which both have one.
    pub(super) fn ratios(&self, who: Who, over: Who, load: Load, figure: Figure) -> Vec<f64> {
        let pairs = self.pairs(who, over, load).into_iter();
        let ratios = pairs.filter_map(|(upper, lower)| Some(figure(upper)? / figure(lower)?));
        // It is none over nothing, or where either is none.
        ratios.filter(|ratio| ratio.is_finite()).collect()
    }
}

/// The median, and the least and most if there are several.
pub(super) fn cell(figures: &[f64], shown: impl Fn(f64) -> String) -> String {
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
    use std::time::Duration;

    use super::*;

    fn measured(who: Who, round: u32, commits_per_second: f64) -> Measured {
        let sample = Sample {
            commits_per_second,
            p50_us: Some(100_000.0 / commits_per_second),
            p99_us: Some(200_000.0 / commits_per_second),
            memory_mib: Some(1.0),
            failed: u64::from(round - 1),
            ..Sample::default()
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
        let mut results = Results {
            asked: [(Who::Floor, 2), (Who::Quorate, 3)]
                .map(|(who, rounds)| Row { who, load: Load::Closed(64), rounds })
                .to_vec(),
            // The machine was ten times slower in the second round.
            measured: vec![
                measured(Who::Floor, 1, 1000.0),
                measured(Who::Quorate, 1, 600.0),
                measured(Who::Floor, 2, 100.0),
                measured(Who::Quorate, 2, 60.0),
                measured(Who::Quorate, 3, 5.0),
            ],
            ..Results::default()
        };
        let text = results.tables();
        let row = "| 64 in flight | Quorate | 60 (5 to 600) |";
        assert!(text.contains(row), "{text}");
        let ends = |end: &str| text.lines().any(|line| line.ends_with(end));
        let p99 = "| 1.67 (1.67 to 1.67) | 1.67 (1.67 to 1.67) | 3 |";
        assert!(ends("| p50, of the floor's | p99, of the floor's | failed |"), "{text}");
        assert!(ends(p99), "the records that failed in all rounds: {text}");
        // Of the second round, in which some failed.
        assert!(ends("| 0.600 (0.600 to 0.600), but 2 records failed | **no** |"), "{text}");

        results.measured.retain(|one| one.round == 1);
        let text = results.tables();
        assert!(text.contains("| not measured | **no** |"), "the second round is missing: {text}");
        results.asked.iter_mut().for_each(|row| row.rounds = 1);
        let text = results.tables();
        let target = "| Quorate | floor | commits/s at 64 in flight | at least 0.5 | 0.600 | yes |";
        assert!(text.contains(target), "{text}");
        assert_eq!(results.verdict(), "2 samples, 2 of 2 targets met");
    }

    #[test]
    fn the_last_line_names_what_was_missed() {
        let asked = [Who::Floor, Who::Quorate];
        let results = Results {
            asked: asked.map(|who| Row { who, load: Load::Closed(64), rounds: 1 }).to_vec(),
            measured: vec![measured(Who::Floor, 1, 1000.0), measured(Who::Quorate, 1, 100.0)],
            ..Results::default()
        };
        let missed = "missed: commits/s at 64 in flight, Quorate over floor; p99 at 64 in flight, Quorate over floor";
        assert_eq!(results.verdict(), format!("2 samples, 0 of 2 targets met, {missed}"));
    }

    #[test]
    fn an_open_loop_tells_records_for_each_fsync() {
        let sample =
            Sample { commits_per_second: 99.0, records_per_fsync: Some(7.5), ..Sample::default() };
        let one = Measured { who: Who::Quorate, load: Load::Open(100), round: 1, sample };
        let text = Results { measured: vec![one], ..Results::default() }.tables();
        assert!(
            text.contains("| 100 records/s | Quorate | 99 | - | - | - | - | 7.5 | - | - | 0 |"),
            "{text}"
        );
    }

    #[test]
    fn a_ceiling_is_told_with_what_it_was_found_by() {
        let ceilings = vec![Ceiling {
            who: Who::Quorate,
            found: 400_000,
            trial: Duration::from_secs(3),
            held: 340_000,
            hold: Duration::from_secs(30),
        }];
        let text = Results { ceilings, ..Results::default() }.tables();
        assert!(text.contains("| Quorate | 400,000 | 3 s | 340,000 | 30 s |"), "{text}");
    }
}
