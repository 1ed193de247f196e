//! How fast records commit: closed loops of N records in flight, and open loops at a rate.
//!
//! - [`floor`], [`quorate`], [`etcd`], [`kafka`]: each runs one system once, from nothing, and gives a
//!   [`sample::Sample`];
//! - [`generator`]: what the load generators print;
//! - [`plan`]: what is measured how often, and in which order;
//! - [`ceiling`]: the highest rate that a system keeps up with;
//! - [`report`]: medians and ratios;
//! - [`targets`]: what they are to be.
//!
//! The systems alternate within a round, and each runs alone: a machine that is slow for a minute is slow for all.

mod ceiling;
mod etcd;
mod floor;
mod generator;
mod kafka;
pub(super) mod machine;
mod plan;
mod quorate;
mod report;
mod sample;
mod targets;
mod who;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::plan::{Plan, Row};
use self::report::{Measured, Results};
use self::sample::{LeadershipLost, Load, Sample, Window};
use self::targets::Ceiling;
use self::who::{System, Who};
use crate::kafka::Release;
use crate::kill_loop::build::{self, Binary};
use crate::step::{step, target};

/// Flags of `cargo xtask bench commit`.
#[derive(Args)]
pub(crate) struct Options {
    /// One round of a second, floor and Quorate alone, 1 and 64 in flight: whether all this works.
    #[arg(long)]
    quick: bool,
    /// What to measure.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',', default_values = ["floor", "quorate", "etcd", "kafka"])]
    systems: Vec<System>,
    /// Records in flight, a row of the closed loop each.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [1, 16, 64, 256, 1024], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    inflight: Vec<u32>,
    /// How often each row is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each measurement takes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// How long the load runs before that.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    warm_up: f64,
    /// Bytes of each record.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(32..=1 << 20))]
    record_bytes: u32,
    /// Records that one append of Quorate's may have: 1 is a caller for each record. As many as are due unless told.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: Option<u32>,
    /// Records a second, a row of the open loop each, for Quorate and Kafka; 100,20000,60000 if Kafka is measured, else none.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rates: Option<Vec<u32>>,
    /// How often each row of Kafka's is measured; unless told as often as others where a target is judged by it, else once.
    #[arg(long, value_name = "ROUNDS")]
    kafka_rounds: Option<u32>,
    /// How long Kafka's load runs until its figures are taken: they look back over a minute and more.
    #[arg(long, value_name = "SECONDS", default_value_t = 95, value_parser = clap::value_parser!(u64).range(35..=3600))]
    kafka_seconds: u64,
    /// Looks for the highest rate at which Quorate, and Kafka with linger 0, keep p99 below 50 ms, even if Kafka is not measured.
    #[arg(long, conflicts_with = "no_ceiling")]
    ceiling: bool,
    /// Does not look for it if Kafka is measured either.
    #[arg(long)]
    no_ceiling: bool,
    /// Measures this `quorate` instead of building it.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Writes every sample to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const CHECK: &str = "bench commit";

/// Measures, and prints the tables.
pub(crate) fn run(options: &Options) -> Result<String> {
    let plan = Plan::new(options)?;
    let dir = target().join("bench").join(format!("commit-{}", std::process::id()));
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let mut bench = Bench {
        systems: build(&plan, options.binary.as_deref())?,
        results: Results::of(&plan),
        plan,
        dir,
    };
    let measured = bench.measure_all();
    println!("\n{}", machine::describe(&bench.plan.systems, &bench.dir));
    // What was measured before a failure is worth seeing too.
    print!("\n{}", bench.results.tables());
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&bench.results.json())?;
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    measured.with_context(|| format!("see {}", bench.dir.display()))?;
    fs::remove_dir_all(&bench.dir).with_context(|| bench.dir.display().to_string())?;
    Ok(bench.results.verdict())
}

/// What was built or found of the systems that are measured.
struct Systems {
    floor: Option<PathBuf>,
    quorate: Option<Binary>,
    etcd: Option<etcd::Etcd>,
    kafka: Option<Release>,
}

fn build(plan: &Plan, binary: Option<&Path>) -> Result<Systems> {
    // First: it is quick, and what is missing is said before the rest is built.
    let kafka = plan.has(System::Kafka).then(|| Release::installed(kafka::VERSION)).transpose()?;
    let mut systems = Systems { floor: None, quorate: None, etcd: None, kafka };
    if plan.has(System::Floor) {
        step(CHECK, "build the floor", || {
            systems.floor = Some(floor::build()?);
            Ok(String::new())
        })?;
    }
    if plan.has(System::Quorate) {
        systems.quorate = Some(match binary {
            Some(path) => {
                Binary { path: path.canonicalize().with_context(|| path.display().to_string())? }
            }
            None => build::release(CHECK)?,
        });
    }
    if plan.has(System::Etcd) {
        step(CHECK, "build etcd", || {
            systems.etcd = Some(etcd::build()?);
            etcd::version()
        })?;
    }
    Ok(systems)
}

struct Bench {
    plan: Plan,
    systems: Systems,
    dir: PathBuf,
    results: Results,
}

