//! The core alone: what the protocol costs without disk, network and clock.
//!
//! The package `quorate-bench-core` runs three replicas in one thread. Its programs are separate, so that counting does not
//! slow down what is timed: one tells the time, one counts allocations, one repeats a single thing for valgrind. Instructions
//! are the difference between so many repetitions and twice as many, so that start-up does not count; they are the same on
//! every run, and `bench/core/instructions.json` says what they were.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::step::{cargo, output, root, succeed, target};

/// What `--help` ends with.
const ABOUT: &str = "A round: so many records of 256 bytes, each proposed by itself, until every one of three replicas knows that they
are committed. Its time includes what the caller pays for a proposal and for a Fetch answer's list of batches; batches are
not encoded. Three programs of the package quorate-bench-core do the work.

Fails above 600 ns a record at 64 records a round, above one allocation a round in the core (the batch's records, which
go to the driver; at 1 record a round that is one a record), above one a record and three a round in the core and its
caller together (a proposal's vector; the batch's records and two Fetch answers' batches), and where instructions are 5 %
above bench/core/instructions.json. Instructions need valgrind. What they are spent on:
callgrind_annotate target/bench-core/append.out";

/// Flags of `cargo xtask bench core`.
#[derive(Args)]
#[command(after_help = ABOUT)]
pub(crate) struct Options {
    /// Only what is the same on every run, allocations and instructions: CI's gate.
    #[arg(long)]
    gate: bool,
    /// Writes the instruction counts to bench/core/instructions.json instead of comparing them: for a rise that is meant.
    #[arg(long)]
    update: bool,
    /// Few and short repetitions.
    #[arg(long, conflicts_with = "gate")]
    quick: bool,
    /// Also writes all figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Records a round.
const SIZES: [u32; 3] = [1, 64, 256];

/// The size that has a bound on its time.
const BOUND_SIZE: u32 = 64;

const MAX_NANOSECONDS_A_RECORD: f64 = 600.0;

/// So much above the count on file is a regression.
const MARGIN_PERCENT: f64 = 5.0;

/// The records of a batch go to the driver in a vector: it cannot be used again.
const MAX_ALLOCATIONS_A_ROUND: f64 = 1.0;

/// With the caller's: beside one for each record, which comes in a vector of its own, that of the core and the list of batches
/// in the Fetch answer to each of two followers.
const MAX_ALLOCATIONS_A_ROUND_BESIDE_RECORDS: f64 = 3.0;

/// What valgrind counts: the program's word for it, repetitions, and what of it is told.
const COUNTED: [(&str, u64, &str); 4] = [
    ("append", 1000, "one record proposed, written and durable at the leader"),
    ("fetch", 1000, "one Fetch that acknowledges a record and gets the next ones"),
    ("round", 1000, "one round of one record, all three replicas"),
    ("round-of-64", 250, "one round of 64 records, all three replicas"),
];

/// Measures the core and compares it with its bounds.
pub(crate) fn run(options: &Options) -> Result<String> {
    succeed(cargo().args(["build", "--quiet", "--release", "--package", "quorate-bench-core"]))?;
    let mut figures = json!({});
    let mut said = Vec::new();
    let mut wrong = Vec::new();
    if !options.gate {
        let times = times(options.quick)?;
        let at_bound = times.iter().find(|time| time.records == BOUND_SIZE);
        let a_record = at_bound.context("the size with the bound was not timed")?.a_record();
        said.push(format!("ns_a_record_at_{BOUND_SIZE}={a_record:.0}"));
        if a_record > MAX_NANOSECONDS_A_RECORD {
            wrong.push(format!("more than {MAX_NANOSECONDS_A_RECORD} ns a record"));
        }
        figures["time"] = times.iter().map(Time::json).collect();
    }
    let allocations = allocations()?;
    let most = |figure: fn(&Allocations) -> f64| allocations.iter().map(figure).fold(0.0, f64::max);
    said.push(format!("core_allocations_a_round={:.2}", most(|line| line.core)));
    said.push(format!("beside_records_with_the_caller={:.2}", most(Allocations::beside_records)));
    wrong.extend(allocations.iter().filter_map(Allocations::too_many));
    figures["allocations"] = allocations.iter().map(Allocations::json).collect();
    let counts = instructions()?;
    figures["instructions"] = json!(counts);
    said.extend(counts.iter().map(|(what, count)| format!("{what}={count}")));
    if options.update {
        update(&counts)?;
    } else {
        wrong.extend(compare(&counts)?);
    }
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&figures)? + "\n";
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    let said = said.join(" ");
    ensure!(wrong.is_empty(), "{said}\n{}", wrong.join("\n"));
    Ok(format!("{said} (instructions)"))
}

/// A line of `bench-core-time`.
struct Time {
    records: u32,
    /// Nanoseconds a round: median and quartiles.
    median: f64,
    low: f64,
    high: f64,
}

impl Time {
    fn per_record(&self, round: f64) -> f64 {
        round / f64::from(self.records)
    }

    fn a_record(&self) -> f64 {
        self.per_record(self.median)
    }

    fn json(&self) -> Value {
        json!({
            "records_a_round": self.records,
            "nanoseconds_a_round": self.median,
            "nanoseconds_a_round_quartiles": [self.low, self.high],
            "nanoseconds_a_record": self.a_record(),
        })
    }
}

fn times(quick: bool) -> Result<Vec<Time>> {
    let repetitions: [u32; 2] = if quick { [5, 10] } else { [51, 30] };
    let times = times_of(&lines("bench-core-time", &[&repetitions[..], &SIZES].concat())?)?;
    println!("\n| records a round | ns a record | quartiles | ns a round |\n|--:|--:|--:|--:|");
    for time in &times {
        let (low, high) = (time.per_record(time.low), time.per_record(time.high));
        let (a_record, a_round) = (time.a_record(), time.median);
        println!("| {} | {a_record:.0} | {low:.0} to {high:.0} | {a_round:.0} |", time.records);
    }
    Ok(times)
}

fn times_of(lines: &[Vec<String>]) -> Result<Vec<Time>> {
    let times = lines.iter().map(|words| {
        let [records, median, low, high] = &words[..] else {
            bail!("bench-core-time says {words:?}");
        };
        let (median, low, high) = (median.parse()?, low.parse()?, high.parse()?);
        Ok(Time { records: records.parse()?, median, low, high })
    });
    let times = times.collect::<Result<Vec<Time>>>()?;
    all_sizes("bench-core-time", times.iter().map(|time| time.records))?;
    Ok(times)
}

/// A line of `bench-core-allocations`.
struct Allocations {
    records: u32,
    /// A round: inside of the core, and with what its caller allocates.
    core: f64,
    all: f64,
    inputs: String,
}

impl Allocations {
    fn a_record(&self, round: f64) -> f64 {
        round / f64::from(self.records)
    }

    /// A round, with what its caller allocates except for a record each.
    fn beside_records(&self) -> f64 {
        self.all - f64::from(self.records)
    }

    /// What is wrong, if there are more than there may be.
    fn too_many(&self) -> Option<String> {
        let Allocations { records, core, inputs, .. } = self;
        if *core > MAX_ALLOCATIONS_A_ROUND {
            return Some(format!(
                "{core:.2} allocations a round of {records} in the core, {MAX_ALLOCATIONS_A_ROUND} is allowed: {inputs}"
            ));
        }
        let beside = self.beside_records();
        (beside > MAX_ALLOCATIONS_A_ROUND_BESIDE_RECORDS).then(|| {
            format!(
                "{beside:.2} allocations a round of {records} with the caller's, beside one a record; \
                 {MAX_ALLOCATIONS_A_ROUND_BESIDE_RECORDS} are allowed"
            )
        })
    }

    fn json(&self) -> Value {
        json!({
            "records_a_round": self.records,
            "core_a_round": self.core,
            "with_the_caller_a_round": self.all,
            "core_by_input": self.inputs,
        })
    }
}

fn allocations() -> Result<Vec<Allocations>> {
    let allocations = allocations_of(&lines("bench-core-allocations", &SIZES)?)?;
    println!(
        "\n| records a round | allocations a round in the core | a record | in which steps | a round with the caller's | a record |"
    );
    println!("|--:|--:|--:|:--|--:|--:|");
    for line in &allocations {
        let Allocations { records, core, all, inputs } = line;
        let [core_a_record, all_a_record] = [*core, *all].map(|round| line.a_record(round));
        println!(
            "| {records} | {core:.2} | {core_a_record:.3} | {inputs} | {all:.2} | {all_a_record:.3} |"
        );
    }
    println!(
        "\nAt 1 record a round one allocation a round is one a record: the core's is that of the batch."
    );
    Ok(allocations)
}

fn allocations_of(lines: &[Vec<String>]) -> Result<Vec<Allocations>> {
    let allocations = lines.iter().map(|words| {
        let [records, core, all, inputs @ ..] = &words[..] else {
            bail!("bench-core-allocations says {words:?}");
        };
        let (core, all) = (core.parse()?, all.parse()?);
        Ok(Allocations { records: records.parse()?, core, all, inputs: inputs.join(" ") })
    });
    let allocations = allocations.collect::<Result<Vec<Allocations>>>()?;
    all_sizes("bench-core-allocations", allocations.iter().map(|line| line.records))?;
    Ok(allocations)
}

/// What says nothing of a size would be within every bound.
fn all_sizes(program: &str, sizes: impl Iterator<Item = u32>) -> Result<()> {
    let sizes: Vec<u32> = sizes.collect();
    ensure!(
        sizes == SIZES,
        "{program} says something of {sizes:?} records a round, not of {SIZES:?}"
    );
    Ok(())
}

/// What a program prints, by lines and words.
fn lines(program: &str, numbers: &[u32]) -> Result<Vec<Vec<String>>> {
    let numbers = numbers.iter().map(u32::to_string);
    let printed = output(Command::new(binary(program)).args(numbers))?;
    let words = |line: &str| line.split_ascii_whitespace().map(str::to_owned).collect();
    Ok(String::from_utf8(printed)?.lines().map(words).collect())
}

fn binary(program: &str) -> PathBuf {
    target().join("release").join(program)
}

/// Instructions of each thing once.
fn instructions() -> Result<BTreeMap<&'static str, u64>> {
    let dir = target().join("bench-core");
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let mut counts = BTreeMap::new();
    for (what, times, _) in COUNTED {
        let profile = dir.join(format!("{what}.out"));
        let (once, twice) = (collect(what, times, &profile)?, collect(what, 2 * times, &profile)?);
        let more = twice.checked_sub(once).context("more repetitions take fewer instructions")?;
        counts.insert(what, (more + times / 2) / times);
    }
    Ok(counts)
}

