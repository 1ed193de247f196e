//! Kills voters of a real quorum under load, and checks that it keeps its promises.
//!
//! Three `quorate run --workload` processes append through whoever leads, and say on their stdout what became
//! of each record. *Acknowledged* is what we have read as such: a line that a killed process did not get out
//! whole does not count. With `--power-cut` the processes are a test build that keeps unsynced writes in
//! memory, so that SIGKILL loses them.
//!
//! - [`rounds`]: what is killed when;
//! - [`cluster`] and [`process`]: the directories and the processes;
//! - [`history`] and [`elections`]: what was promised, checked as it comes in and after each kill;
//! - [`log_copy`] and [`verdict`]: the logs, and what must be in them;
//! - [`plant`]: copies of the tree with a fault in it, which the loop has to find.

pub(crate) mod build;
pub(crate) mod cluster;
mod elections;
mod failure;
mod history;
mod lines;
mod log_copy;
mod plant;
pub(crate) mod process;
mod rounds;
mod settle;
mod verdict;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::step::target;
use build::Binary;
use cluster::Cluster;
use failure::Failure;
use plant::Plant;
use rounds::{Figures, Loop};

/// Flags of `cargo xtask kill-loop`.
#[derive(Args)]
pub(crate) struct Options {
    /// How many rounds to run.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Let SIGKILL lose what is not synced.
    #[arg(long)]
    power_cut: bool,
    /// Chooses the victims and pauses; the processes' own timing stays as it falls.
    #[arg(long)]
    seed: Option<u64>,
    /// Build with this fault, losing what is not synced, and expect to find it.
    #[arg(long, value_name = "NAME")]
    plant: Option<Plant>,
    /// Keep directories and logs even if all is well.
    #[arg(long)]
    keep: bool,
}

impl Options {
    /// The check's name in its last line.
    pub(crate) fn name(&self) -> String {
        match self.plant {
            Some(plant) => format!("kill-loop plant {plant}"),
            None if self.power_cut => "kill-loop power-cut".to_owned(),
            None => "kill-loop".to_owned(),
        }
    }
}

/// Small, so that segments roll every few seconds.
const SEGMENT_BYTES: u32 = 128 << 10;

/// Builds, runs the rounds, judges, and cleans up if all is well.
pub(crate) fn run(options: &Options) -> Result<String> {
    let binary = match options.plant {
        Some(plant) => plant::build(plant)?,
        None if options.power_cut => build::power_cut()?,
        None => build::release("kill-loop")?,
    };
    let seed = options.seed.unwrap_or_else(clock_seed);
    let dir = target().join("kill-loop").join(format!("{}-{seed}", std::process::id()));
    println!("kill-loop: seed {seed}, directories and logs in {}", dir.display());
    let mut rounds_done = 0;
    let result = judge(options, &binary, seed, &dir, &mut rounds_done);
    let keep = options.keep || (result.is_err() && options.plant.is_none());
    match (options.plant, result) {
        (None, Ok(figures)) => {
            clean_up(&dir, keep)?;
            Ok(figures.to_string())
        }
        (None, Err(failure)) => {
            bail!("round {}: {failure}; seed {seed}, see {}", rounds_done + 1, dir.display())
        }
        (Some(_), Err(Failure::Found { check, detail })) => {
            println!("kill-loop: {check}: {detail}");
            clean_up(&dir, keep)?;
            Ok(format!("caught in round {} by {check}", rounds_done + 1))
        }
        (Some(_), Err(Failure::Broken(error))) => Err(error),
        (Some(_), Ok(figures)) => {
            bail!("not caught: {figures}; seed {seed}, see {}", dir.display())
        }
    }
}

fn judge(
    options: &Options,
    binary: &Binary,
    seed: u64,
    dir: &std::path::Path,
    rounds_done: &mut u32,
) -> Result<Figures, Failure> {
    let cluster = Cluster::format(
        binary,
        dir.to_owned(),
        &format!("internal.metadata.log.segment.bytes={SEGMENT_BYTES}\n"),
    )?;
    let mut looping = Loop::start(cluster, seed)?;
    for round in 1..=options.rounds {
        looping.round(round, options.rounds)?;
        *rounds_done = round;
    }
    looping.finish()
}

fn clean_up(dir: &PathBuf, keep: bool) -> Result<()> {
    if !keep {
        std::fs::remove_dir_all(dir).with_context(|| dir.display().to_string())?;
    }
    Ok(())
}

/// Another seed for each run.
fn clock_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ (now.as_secs() << 20)
}