/// For how long a rate is held that shorter trials have found.
const HOLD: Duration = Duration::from_secs(30);

impl Bench {
    fn measure_all(&mut self) -> Result<()> {
        for round in 1..=self.plan.rounds() {
            for row in self.plan.rows.clone() {
                if round <= row.rounds {
                    self.row(round, row)?;
                }
            }
        }
        for who in self.plan.ceilings.clone() {
            let ceiling = self.ceiling(who)?;
            self.results.ceilings.push(ceiling);
        }
        Ok(())
    }

    /// One round of a row.
    fn row(&mut self, round: u32, row: Row) -> Result<()> {
        let Row { who, load, .. } = row;
        let what = format!("round {round}, {load}, {}", who.name());
        let sample = self.measure(&what, |dir| {
            let sample = self.once(who, load, self.plan.length(who), dir)?;
            sample.check(who, load)?;
            Ok(sample)
        })?;
        self.results.measured.push(Measured { who, load, round, sample });
        Ok(())
    }

    /// The highest rate of a system that is driven at a rate.
    fn ceiling(&self, who: Who) -> Result<Ceiling> {
        let trial = self.plan.length(who);
        let (first, hold) = match who {
            // Its figures look back so far that each trial is as long.
            Who::Kafka | Who::KafkaNoLinger => (20_000, trial),
            _ => (200_000, HOLD.max(trial)),
        };
        let found = ceiling::find(first, |rate| self.keeps_up(who, rate, trial))?;
        let held = match hold > trial {
            true => ceiling::hold(found, |rate| {
                Ok(self.has_room(rate, hold)? && self.keeps_up(who, rate, hold)?)
            })?,
            false => found,
        };
        Ok(Ceiling { who, found, trial, held, hold })
    }

    /// Whether the disk takes a rate for so long; where it does not, a lower one is held.
    fn has_room(&self, rate: u32, length: Duration) -> Result<bool> {
        let window = Window { length, ..self.plan.window };
        let disk =
            rustix::fs::statvfs(&self.dir).with_context(|| self.dir.display().to_string())?;
        let free = disk.f_bavail as f64 * disk.f_frsize as f64;
        let has_room = ceiling::disk_bytes(rate, &window) <= free;
        if !has_room {
            println!("{CHECK}: ceiling, {}: the disk has no room for it", Load::Open(rate));
        }
        Ok(has_room)
    }

    fn keeps_up(&self, who: Who, rate: u32, length: Duration) -> Result<bool> {
        let load = Load::Open(rate);
        let what = format!("ceiling, {load} for {} s, {}", length.as_secs(), who.name());
        match self.measure(&what, |dir| self.once(who, load, length, dir)) {
            Ok(sample) => Ok(ceiling::keeps_up(rate, &sample)),
            Err(error) if error.is::<LeadershipLost>() => {
                println!("{CHECK}: {error:#}");
                self.clear()?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Runs one system, from nothing.
    fn once(&self, who: Who, load: Load, length: Duration, dir: &Path) -> Result<Sample> {
        let window = Window { length, ..self.plan.window };
        let Systems { floor, quorate, etcd, kafka } = &self.systems;
        let missing = || format!("{} was not built", who.name());
        let of_quorate = |window: &Window| {
            quorate::measure(quorate.as_ref().with_context(missing)?, dir, load, window)
        };
        let of_kafka = |rate, linger_ms| {
            let run = kafka::Run { rate, linger_ms, length };
            kafka::measure(kafka.as_ref().with_context(missing)?, dir, run, &window)
        };
        match (who, load) {
            (Who::Floor, Load::Closed(in_flight)) => {
                floor::measure(floor.as_ref().with_context(missing)?, dir, in_flight, &window)
            }
            (Who::Quorate, _) => of_quorate(&window),
            (Who::QuorateCalls, _) => of_quorate(&Window { batch: Some(1), ..window }),
            (Who::Etcd, Load::Closed(in_flight)) => {
                etcd::measure(etcd.as_ref().with_context(missing)?, dir, in_flight, &window)
            }
            (Who::Kafka, Load::Open(rate)) => of_kafka(rate, None),
            (Who::KafkaNoLinger, Load::Open(rate)) => of_kafka(rate, Some(0)),
            _ => bail!("{} has no such load", who.name()),
        }
    }

    /// One measurement, in a directory of its own.
    fn measure(&self, what: &str, measure: impl FnOnce(&Path) -> Result<Sample>) -> Result<Sample> {
        let dir = self.sample_dir();
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        // What others have left for the disk to do is not ours to measure.
        rustix::fs::sync();
        let start = Instant::now();
        let sample = measure(&dir).with_context(|| what.to_owned())?;
        println!("{CHECK}: {what}: {sample} ({:.0} s)", start.elapsed().as_secs_f64());
        self.clear()?;
        Ok(sample)
    }

    fn sample_dir(&self) -> PathBuf {
        self.dir.join("sample")
    }

    fn clear(&self) -> Result<()> {
        let dir = self.sample_dir();
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())
    }
}
