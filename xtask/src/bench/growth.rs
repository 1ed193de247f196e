//! What grows with the log, the observers, the voters and the records: a table and a plot of each.
//!
//! - [`records`], [`observers`], [`voters`], [`sizes`]: one sweep each, which fills a [`table::Table`];
//! - [`load`]: a quorum under a measured load, [`start`]: one node's start, [`crowd`]: the observers;
//! - [`plot`]: a table as SVG.
//!
//! All processes share one machine. A point is the median of its rounds, a ratio that of the ratios of the rounds.

mod crowd;
mod load;
mod observers;
mod plot;
mod records;
mod sizes;
mod start;
mod table;
mod voters;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::Value;

use self::table::{Table, Target};
use crate::interop::quorum::{Make, Plan, Quorum};
use crate::kafka::Release;
use crate::kill_loop::build::{self, Binary};
use crate::step::{root, target};

/// Flags of `cargo xtask bench growth`.
#[derive(Args)]
pub(crate) struct Options {
    /// The smallest points, one short round each: whether all this works.
    #[arg(long)]
    quick: bool,
    /// What to measure.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',', default_values = ["records", "observers", "voters", "sizes"])]
    only: Vec<Sweep>,
    /// Records in the log when it is measured.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000, 10_000_000], value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    records: Vec<u32>,
    /// Observers of the leader. None at all are measured in any case.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [10, 100, 500, 1000, 2000], value_parser = clap::value_parser!(u32).range(1..=4000))]
    observers: Vec<u32>,
    /// Under which load observers are measured.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',', default_values = ["closed", "one", "rate"])]
    loads: Vec<Pressure>,
    /// How long observers have to connect and to catch up before they are measured, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    gathering: f64,
    /// Records a second where observers are measured at a rate.
    #[arg(long, value_name = "PER-SECOND", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Voters.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [1, 3, 5, 7], value_parser = clap::value_parser!(u32).range(1..=15))]
    voters: Vec<u32>,
    /// Bytes of a record.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20], value_parser = clap::value_parser!(u32).range(32..=1 << 20))]
    sizes: Vec<u32>,
    /// How often each point is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each measurement takes.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Measures this `quorate` instead of building it.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Writes every figure of every round to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the plots go.
    #[arg(long, value_name = "DIR", default_value = "bench/plots")]
    out: PathBuf,
}

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sweep {
    /// Records in the log, and the start of an empty node.
    Records,
    /// Observers of one leader.
    Observers,
    /// Voters.
    Voters,
    /// Bytes of a record.
    Sizes,
}

/// How a leader with observers is kept busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pressure {
    /// 64 records in flight.
    Closed,
    /// One record in flight.
    One,
    /// A fixed rate.
    Rate,
}

const CHECK: &str = "bench growth";

/// Measures, prints the tables, and draws the plots.
pub(crate) fn run(options: &Options) -> Result<String> {
    let dir = target().join("bench").join(format!("growth-{}", std::process::id()));
    fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let binary = match &options.binary {
        Some(path) => {
            Binary { path: path.canonicalize().with_context(|| path.display().to_string())? }
        }
        None => build::release(CHECK)?,
    };
    let bench = Bench {
        binary,
        plan: plan(options)?,
        dir,
        out: if options.quick && options.out == Path::new("bench/plots") {
            // Hardly what anybody wants to show.
            target().join("bench").join("plots")
        } else {
            root().join(&options.out)
        },
    };
    let (mut targets, mut json) = (Vec::new(), Vec::new());
    for sweep in &options.only {
        let found = match sweep {
            Sweep::Records => records::run(&bench),
            Sweep::Observers => observers::run(&bench),
            Sweep::Voters => voters::run(&bench),
            Sweep::Sizes => sizes::run(&bench),
        };
        let Found { tables, targets: more } =
            found.with_context(|| format!("see {}", bench.dir.display()))?;
        for table in &tables {
            bench.show(table)?;
            json.push(table.json());
        }
        targets.extend(more);
    }
    let tables = json.len();
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&Value::Array(json))?;
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    fs::remove_dir_all(&bench.dir).with_context(|| bench.dir.display().to_string())?;
    print!("{}", Target::table(&targets));
    let met = targets.iter().filter(|target| target.is_met()).count();
    let judged = targets.iter().filter(|target| target.found.is_some()).count();
    let figures: Vec<String> = targets.iter().map(Target::figure).collect();
    Ok(format!("{tables} tables, {met} of {judged} measured targets met: {}", figures.join(", ")))
}