/// All instructions of a program that does it so many times.
fn collect(what: &str, times: u64, profile: &Path) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(binary("bench-core-instructions"))
        .args([what, &times.to_string()])
        .stdin(Stdio::null());
    let ended = valgrind.output().context("valgrind does not start: apt-get install valgrind")?;
    let printed = String::from_utf8_lossy(&ended.stderr);
    ensure!(
        ended.status.success(),
        "{what} under valgrind ended with {}:\n{printed}",
        ended.status
    );
    let collected = printed.lines().find_map(|line| line.split_once("Collected :"));
    let (_, count) = collected.with_context(|| format!("valgrind counted nothing:\n{printed}"))?;
    count.trim().parse().with_context(|| format!("valgrind counted {count}"))
}

fn limits_path() -> PathBuf {
    root().join("bench/core/instructions.json")
}

/// Compares with the file; what is above its margin.
fn compare(counts: &BTreeMap<&str, u64>) -> Result<Vec<String>> {
    let path = limits_path();
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let limits: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let (theirs, ours) = (limits["rustc"].as_str().unwrap_or("?"), rustc()?);
    let mut wrong = Vec::new();
    println!("\n| instructions of | now | on file | change |\n|:--|--:|--:|--:|");
    for (what, _, told) in COUNTED {
        let now = *counts.get(what).context("everything is counted")?;
        let filed = limits["instructions"][what].as_u64();
        let filed = filed.with_context(|| format!("{}: no {what}", path.display()))?;
        let percent = (now as f64 / filed as f64 - 1.0) * 100.0;
        println!("| {told} | {now} | {filed} | {percent:+.1} % |");
        if percent > MARGIN_PERCENT {
            wrong.push(format!(
                "{what} takes {now} instructions, {percent:.1} % more than the {filed} in bench/core/instructions.json, \
                 {MARGIN_PERCENT} % are allowed (counted there with {theirs}, here with {ours}). See what they are spent on: \
                 callgrind_annotate target/bench-core/{what}.out. If the rise is meant: cargo xtask bench core --gate \
                 --update, and commit the file"
            ));
        } else if percent < -MARGIN_PERCENT {
            println!("\n{what} has become cheaper: keep it so with --update");
        }
    }
    Ok(wrong)
}

