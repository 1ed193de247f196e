//! How fast records commit: closed loops of N records in flight, and open loops at a rate.
//!
//! - [`floor`], [`quorate`], [`etcd`], [`kafka`]: each runs one system once, from nothing, and gives a
//!   [`sample::Sample`];
//! - [`generator`]: what the load generators print;
//! - [`ceiling`]: the highest rate that a system keeps up with;
//! - [`report`]: medians, ratios and targets.
//!
//! The systems alternate within a round, and each runs alone: a machine that is slow for a minute is slow for all.

mod ceiling;
mod etcd;
mod floor;
mod generator;
mod kafka;
pub(super) mod machine;
mod quorate;
mod report;
mod sample;
mod who;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::report::{Ceiling, Measured, Results};
use self::sample::{Load, Sample, Window};
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
    /// How often each row of Kafka's is measured, with its default linger and with 0.
    #[arg(long, value_name = "ROUNDS", default_value_t = 1)]
    kafka_rounds: u32,
    /// How long Kafka's load runs until its figures are taken: they look back over a minute and more.
    #[arg(long, value_name = "SECONDS", default_value_t = 95, value_parser = clap::value_parser!(u64).range(35..=3600))]
    kafka_seconds: u64,
    /// Looks for the highest rate at which Quorate, and Kafka with linger 0, keep p99 below 50 ms.
    #[arg(long)]
    ceiling: bool,
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
        plan,
        dir,
        results: Results::default(),
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

/// What is measured how.
struct Plan {
    systems: Vec<System>,
    in_flight: Vec<u32>,
    rates: Vec<u32>,
    rounds: u32,
    kafka_rounds: u32,
    kafka_length: Duration,
    ceiling: bool,
    window: Window,
}

impl Plan {
    fn new(options: &Options) -> Result<Plan> {
        let Ok(warm_up) = Duration::try_from_secs_f64(options.warm_up) else {
            bail!("--warm-up {}: give seconds", options.warm_up);
        };
        let window = Window {
            record_bytes: options.record_bytes,
            batch: options.batch,
            warm_up,
            length: Duration::from_secs(options.seconds),
        };
        if options.quick {
            return Ok(Plan {
                systems: vec![System::Floor, System::Quorate],
                in_flight: vec![1, 64],
                rates: Vec::new(),
                rounds: 1,
                kafka_rounds: 0,
                kafka_length: Duration::ZERO,
                ceiling: false,
                window: Window {
                    warm_up: Duration::from_millis(300),
                    length: Duration::from_secs(1),
                    ..window
                },
            });
        }
        let has_kafka = options.systems.contains(&System::Kafka);
        Ok(Plan {
            systems: options.systems.clone(),
            in_flight: options.inflight.clone(),
            rates: options.rates.clone().unwrap_or_else(|| match has_kafka {
                true => vec![100, 20_000, 60_000],
                false => Vec::new(),
            }),
            rounds: options.rounds,
            kafka_rounds: options.kafka_rounds,
            kafka_length: Duration::from_secs(options.kafka_seconds),
            ceiling: options.ceiling,
            window,
        })
    }

    fn has(&self, system: System) -> bool {
        self.systems.contains(&system)
    }
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

impl Bench {
    fn measure_all(&mut self) -> Result<()> {
        for round in 1..=self.plan.rounds.max(self.plan.kafka_rounds) {
            if round <= self.plan.rounds {
                for in_flight in self.plan.in_flight.clone() {
                    self.closed(round, in_flight)?;
                }
            }
            for rate in self.plan.rates.clone() {
                self.open(round, rate)?;
            }
        }
        if self.plan.ceiling {
            self.ceilings()?;
        }
        Ok(())
    }

    /// One row of the closed loop, of all systems.
    fn closed(&mut self, round: u32, in_flight: u32) -> Result<()> {
        let load = Load::Closed(in_flight);
        let window = self.plan.window;
        if let Some(binary) = self.systems.floor.clone() {
            self.sample(Who::Floor, load, round, |dir| {
                floor::measure(&binary, dir, in_flight, &window)
            })?;
        }
        if let Some(binary) = self.systems.quorate.clone() {
            self.sample(Who::Quorate, load, round, |dir| {
                quorate::measure(&binary, dir, load, &window)
            })?;
        }
        if let Some(etcd) = self.systems.etcd.clone() {
            self.sample(Who::Etcd, load, round, |dir| {
                etcd::measure(&etcd, dir, in_flight, &window)
            })?;
        }
        Ok(())
    }

    /// One row of the open loop, of those that have one.
    fn open(&mut self, round: u32, rate: u32) -> Result<()> {
        let load = Load::Open(rate);
        let Plan { window, kafka_length, kafka_rounds, rounds, .. } = self.plan;
        if let Some(binary) = self.systems.quorate.clone()
            && round <= rounds
        {
            self.sample(Who::Quorate, load, round, |dir| {
                quorate::measure(&binary, dir, load, &window)
            })?;
        }
        if let Some(release) = self.systems.kafka.clone()
            && round <= kafka_rounds
        {
            for (who, linger_ms) in [(Who::Kafka, None), (Who::KafkaNoLinger, Some(0))] {
                let run = kafka::Run { rate, linger_ms, length: kafka_length };
                self.sample(who, load, round, |dir| kafka::measure(&release, dir, run, &window))?;
            }
        }
        Ok(())
    }

    /// The highest rates of those that are driven at a rate.
    fn ceilings(&mut self) -> Result<()> {
        let window = self.plan.window;
        if let Some(binary) = self.systems.quorate.clone() {
            self.ceiling(Who::Quorate, 200_000, |dir, rate| {
                quorate::measure(&binary, dir, Load::Open(rate), &window)
            })?;
        }
        if let Some(release) = self.systems.kafka.clone() {
            let length = self.plan.kafka_length;
            self.ceiling(Who::KafkaNoLinger, 20_000, |dir, rate| {
                let run = kafka::Run { rate, linger_ms: Some(0), length };
                kafka::measure(&release, dir, run, &window)
            })?;
        }
        Ok(())
    }

    fn ceiling(
        &mut self,
        who: Who,
        first: u32,
        measure: impl Fn(&Path, u32) -> Result<Sample>,
    ) -> Result<()> {
        let rate = ceiling::find(first, |rate| {
            let what = format!("ceiling, {}, {}", Load::Open(rate), who.name());
            let sample = self.measure(&what, |dir| measure(dir, rate))?;
            Ok(ceiling::keeps_up(rate, &sample))
        })?;
        self.results.ceilings.push(Ceiling { who, rate });
        Ok(())
    }

    fn sample(
        &mut self,
        who: Who,
        load: Load,
        round: u32,
        measure: impl FnOnce(&Path) -> Result<Sample>,
    ) -> Result<()> {
        let what = format!("round {round}, {load}, {}", who.name());
        let sample = self.measure(&what, measure)?;
        self.results.measured.push(Measured { who, load, round, sample });
        Ok(())
    }

    /// One measurement, in a directory of its own.
    fn measure(&self, what: &str, measure: impl FnOnce(&Path) -> Result<Sample>) -> Result<Sample> {
        let dir = self.dir.join("sample");
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        // What others have left for the disk to do is not ours to measure.
        rustix::fs::sync();
        let start = Instant::now();
        let sample = measure(&dir).with_context(|| what.to_owned())?;
        println!("{CHECK}: {what}: {sample} ({:.0} s)", start.elapsed().as_secs_f64());
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
        Ok(sample)
    }
}
