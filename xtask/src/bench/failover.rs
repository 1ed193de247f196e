//! How long a quorum has no leader: from the signal that ends one to the first commit of the next.
//!
//! - [`rounds`]: quorums of three of either make, whose leader ends by SIGKILL or SIGTERM, round after round;
//! - [`watch`]: the two that are left, asked every millisecond whether they lead and have committed;
//! - [`ask`]: the question.
//!
//! All systems run with their defaults, and so with the same timeouts: 1 s for elections, 2 s for Fetch. The measure is the
//! same for all; for a Quorate leader the first acknowledgement of a record is dated too.

mod ask;
mod rounds;
mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use self::rounds::{Rounds, Sample, Side, System, find, sides};
use super::commit::machine;
use crate::interop;
use crate::interop::process::End;
use crate::kafka::Release;
use crate::step::{step, target};

/// Flags of `cargo xtask bench failover`.
#[derive(Args)]
pub(crate) struct Options {
    /// For Quorate alone, how often its leader ends by SIGKILL, and as often by SIGTERM.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The same where Java takes part, for a leader of each make.
    #[arg(long, value_name = "ROUNDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    java_rounds: u32,
    /// Which quorums; java1 and java2 have so many nodes of Apache Kafka, and Quorate's for the rest.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values_t = SYSTEMS.map(|system| system.name.to_owned()))]
    systems: Vec<String>,
    /// Three rounds of Quorate alone, to see that this works.
    #[arg(long)]
    quick: bool,
    /// Writes every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is measured beside Quorate.
const KAFKA: &str = "4.4.0";

const SYSTEMS: [System; 7] = {
    use Side::{Java, Quorate};
    [
        System {
            name: "quorate",
            about: "three Quorate",
            nodes: [Quorate, Quorate, Quorate],
            hints: true,
        },
        System {
            name: "quorate-no-hints",
            about: "three Quorate, hints off",
            nodes: [Quorate, Quorate, Quorate],
            hints: false,
        },
        System {
            name: "kafka",
            about: "three Apache Kafka 4.4.0",
            nodes: [Java, Java, Java],
            hints: false,
        },
        System {
            name: "java1",
            about: "one Kafka, two Quorate",
            nodes: [Java, Quorate, Quorate],
            hints: true,
        },
        System {
            name: "java1-no-hints",
            about: "one Kafka, two Quorate, hints off",
            nodes: [Java, Quorate, Quorate],
            hints: false,
        },
        System {
            name: "java2",
            about: "two Kafka, one Quorate",
            nodes: [Quorate, Java, Java],
            hints: true,
        },
        System {
            name: "java2-no-hints",
            about: "two Kafka, one Quorate, hints off",
            nodes: [Quorate, Java, Java],
            hints: false,
        },
    ]
};

/// Where the death shows on the socket.
const KILL_TARGET: Duration = Duration::from_millis(100);
const TERM_TARGET: Duration = Duration::from_millis(50);
/// Far above what a median is where a death is seen on the socket, and far below the fetch timeout that it is without.
const UNSEEN: Duration = Duration::from_secs(1);
/// Two medians of a few rounds each are compared, whose election timeouts are drawn from a whole second.
const WORSE: (u32, Duration) = (10, Duration::from_millis(20));

/// Runs every system in turn, and prints the tables.
pub(crate) fn run(options: &Options) -> Result<String> {
    let check = "bench failover";
    let quick = ["quorate".to_owned()];
    let names: &[String] = if options.quick { &quick } else { &options.systems };
    let systems: Vec<System> =
        names.iter().map(|name| find(&SYSTEMS, name)).collect::<Result<_>>()?;
    let binary = interop::build(check)?;
    let dir = target().join("failover").join(std::process::id().to_string());
    println!("{check}: directories and logs in {}", dir.display());
    let mut measured = Vec::new();
    for system in systems {
        let mut samples = Vec::new();
        step(check, system.name, || {
            let (found, figures) = measure(system, options, &binary, &dir.join(system.name))?;
            samples = found;
            Ok(figures)
        })?;
        measured.push((system, samples));
    }
    fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&as_json(&measured))?;
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    let mut about = machine::of_quorate(&target());
    if measured.iter().any(|(system, _)| system.nodes.contains(&Side::Java)) {
        about.push(machine::of_kafka(KAFKA));
    }
    println!("\n{}", about.join("\n"));
    let rows: Vec<Row> =
        measured.iter().flat_map(|(system, samples)| rows(*system, samples)).collect();
    print_table(&rows);
    print_caution(&rows);
    let missed = print_targets(&rows);
    let figures = figures(&rows)?;
    Ok(match missed.is_empty() {
        true => figures,
        false => format!("{figures}; missed: {}", missed.join("; ")),
    })
}

