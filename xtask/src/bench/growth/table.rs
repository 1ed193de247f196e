//! Figures by what grows: medians in Markdown, all of them in JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A sweep's figures.
pub(super) struct Table {
    pub(super) title: String,
    /// What grows.
    pub(super) x: Axis,
    pub(super) columns: Vec<Column>,
    pub(super) samples: Vec<Sample>,
    pub(super) plots: Vec<Plot>,
}

/// A scale.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) name: &'static str,
    pub(super) is_log: bool,
}

/// One figure.
pub(super) struct Column {
    pub(super) name: &'static str,
    decimals: usize,
    of_rounds: OfRounds,
}

/// What is shown of the rounds of a point.
enum OfRounds {
    Median,
    Most,
}

impl Column {
    /// The median of the rounds.
    pub(super) const fn new(name: &'static str, decimals: usize) -> Column {
        Column { name, decimals, of_rounds: OfRounds::Median }
    }

    /// The most of any round.
    pub(super) const fn most(name: &'static str, decimals: usize) -> Column {
        Column { name, decimals, of_rounds: OfRounds::Most }
    }
}

/// The figures of one point in one round, one for each column.
pub(super) struct Sample {
    pub(super) x: f64,
    pub(super) figures: Vec<f64>,
}

/// What is drawn of a table.
pub(super) struct Plot {
    /// Of the file, without its ending.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// One above the other.
    pub(super) panels: Vec<Panel>,
}

/// One diagram.
pub(super) struct Panel {
    pub(super) y: Axis,
    /// Columns, by number, and what the legend calls each.
    pub(super) series: Vec<(usize, &'static str)>,
}

impl Table {
    /// All `x`, ascending.
    pub(super) fn points(&self) -> Vec<f64> {
        let mut points: Vec<f64> = self.samples.iter().map(|sample| sample.x).collect();
        points.sort_by(f64::total_cmp);
        points.dedup();
        points
    }

    /// The median of the rounds; none where nothing was measured.
    pub(super) fn median(&self, x: f64, column: usize) -> Option<f64> {
        median(self.rounds(x, column).collect())
    }

    /// The most of any round; none where nothing was measured.
    pub(super) fn most(&self, x: f64, column: usize) -> Option<f64> {
        self.rounds(x, column).filter(|figure| !figure.is_nan()).max_by(f64::total_cmp)
    }

    fn rounds(&self, x: f64, column: usize) -> impl Iterator<Item = f64> {
        let of_x = self.samples.iter().filter(move |sample| sample.x == x);
        of_x.filter_map(move |sample| sample.figures.get(column).copied())
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = format!("{}\n\n| {} |", self.title, self.x.name);
        for column in &self.columns {
            let _ = write!(text, " {} |", column.name);
        }
        text.push_str("\n|--:|");
        text.push_str(&"--:|".repeat(self.columns.len()));
        for x in self.points() {
            let _ = write!(text, "\n| {} |", number(x, 0));
            for (at, column) in self.columns.iter().enumerate() {
                let figure = match column.of_rounds {
                    OfRounds::Median => self.median(x, at),
                    OfRounds::Most => self.most(x, at),
                };
                let shown =
                    figure.map_or("–".to_owned(), |figure| number(figure, column.decimals));
                let _ = write!(text, " {shown} |");
            }
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let samples = self.samples.iter().map(|sample| {
            let figures = self.columns.iter().zip(&sample.figures);
            let figures: serde_json::Map<String, Value> =
                figures.map(|(column, figure)| (column.name.to_owned(), json!(figure))).collect();
            json!({ self.x.name: sample.x, "figures": figures })
        });
        json!({ "title": self.title, "samples": samples.collect::<Vec<_>>() })
    }
}

/// The one in the middle; the mean of two.
pub(super) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.retain(|number| !number.is_nan());
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers.len().saturating_sub(1) / 2, numbers.len() / 2);
    Some(f64::midpoint(*numbers.get(low)?, *numbers.get(high)?))
}

/// `12,345.6`.
pub(super) fn number(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut shown = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && !shown.ends_with('-') {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown + rest
}

pub(super) const NOT_MEASURED: &str = "not measured";

/// What a figure is to be, and what it is.
pub(super) struct Target {
    pub(super) what: &'static str,
    pub(super) wanted: &'static str,
    /// Whether it is as wanted; none if what it is about was not asked for.
    pub(super) found: Option<(String, bool)>,
}

impl Target {
    pub(super) fn is_met(&self) -> bool {
        self.found.as_ref().is_some_and(|(_, is_met)| *is_met)
    }

    fn measured(&self) -> &str {
        self.found.as_ref().map_or(NOT_MEASURED, |(figures, _)| figures)
    }

    pub(super) fn table(targets: &[Target]) -> String {
        let mut text = "\n| what | target | measured | met |\n|---|---|--:|---|\n".to_owned();
        for target in targets {
            let met = match &target.found {
                Some((_, true)) => "yes",
                Some((_, false)) => "no",
                None => "–",
            };
            let Target { what, wanted, .. } = target;
            let _ = writeln!(text, "| {what} | {wanted} | {} | {met} |", target.measured());
        }
        text.push('\n');
        text
    }

    /// For the last line.
    pub(super) fn figure(&self) -> String {
        let missed = if self.found.is_some() && !self.is_met() { " (missed)" } else { "" };
        format!("{} {}{missed}", self.what, self.measured())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_the_median_of_its_rounds_or_the_most() {
        let sample = |x, figure: f64| Sample { x, figures: vec![figure, figure * 1000.0] };
        let table = Table {
            title: "Things".to_owned(),
            x: Axis { name: "things", is_log: false },
            columns: vec![Column::new("ms", 1), Column::most("us", 0)],
            samples: vec![
                sample(10.0, 5.0),
                sample(2.0, 1.0),
                sample(10.0, 3.0),
                sample(10.0, 4.0),
                sample(10.0, f64::NAN),
            ],
            plots: Vec::new(),
        };
        assert_eq!(
            table.markdown(),
            "Things\n\n| things | ms | us |\n|--:|--:|--:|\n| 2 | 1.0 | 1,000 |\n| 10 | 4.0 | 5,000 |"
        );
        assert_eq!(table.median(7.0, 0), None);
        assert_eq!(table.json()["samples"][1]["figures"]["us"], 1000.0);
    }

    #[test]
    fn a_target_that_was_not_asked_for_is_neither_met_nor_missed() {
        let target = |found: Option<(&str, bool)>| Target {
            what: "a thing",
            wanted: "at least 2",
            found: found.map(|(figures, is_met)| (figures.to_owned(), is_met)),
        };
        let targets = [target(Some(("3", true))), target(Some(("1", false))), target(None)];
        let table = Target::table(&targets);
        for line in ["3 | yes", "1 | no", "not measured | –"] {
            let line = format!("\n| a thing | at least 2 | {line} |\n");
            assert!(table.contains(&line), "{line} in {table}");
        }
        let figures = targets.map(|target| target.figure());
        assert_eq!(figures, ["a thing 3", "a thing 1 (missed)", "a thing not measured"]);
    }

    #[test]
    fn medians_and_numbers() {
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(vec![4.0, f64::NAN, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![]), None);
        assert_eq!(number(1_234_567.25, 1), "1,234,567.2");
        assert_eq!(number(-123.0, 0), "-123");
    }
}
