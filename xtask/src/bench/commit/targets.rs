//! What Quorate's figures are to be, as multiples of others', and what they came to.
//!
//! A target for which both sides were to be measured is judged, whatever became of them: one without figures, or with
//! records that failed on either side, is missed.

use std::time::Duration;

use super::report::{COMMITS, CPU, Figure, P50, P75, P99, Results, cell, median};
use super::sample::Load;
use super::who::Who;

/// What a figure of one system is to be, as a multiple of another's.
struct Target {
    who: Who,
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

fn targets() -> [Target; 10] {
    use Bound::{AtLeast, AtMost};
    use Load::{Closed, Open};
    use Who::{Etcd, Floor, KafkaNoLinger, Quorate, QuorateCalls};
    let target =
        |who, what, figure, load, over, bound| Target { who, what, figure, load, over, bound };
    [
        target(Quorate, "p50", P50, Closed(1), Floor, AtMost(1.5)),
        target(Quorate, "commits/s", COMMITS, Closed(64), Floor, AtLeast(0.5)),
        target(Quorate, "commits/s", COMMITS, Closed(256), Floor, AtLeast(0.5)),
        target(Quorate, "p99", P99, Closed(64), Floor, AtMost(2.0)),
        target(Quorate, "commits/s", COMMITS, Closed(64), Etcd, AtLeast(10.0)),
        target(QuorateCalls, "commits/s", COMMITS, Closed(64), Etcd, AtLeast(10.0)),
        target(Quorate, "CPU/commit", CPU, Closed(64), Etcd, AtMost(0.1)),
        target(QuorateCalls, "CPU/commit", CPU, Closed(64), Etcd, AtMost(0.1)),
        target(Quorate, "p75", P75, Open(100), KafkaNoLinger, AtMost(0.2)),
        target(Quorate, "p99", P99, Open(20_000), KafkaNoLinger, AtMost(0.05)),
    ]
}

/// Quorate's ceiling over Kafka's.
const CEILING: Bound = Bound::AtLeast(10.0);

/// Whether a target is judged by what this row says of another system than Quorate.
pub(super) fn is_judged_by(over: Who, load: Load) -> bool {
    targets().iter().any(|target| target.over == over && target.load == load)
}

/// The highest rate that a system keeps up with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    pub(super) who: Who,
    /// What trials of this length found; 0 where no rate was kept up with, as below.
    pub(super) found: u32,
    pub(super) trial: Duration,
    /// What was kept up with for this long.
    pub(super) held: u32,
    pub(super) hold: Duration,
}

/// A line of the table of targets.
pub(super) struct Line {
    pub(super) who: &'static str,
    pub(super) over: &'static str,
    pub(super) what: String,
    pub(super) bound: String,
    pub(super) measured: String,
    pub(super) is_met: bool,
}

/// All targets for which both sides were to be measured.
pub(super) fn judge(results: &Results) -> Vec<Line> {
    let has = |who, load| results.asked.iter().any(|row| row.who == who && row.load == load);
    let targets = targets();
    let asked = targets
        .iter()
        .filter(|target| has(target.who, target.load) && has(target.over, target.load));
    asked.map(|target| line(results, target)).chain(ceiling(results)).collect()
}

fn line(results: &Results, target: &Target) -> Line {
    let pairs = results.pairs(target.who, target.over, target.load);
    let ratios = results.ratios(target.who, target.over, target.load, target.figure);
    let failed: u64 = pairs.iter().map(|(ours, theirs)| ours.failed + theirs.failed).sum();
    let asked = [target.who, target.over].map(|who| results.rounds_asked(who, target.load));
    let is_whole =
        u32::try_from(ratios.len()).is_ok_and(|count| asked.iter().min() == Some(&count));
    let is_nothing = pairs.iter().any(|(_, theirs)| (target.figure)(theirs) == Some(0.0));
    let (measured, is_met) = match median(&ratios) {
        // Of some rounds only, a median would leave out the others' best ones, or those that a failure has ended.
        Some(middle) if is_whole => {
            let ratios = cell(&ratios, |ratio| format!("{ratio:.3}"));
            match failed {
                0 => (ratios, target.bound.holds(middle)),
                _ => (format!("{ratios}, but {failed} records failed"), false),
            }
        }
        _ if is_nothing && target.over == Who::KafkaNoLinger => {
            (format!("{NOT_MEASURED}: below its millisecond"), false)
        }
        _ => (NOT_MEASURED.to_owned(), false),
    };
    Line {
        who: target.who.name(),
        over: target.over.name(),
        what: format!("{} at {}", target.what, target.load),
        bound: target.bound.text(),
        measured,
        is_met,
    }
}

const NOT_MEASURED: &str = "not measured";