fn measure(
    system: System,
    options: &Options,
    binary: &Path,
    dir: &Path,
) -> Result<(Vec<Sample>, String)> {
    let has_java = system.nodes.contains(&Side::Java);
    // For Quorate alone no jar is needed: its own formatter takes the release's name.
    let release = match has_java {
        true => Release::installed(KAFKA)?,
        false => Release::of_family("4.4"),
    };
    let count = match (options.quick, has_java) {
        (true, _) => 3,
        (false, true) => options.java_rounds,
        (false, false) => options.rounds,
    };
    let mut quorum = Rounds::start(system, &release, binary, dir)?;
    let mut samples = Vec::new();
    for _ in 0..count {
        for side in sides(&system) {
            for how in [End::Kill, End::Terminate] {
                samples.push(quorum.round(how, side)?);
            }
        }
    }
    let (pre_votes, votes) = quorum.finish()?;
    let ends = samples.len();
    Ok((
        samples,
        format!(
            "{ends} leaders ended; with the elections between rounds Quorate asked for {pre_votes} rounds of pre-votes and {votes} of votes"
        ),
    ))
}

/// The rounds of one kind in one system.
#[derive(Debug)]
struct Row {
    system: System,
    how: End,
    ended: Side,
    commit: Spread,
    acknowledgement: Option<Spread>,
    /// Of each round, ascending.
    epochs: Vec<i32>,
}

/// Some times, ascending, at least one.
#[derive(Clone, Debug)]
struct Spread(Vec<Duration>);

impl Spread {
    fn of(times: impl Iterator<Item = Duration>) -> Option<Spread> {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        (!times.is_empty()).then_some(Spread(times))
    }

    /// The smallest that so many in a hundred do not exceed.
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    fn median(&self) -> Duration {
        self.percentile(50)
    }

    fn cells(&self) -> String {
        let [median, p90, most] = [50, 90, 100].map(|percent| ms(self.percentile(percent)));
        format!("{median} | {p90} | {most}")
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

fn rows(system: System, samples: &[Sample]) -> Vec<Row> {
    let mut rows = Vec::new();
    for how in [End::Kill, End::Terminate] {
        for ended in sides(&system) {
            let of = || samples.iter().filter(|sample| sample.how == how && sample.ended == ended);
            let Some(commit) = Spread::of(of().map(|sample| sample.commit)) else { continue };
            let acknowledgement = Spread::of(of().filter_map(|sample| sample.acknowledgement));
            let mut epochs: Vec<i32> = of().map(|sample| sample.epochs).collect();
            epochs.sort_unstable();
            rows.push(Row { system, how, ended, commit, acknowledgement, epochs });
        }
    }
    rows
}

fn signal(how: End) -> &'static str {
    match how {
        End::Kill => "SIGKILL",
        End::Terminate => "SIGTERM",
    }
}

fn print_table(rows: &[Row]) {
    println!(
        "\nMilliseconds without a leader, from the signal to the first commit of the next one.\n"
    );
    println!(
        "| quorum | leader ended | rounds | median | p90 | max | first ack: median | p90 | max | epochs until the next round: mean | max |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for row in rows {
        let rounds = row.epochs.len();
        let mean = row.epochs.iter().map(|epochs| f64::from(*epochs)).sum::<f64>() / rounds as f64;
        println!(
            "| {} | {:?}, {} | {rounds} | {} | {} | {mean:.2} | {} |",
            row.system.about,
            row.ended,
            signal(row.how),
            row.commit.cells(),
            row.acknowledgement.as_ref().map_or("– | – | –".to_owned(), Spread::cells),
            most_epochs(row),
        );
    }
}

/// What medians of few rounds are not good for.
fn print_caution(rows: &[Row]) {
    let is_mixed =
        |row: &&Row| [Side::Java, Side::Quorate].iter().all(|side| row.system.nodes.contains(side));
    let rounds = rows.iter().filter(is_mixed).map(|row| row.epochs.len());
    if let Some(rounds) = rounds.min() {
        println!(
            "\nElection timeouts are drawn from a second. Where both makes share a quorum a median, with or without hints, is \
             of {rounds} such draws: two of them can differ by some hundred milliseconds by chance alone."
        );
    }
}

fn most_epochs(row: &Row) -> i32 {
    row.epochs.last().copied().unwrap_or_default()
}

fn row<'a>(rows: &'a [Row], name: &str, how: End, ended: Side) -> Option<&'a Row> {
    rows.iter().find(|row| row.system.name == name && row.how == how && row.ended == ended)
}