fn update(counts: &BTreeMap<&str, u64>) -> Result<()> {
    let path = limits_path();
    let limits = json!({ "rustc": rustc()?, "instructions": counts });
    fs::write(&path, serde_json::to_string_pretty(&limits)? + "\n")
        .with_context(|| path.display().to_string())?;
    println!("\nwritten: {}", path.display());
    Ok(())
}

fn rustc() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = output(Command::new(rustc).arg("--version"))?;
    Ok(String::from_utf8(printed)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_allocation_a_proposal_is_too_many() {
        let found = |records: u32, core: f64, all: f64| {
            let line = Allocations { records, core, all, inputs: String::new() };
            line.too_many().is_some()
        };
        for records in SIZES {
            let a_proposal = f64::from(records);
            assert!(!found(records, 1.0, a_proposal + 3.0), "{records}");
            assert!(found(records, 1.0, 2.0 * a_proposal + 3.0), "{records}: by the caller");
            assert!(found(records, 2.0, a_proposal + 4.0), "{records}: by the core");
        }
    }

    #[test]
    fn a_size_without_a_figure_fails() {
        let words = |size: &u32| vec![size.to_string(), "1".into(), "1".into(), "1".into()];
        let all: Vec<Vec<String>> = SIZES.iter().map(words).collect();
        assert_eq!(times_of(&all).expect("all sizes").len(), SIZES.len());
        assert_eq!(allocations_of(&all).expect("all sizes").len(), SIZES.len());
        for few in [&all[..0], &all[1..]] {
            assert!(times_of(few).is_err() && allocations_of(few).is_err(), "{few:?}");
        }
    }
}
