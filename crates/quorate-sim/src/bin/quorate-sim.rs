//! The simulator's command; `cargo xtask sim` builds and runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use quorate_sim::scenarios::{self, Scenario};
use quorate_sim::workload::Ledger;
use quorate_sim::{Failure, checkers, runner, story};

/// Seeded clusters on a simulated clock, network and disk, checked after every event.
#[derive(Parser)]
#[command(name = "cargo xtask sim")]
struct Options {
    /// Which scenario; `--list` names them.
    #[arg(long, default_value = "default")]
    scenario: String,
    /// How many seeds, from 0 on.
    #[arg(long, default_value_t = 300)]
    seeds: u64,
    /// Runs this seed alone.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// How many seeds run at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Lets this checker keep silent: does another see the same fault? Repeatable.
    #[arg(long, value_name = "CHECKER")]
    without: Vec<String>,
    /// Lists the scenarios and the checkers.
    #[arg(long)]
    list: bool,
    /// Prints all that happens in the run of `--seed`.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Notes in this file what is done, and goes on from there.
    #[arg(long)]
    resume: Option<PathBuf>,
    /// Runs each seed by this other build of this command too, and compares what became of it: a debug build, say.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["resume", "trace"])]
    against: Option<PathBuf>,
    /// Does not cut a failure down to a short story.
    #[arg(long)]
    no_shrink: bool,
    /// Where stories of failures go.
    #[arg(long, default_value = "target/sim")]
    stories: PathBuf,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(Ok(figures)) => {
            println!("PASS sim: {figures}");
            ExitCode::SUCCESS
        }
        Ok(Err(finding)) => {
            println!("FAIL sim: {finding}");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("FAIL sim: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<Result<String, String>> {
    if options.list {
        for scenario in scenarios::ALL {
            println!("{:<24} {:<6} {}", scenario.name, scenario.row.unwrap_or(""), scenario.about);
        }
        let names = checkers::names();
        for name in &names {
            println!("checker {name}");
        }
        return Ok(Ok(format!("{} scenarios, {} checkers", scenarios::ALL.len(), names.len())));
    }
    let known = [checkers::names().as_slice(), checkers::OTHER_VOICES].concat();
    if let Some(name) = options.without.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no checker is named {name}; there are {}", known.join(", "));
    }
    let scenario = scenarios::find(&options.scenario)
        .with_context(|| format!("no scenario is named {}; --list names them", options.scenario))?;
    if let Some(other) = &options.against {
        return compare(options, scenario, other);
    }
    if let Some(seed) = options.seed {
        return one(options, scenario, seed);
    }
    let how = runner::Options { jobs: options.jobs, silent: &options.without };
    let resume = options.resume.as_deref();
    let ((statistics, failed), spent) =
        runner::run_many(scenario, options.seeds, how, resume, &Ledger)?;
    print!("{}", statistics.table());
    match failed {
        Some((seed, failure)) => Ok(Err(report(options, scenario, seed, &failure)?)),
        None => {
            // What hardly ever happens is hardly ever checked.
            let rare = statistics.rare();
            if options.scenario == scenarios::ALL[0].name
                && statistics.runs >= ENOUGH
                && !rare.is_empty()
            {
                return Ok(Err(format!("in less than 1 % of the seeds: {}", rare.join(", "))));
            }
            Ok(Ok(format!("{}: {}", scenario.name, statistics.summary(spent))))
        }
    }
}

/// From so many seeds of the default scenario on, everything that is counted has to show in one of a hundred.
const ENOUGH: u64 = 1000;

fn one(
    options: &Options,
    scenario: &'static Scenario,
    seed: u64,
) -> Result<Result<String, String>> {
    let start = Instant::now();
    let how = runner::Options { jobs: 1, silent: &options.without };
    let (statistics, failed) = runner::run_seeds(scenario, seed..seed + 1, how, &Ledger)?;
    let spent = start.elapsed();
    if options.trace {
        story::print(&scenario.draw(seed), seed, &Ledger);
    }
    match failed {
        Some((seed, failure)) => Ok(Err(report(options, scenario, seed, &failure)?)),
        None => Ok(Ok(format!("{} seed {seed}: {}", scenario.name, statistics.summary(spent)))),
    }
}

/// Whether another build, in a process of its own, gives the same runs.
fn compare(
    options: &Options,
    scenario: &'static Scenario,
    other: &Path,
) -> Result<Result<String, String>> {
    let seeds = options.seed.map_or(0..options.seeds, |seed| seed..seed + 1);
    let how = runner::Options { jobs: 1, silent: &options.without };
    for seed in seeds.clone() {
        let (statistics, failed) = runner::run_seeds(scenario, seed..seed + 1, how, &Ledger)?;
        if let Some((seed, failure)) = failed {
            return Ok(Err(report(options, scenario, seed, &failure)?));
        }
        let output = Command::new(other)
            .args(["--scenario", scenario.name, "--seed", &seed.to_string()])
            .output()
            .with_context(|| other.display().to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let digest = format!("digest {:016x}", statistics.digest);
        let last = said.lines().last().unwrap_or("nothing");
        if !last.starts_with("PASS") || !last.ends_with(&digest) {
            return Ok(Err(format!(
                "seed {seed}: {digest} here, but {} says: {last}",
                other.display()
            )));
        }
    }
    let count = seeds.end - seeds.start;
    Ok(Ok(format!("{}: {count} seeds give the same digests in {}", scenario.name, other.display())))
}

/// Writes the story of a failure, and says how to replay it.
fn report(
    options: &Options,
    scenario: &'static Scenario,
    seed: u64,
    failure: &Failure,
) -> Result<String> {
    let name = scenario.name;
    if !options.no_shrink && options.without.is_empty() {
        let folder = options.stories.join(seed.to_string());
        let told = story::write(scenario, seed, failure, &folder, &Ledger)?;
        println!("sim: the story, {told}, is in {}", folder.display());
    }
    Ok(format!(
        "seed {seed} checker {}: {} (replay: cargo xtask sim --scenario {name} --seed {seed})",
        failure.checker, failure.what
    ))
}