/// Returns those that are missed.
fn print_targets(rows: &[Row]) -> Vec<String> {
    println!("\n| target | measured | met |\n|---|---|---|");
    let mut missed = Vec::new();
    let mut say = |target: &str, measured: String, met: bool| {
        println!("| {target} | {measured} | {} |", if met { "yes" } else { "**no**" });
        if !met {
            missed.push(target.to_owned());
        }
    };
    if let Some(row) = row(rows, "quorate", End::Kill, Side::Quorate) {
        let median = row.commit.median();
        let target =
            format!("three Quorate, SIGKILL: median at most {} ms", KILL_TARGET.as_millis());
        say(&target, format!("{} ms", ms(median)), median <= KILL_TARGET);
    }
    if let Some(row) = row(rows, "quorate", End::Terminate, Side::Quorate) {
        let median = row.commit.median();
        let target = format!("three Quorate, SIGTERM: median under {} ms", TERM_TARGET.as_millis());
        say(&target, format!("{} ms", ms(median)), median < TERM_TARGET);
        let most = most_epochs(row);
        say("three Quorate, SIGTERM: always one epoch", format!("at most {most}"), most == 1);
    }
    for with in rows.iter().filter(|row| row.system.hints) {
        let name = format!("{}-no-hints", with.system.name);
        let Some(without) = row(rows, &name, with.how, with.ended) else { continue };
        let (theirs, ours) = (without.commit.median(), with.commit.median());
        let (percent, slack) = WORSE;
        let met = ours <= theirs + theirs * percent / 100 + slack;
        let target = format!(
            "{}, {:?} ended by {}: median no worse than without hints (by {percent} % and {} ms)",
            with.system.about,
            with.ended,
            signal(with.how),
            slack.as_millis(),
        );
        say(&target, format!("{} ms, without {} ms", ms(ours), ms(theirs)), met);
    }
    println!();
    missed
}

/// The last line; fails if a hand-over among Quorate's took two epochs, or their hints do not tell of deaths.
fn figures(rows: &[Row]) -> Result<String> {
    let mut figures = Vec::new();
    for row in rows {
        let (name, signal) = (row.system.name, signal(row.how));
        let is_quorate = !row.system.nodes.contains(&Side::Java);
        if is_quorate && row.how == End::Terminate && most_epochs(row) != 1 {
            bail!("{name}: a hand-over on SIGTERM took {} epochs", most_epochs(row));
        }
        if is_quorate && row.system.hints && row.how == End::Kill && row.commit.median() > UNSEEN {
            let median = ms(row.commit.median());
            bail!(
                "{name}: no leader for {median} ms after SIGKILL: the death is not seen on the socket"
            );
        }
        let side = if sides(&row.system).len() > 1 {
            format!(" of {:?}", row.ended)
        } else {
            String::new()
        };
        figures.push(format!("{name} {signal}{side} {} ms", ms(row.commit.median())));
    }
    Ok(format!("medians: {}", figures.join(", ")))
}

fn as_json(measured: &[(System, Vec<Sample>)]) -> Value {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let systems = measured.iter().map(|(system, samples)| {
        let samples = samples.iter().map(|sample| {
            json!({
                "signal": signal(sample.how),
                "ended": format!("{:?}", sample.ended),
                "commit_us": micros(sample.commit),
                "acknowledgement_us": sample.acknowledgement.map(micros),
                "epochs": sample.epochs,
            })
        });
        (system.name, samples.collect::<Vec<_>>())
    });
    json!(systems.collect::<BTreeMap<_, _>>())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let ms = Duration::from_millis;
        let spread = Spread::of([5, 1, 4, 2, 3].into_iter().map(ms)).expect("five times");
        assert_eq!([50, 90, 100].map(|p| spread.percentile(p)), [ms(3), ms(5), ms(5)]);
        let one = Spread::of([ms(7)].into_iter()).expect("one time");
        assert_eq!([50, 90, 100].map(|p| one.percentile(p)), [ms(7); 3]);
        assert!(Spread::of([].into_iter()).is_none());
    }

    fn sample(how: End, ms: u64, epochs: i32) -> Sample {
        Sample {
            how,
            ended: Side::Quorate,
            commit: Duration::from_millis(ms),
            acknowledgement: None,
            epochs,
        }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        _options: Options,
    }

    #[test]
    fn no_rounds_are_refused() {
        let is_taken = |flag, count| Line::try_parse_from(["failover", flag, count]).is_ok();
        for flag in ["--rounds", "--java-rounds"] {
            assert!(is_taken(flag, "1") && !is_taken(flag, "0"), "{flag}");
        }
    }

    fn figures_of(system: &str, samples: &[Sample]) -> Result<String> {
        figures(&rows(find(&SYSTEMS, system)?, samples))
    }

    #[test]
    fn a_hand_over_of_two_epochs_fails() {
        let (kill, terminate) = (sample(End::Kill, 20, 2), sample(End::Terminate, 20, 1));
        assert!(figures_of("quorate", &[kill, terminate]).is_ok());
        let two = sample(End::Terminate, 20, 2);
        assert!(figures_of("quorate", &[terminate, two]).is_err());
        assert!(figures_of("java1", &[terminate, two]).is_ok());
    }

    #[test]
    fn deaths_that_are_not_seen_fail() {
        let rounds = [20, 1001, 1900].map(|ms| sample(End::Kill, ms, 1));
        assert!(figures_of("quorate", &rounds).is_err());
        assert!(figures_of("quorate", &rounds[..2]).is_ok());
        assert!(figures_of("quorate-no-hints", &rounds).is_ok());
        assert!(figures_of("java2", &rounds).is_ok());
    }
}
