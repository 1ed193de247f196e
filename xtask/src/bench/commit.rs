//! How fast records commit: closed loops of N records in flight, and open loops at a rate.
//!
//! - [`floor`], [`quorate`]: each runs one system once, from nothing, and gives a [`sample::Sample`];
//! - [`report`]: medians, ratios and targets.
//!
//! The systems alternate within a round, and each runs alone: a machine that is slow for a minute is slow for all.

mod floor;
mod quorate;
mod report;
mod sample;
mod who;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::report::{Measured, Results};
use self::sample::{Load, Sample, Window};
use self::who::{System, Who};
use crate::kill_loop::build::{self, Binary};
use crate::step::{step, target};

/// Flags of `cargo xtask bench commit`.
#[derive(Args)]
pub(crate) struct Options {
    /// One round of a second, floor and Quorate alone, 1 and 64 in flight: whether all this works.
    #[arg(long)]
    quick: bool,
    /// What to measure.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',', default_values = ["floor", "quorate"])]
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
    rounds: u32,
    window: Window,
}

impl Plan {
    fn new(options: &Options) -> Result<Plan> {
        let Ok(warm_up) = Duration::try_from_secs_f64(options.warm_up) else {
            bail!("--warm-up {}: give seconds", options.warm_up);
        };
        let window = Window {
            record_bytes: options.record_bytes,
            warm_up,
            length: Duration::from_secs(options.seconds),
        };
        if options.quick {
            return Ok(Plan {
                systems: vec![System::Floor, System::Quorate],
                in_flight: vec![1, 64],
                rounds: 1,
                window: Window {
                    warm_up: Duration::from_millis(300),
                    length: Duration::from_secs(1),
                    ..window
                },
            });
        }
        Ok(Plan {
            systems: options.systems.clone(),
            in_flight: options.inflight.clone(),
            rounds: options.rounds,
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
}

fn build(plan: &Plan, binary: Option<&Path>) -> Result<Systems> {
    let mut systems = Systems { floor: None, quorate: None };
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
        for round in 1..=self.plan.rounds {
            for in_flight in self.plan.in_flight.clone() {
                self.closed(round, in_flight)?;
            }
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
        Ok(())
    }

    /// One measurement, in a directory of its own.
    fn sample(
        &mut self,
        who: Who,
        load: Load,
        round: u32,
        measure: impl FnOnce(&Path) -> Result<Sample>,
    ) -> Result<()> {
        let dir = self.dir.join("sample");
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        // What others have left for the disk to do is not ours to measure.
        rustix::fs::sync();
        let start = Instant::now();
        let what = format!("round {round} of {}, {load}, {}", self.plan.rounds, who.name());
        let sample = measure(&dir).with_context(|| what.clone())?;
        println!("{CHECK}: {what}: {sample} ({:.0} s)", start.elapsed().as_secs_f64());
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
        self.results.measured.push(Measured { who, load, round, sample });
        Ok(())
    }
}