/// What a sweep brings.
#[derive(Default)]
struct Found {
    tables: Vec<Table>,
    targets: Vec<Target>,
}

/// The points that are measured.
struct Points {
    records: Vec<u32>,
    observers: Vec<u32>,
    loads: Vec<Pressure>,
    rate: u32,
    voters: Vec<u32>,
    sizes: Vec<u32>,
    rounds: u32,
    /// Of an empty node.
    starts: u32,
    window: Duration,
    warm_up: Duration,
    /// Time for observers to connect and to catch up.
    gathering: Duration,
}

fn plan(options: &Options) -> Result<Points> {
    let seconds = |number: f64| {
        Duration::try_from_secs_f64(number).with_context(|| format!("{number} seconds"))
    };
    let (window, gathering) = (seconds(options.seconds)?, seconds(options.gathering)?);
    let all = Points {
        records: options.records.clone(),
        observers: options.observers.clone(),
        loads: options.loads.clone(),
        rate: options.rate,
        voters: options.voters.clone(),
        sizes: options.sizes.clone(),
        rounds: options.rounds,
        window,
        starts: options.rounds.max(5),
        warm_up: Duration::from_secs(1),
        gathering,
    };
    if !options.quick {
        return Ok(all);
    }
    Ok(Points {
        records: vec![10_000],
        observers: vec![10],
        voters: vec![1],
        sizes: vec![64],
        rounds: 1,
        starts: 2,
        window: Duration::from_millis(500),
        warm_up: Duration::from_millis(200),
        gathering: Duration::from_millis(500),
        ..all
    })
}

struct Bench {
    binary: Binary,
    plan: Points,
    dir: PathBuf,
    out: PathBuf,
}

impl Bench {
    /// Says how one point of one round went, and how long it took.
    fn point<T>(&self, what: &str, work: impl FnOnce(&Path) -> Result<(T, String)>) -> Result<T> {
        let dir = self.dir.join("point");
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        // What others have left for the disk to do is not ours to measure.
        rustix::fs::sync();
        let start = Instant::now();
        let (found, figures) = work(&dir).with_context(|| what.to_owned())?;
        println!("{CHECK}: {what}: {figures} ({:.1} s)", start.elapsed().as_secs_f64());
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
        Ok(found)
    }

    /// So many voters, formatted. `properties` are lines for the configuration of all.
    fn quorum(&self, dir: &Path, voters: u32, properties: &str) -> Result<Quorum> {
        let plan = || Plan { make: Make::Quorate(Vec::new()), properties: properties.to_owned() };
        let voters = (0..voters).map(|_| plan()).collect();
        // No jar is needed: Quorate's own formatter takes the release's name.
        let release = Release::of_family("4.4");
        Quorum::format(&self.binary.path, dir, None, false, &release, voters, None)
    }

    fn show(&self, table: &Table) -> Result<()> {
        print!("\n{}\n", table.markdown());
        fs::create_dir_all(&self.out).with_context(|| self.out.display().to_string())?;
        for plot in &table.plots {
            let file = self.out.join(format!("{}.svg", plot.name));
            fs::write(&file, plot::svg(table, plot)).with_context(|| file.display().to_string())?;
            println!("plot: {}", file.display());
        }
        println!();
        Ok(())
    }
}