fn ceiling(results: &Results) -> Option<Line> {
    let (who, over) = (Who::Quorate, Who::KafkaNoLinger);
    if ![who, over].iter().all(|who| results.asked_ceilings.contains(who)) {
        return None;
    }
    let of = |who| {
        let found = results.ceilings.iter().find(|ceiling| ceiling.who == who);
        found.map(|ceiling| f64::from(ceiling.held))
    };
    let (measured, is_met) = match (of(who), of(over)) {
        (Some(ours), Some(theirs)) if theirs > 0.0 => {
            (format!("{:.1}", ours / theirs), CEILING.holds(ours / theirs))
        }
        _ => (NOT_MEASURED.to_owned(), false),
    };
    Some(Line {
        who: who.name(),
        over: over.name(),
        what: "highest rate kept up with".to_owned(),
        bound: CEILING.text(),
        measured,
        is_met,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::commit::plan::Row;
    use crate::bench::commit::report::Measured;
    use crate::bench::commit::sample::Sample;

    fn results(samples: &[(Who, u32, Sample)], load: Load) -> Results {
        let measured = samples.iter().map(|(who, round, sample)| Measured {
            who: *who,
            load,
            round: *round,
            sample: sample.clone(),
        });
        let rounds = samples.iter().map(|(_, round, _)| *round).max().unwrap_or(0);
        let asked = samples.iter().map(|(who, ..)| Row { who: *who, load, rounds });
        Results { asked: asked.collect(), measured: measured.collect(), ..Results::default() }
    }

    /// The figures of the only target, and whether it is met.
    fn only(results: &Results) -> (String, bool) {
        let lines = judge(results);
        let [line] = &lines[..] else { panic!("{} lines", lines.len()) };
        (line.measured.clone(), line.is_met)
    }

    #[test]
    fn records_that_failed_meet_no_target() {
        let sample = |p50, failed| Sample { p50_us: Some(p50), failed, ..Sample::default() };
        let judged = |failed| {
            let ours = (Who::Quorate, 1, sample(100.0, failed));
            only(&results(&[ours, (Who::Floor, 1, sample(100.0, 0))], Load::Closed(1)))
        };
        assert_eq!(judged(0), ("1.000".to_owned(), true));
        assert_eq!(judged(3), ("1.000, but 3 records failed".to_owned(), false));
    }

    #[test]
    fn what_has_no_figure_is_missed_and_not_left_out() {
        let sample = |p75_us| Sample { p75_us, ..Sample::default() };
        let judged = |theirs: [Option<f64>; 2]| {
            let rounds = (1..).zip(theirs).flat_map(|(round, theirs)| {
                let ours = (Who::Quorate, round, sample(Some(100.0)));
                [ours, (Who::KafkaNoLinger, round, sample(theirs))]
            });
            only(&results(&rounds.collect::<Vec<_>>(), Load::Open(100)))
        };
        let met = judged([Some(2000.0), Some(1000.0)]);
        assert_eq!(met, ("0.075 (0.050 to 0.100)".to_owned(), true));
        let below = ("not measured: below its millisecond".to_owned(), false);
        assert_eq!(judged([Some(2000.0), Some(0.0)]), below);
        assert_eq!(judged([None, Some(1000.0)]), ("not measured".to_owned(), false));
        assert_eq!(judged([Some(f64::NAN), Some(1000.0)]), ("not measured".to_owned(), false));

        let mut none = results(&[], Load::Open(100));
        none.asked = [Who::Quorate, Who::KafkaNoLinger]
            .map(|who| Row { who, load: Load::Open(100), rounds: 1 })
            .to_vec();
        assert_eq!(only(&none), ("not measured".to_owned(), false));
        none.asked.truncate(1);
        assert!(judge(&none).is_empty(), "nobody asked for Kafka");
    }

    #[test]
    fn rounds_that_never_came_meet_no_target() {
        let sample = Sample { p75_us: Some(100.0), ..Sample::default() };
        let kafka = Sample { p75_us: Some(1000.0), ..Sample::default() };
        let judged = |of_quorate, of_kafka| {
            let samples =
                [(Who::Quorate, 1, sample.clone()), (Who::KafkaNoLinger, 1, kafka.clone())];
            let mut results = results(&samples, Load::Open(100));
            results.asked[0].rounds = of_quorate;
            results.asked[1].rounds = of_kafka;
            only(&results)
        };
        assert_eq!(judged(1, 1), ("0.100".to_owned(), true));
        assert_eq!(judged(5, 1), ("0.100".to_owned(), true), "Kafka's are fewer");
        assert_eq!(judged(5, 2), ("not measured".to_owned(), false));
    }

    #[test]
    fn both_kinds_of_calls_are_judged_against_etcd() {
        let sample = |commits_per_second, cpu| Sample {
            commits_per_second,
            cpu_us_per_commit: Some(cpu),
            ..Sample::default()
        };
        let samples = [
            (Who::Quorate, 1, sample(2000.0, 1.0)),
            (Who::QuorateCalls, 1, sample(900.0, 3.0)),
            (Who::Etcd, 1, sample(100.0, 20.0)),
        ];
        let lines = judge(&results(&samples, Load::Closed(64)));
        let said = lines.iter().map(|line| (line.who, line.measured.as_str(), line.is_met));
        let calls = Who::QuorateCalls.name();
        let expected = [
            ("Quorate", "20.000", true),
            (calls, "9.000", false),
            ("Quorate", "0.050", true),
            (calls, "0.150", false),
        ];
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_ceiling_counts_as_a_target() {
        let judged = |ours: Option<u32>, theirs: Option<u32>| {
            let of = |who, rate: Option<u32>| {
                let second = Duration::from_secs(1);
                rate.map(|rate| Ceiling {
                    who,
                    // What is not held does not count.
                    found: rate + 1000,
                    trial: second,
                    held: rate,
                    hold: second,
                })
            };
            only(&Results {
                asked_ceilings: vec![Who::Quorate, Who::KafkaNoLinger],
                ceilings: [of(Who::Quorate, ours), of(Who::KafkaNoLinger, theirs)]
                    .into_iter()
                    .flatten()
                    .collect(),
                ..Results::default()
            })
        };
        assert_eq!(judged(Some(1000), Some(100)), ("10.0".to_owned(), true));
        assert_eq!(judged(Some(500), Some(100)), ("5.0".to_owned(), false));
        assert_eq!(judged(Some(0), Some(100)), ("0.0".to_owned(), false));
        for (ours, theirs) in [(Some(1000), Some(0)), (Some(1000), None), (None, Some(100))] {
            assert_eq!(judged(ours, theirs), ("not measured".to_owned(), false));
        }
    }
}
