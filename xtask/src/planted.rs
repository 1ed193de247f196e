//! Proof that the simulator finds faults: each patch of a folder plants one in a copy of the tree, and seeds run
//! until a checker speaks.
//!
//! The head of a patch says how it is to be found (`docs/testing.md`). One without a head is looked for
//! everywhere: in the default scenario, in all others, in the exhaustive search.

mod patch;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::scratch::{self, Scratch};
use crate::step::{cargo, output, root, step, succeed, target};
use patch::Patch;

/// Flags of `cargo xtask planted`.
#[derive(Args)]
pub(crate) struct Options {
    /// These alone, by name.
    names: Vec<String>,
    /// Another folder of patches than xtask/planted.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// How many seeds run at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Lists the patches.
    #[arg(long)]
    list: bool,
    /// Only sees whether all apply.
    #[arg(long)]
    check: bool,
}

/// What the project's own folder owes: so many faults, and so many that more than [`RARE`] seeds are needed for.
const FAULTS: usize = 30;
const RARE_FAULTS: usize = 8;
const RARE: u64 = 20;

/// Seeds for a patch that does not say how many, in the default scenario and in each other.
const CAP: u64 = 2000;
const CAP_ELSEWHERE: u64 = 100;

/// No search may take longer.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn run(options: &Options) -> Result<String> {
    let start = Instant::now();
    // Patches are applied from within the copy.
    let folder = options.dir.as_ref().map(std::path::absolute).transpose()?;
    let folder = folder.unwrap_or_else(scratch::planted);
    let mut patches = Patch::all(&folder)?;
    for name in &options.names {
        if !patches.iter().any(|patch| patch.name == *name) {
            bail!("{} has no {name}.patch; --list names them", folder.display());
        }
    }
    let is_whole = options.names.is_empty() && options.dir.is_none();
    patches.retain(|patch| options.names.is_empty() || options.names.contains(&patch.name));
    if options.list {
        for patch in &patches {
            println!("{:<40} {}", patch.name, patch.fault);
        }
        return Ok(format!("{} patches", patches.len()));
    }
    let scratch = Scratch::open()?;
    step("planted", "apply", || apply_all(&scratch, &patches))?;
    if options.check {
        return Ok(format!("{} patches apply", patches.len()));
    }
    let lists = Lists::read()?;
    let mut rows = Vec::new();
    for (index, patch) in patches.iter().enumerate() {
        let name = format!("{} of {}: {}", index + 1, patches.len(), patch.name);
        // A fault that is not found does not keep the others from being looked for.
        let _ = step("planted", &name, || {
            let found = look_for(&scratch, patch, options.jobs, &lists.scenarios);
            let told = match &found {
                Ok(found) => Ok(found.to_string()),
                Err(error) => {
                    println!("planted: {}: {error:#}", patch.name);
                    Err(anyhow::anyhow!("not found"))
                }
            };
            rows.push((patch, found));
            told
        });
    }
    scratch.restore()?;
    let table = table(&rows);
    println!("\n{table}");
    let file = target().join("planted").join("table.md");
    std::fs::write(&file, table).with_context(|| file.display().to_string())?;
    let mut wrong: Vec<String> = rows
        .iter()
        .filter_map(|(patch, found)| {
            let error = found.as_ref().err()?;
            Some(format!("{}: {error:#}", patch.name))
        })
        .collect();
    if is_whole {
        wrong.extend(owed(&rows, &lists.checkers));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    let rare = rows.iter().filter(|(_, found)| is_rare(found)).count();
    let explored = rows.iter().filter(|(patch, _)| patch.explore.is_some()).count();
    let only = rows.iter().filter(|(patch, _)| patch.only.is_some()).count();
    Ok(format!(
        "{} of {} caught, {rare} in more than {RARE} seeds, {only} by a checker that alone sees them in a seed, {explored} by explore too, {:.0} s",
        rows.len(),
        rows.len(),
        start.elapsed().as_secs_f64()
    ))
}

/// A patch that no longer applies is made anew: what it planted is no longer looked for otherwise.
fn apply_all(scratch: &Scratch, patches: &[Patch]) -> Result<String> {
    scratch.restore()?;
    let stale: Vec<&str> = patches
        .iter()
        .filter(|patch| scratch.fits(&patch.path).is_err())
        .map(|patch| patch.name.as_str())
        .collect();
    if !stale.is_empty() {
        bail!("no longer apply: {}", stale.join(", "));
    }
    Ok(format!("{} patches", patches.len()))
}

/// What the simulator knows.
struct Lists {
    scenarios: Vec<String>,
    checkers: Vec<String>,
}

impl Lists {
    fn read() -> Result<Lists> {
        let listed = output(
            cargo()
                .args(["run", "--quiet", "--profile", "sim", "--package", "quorate-sim"])
                .args(["--bin", "quorate-sim", "--", "--list"]),
        )?;
        let listed = String::from_utf8_lossy(&listed);
        let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let checkers: Vec<String> =
            listed.lines().filter_map(|line| first(line.strip_prefix("checker ")?)).collect();
        let scenarios = listed
            .lines()
            .filter(|line| !line.starts_with("checker ") && !line.starts_with("PASS "))
            .filter_map(first)
            .collect();
        if checkers.is_empty() {
            bail!("the simulator lists no checkers");
        }
        Ok(Lists { scenarios, checkers })
    }
}

/// How a fault was found.
#[derive(Debug)]
struct Found {
    scenario: String,
    /// Seeds that it took, and those that it might take.
    seeds: u64,
    cap: u64,
    checker: String,
    /// What the exhaustive search said, if it was asked.
    explored: Option<String>,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} seeds ({}), {}", self.seeds, self.cap, self.scenario, self.checker)
    }
}

fn is_rare(found: &Result<Found>) -> bool {
    found.as_ref().is_ok_and(|found| found.seeds > RARE)
}

fn look_for(scratch: &Scratch, patch: &Patch, jobs: usize, scenarios: &[String]) -> Result<Found> {
    scratch.restore()?;
    scratch.apply(&patch.path)?;
    let sim = build(scratch, "quorate-sim", "quorate-sim")?;
    let mut found = match (&patch.scenario, patch.cap) {
        (None, None) => anywhere(scratch, &sim, jobs, scenarios)?,
        (scenario, cap) => {
            let scenario = scenario.as_deref().unwrap_or("default");
            let cap = cap.unwrap_or(CAP);
            match seeds(&sim, scenario, cap, jobs)? {
                Some(found) => found,
                None => bail!("not caught in {cap} seeds of {scenario}"),
            }
        }
    };
    if let Some(only) = &patch.only {
        alone(&sim, &mut found, only)?;
    }
    if let Some(bound) = &patch.explore {
        let explore = build(scratch, "quorate-explore", "quorate-explore")?;
        found.explored = Some(explored(&explore, bound)?.with_context(|| {
            format!("the exhaustive search does not find it within the bound {bound}")
        })?);
    }
    Ok(found)
}

/// Looks for a seed in which this checker speaks, and were it silent nobody would.
fn alone(sim: &Path, found: &mut Found, only: &str) -> Result<()> {
    for seed in found.seeds - 1..found.cap {
        let speaks = one(sim, &found.scenario, seed, None)?;
        if speaks.as_deref() == Some(only) && one(sim, &found.scenario, seed, Some(only))?.is_none()
        {
            (found.seeds, found.checker) = (seed + 1, only.to_owned());
            return Ok(());
        }
    }
    bail!(
        "{} speaks in {} seeds, {only} alone in none of {}",
        found.checker,
        found.seeds,
        found.cap
    )
}

/// Everywhere, one after the other.
fn anywhere(scratch: &Scratch, sim: &Path, jobs: usize, scenarios: &[String]) -> Result<Found> {
    for scenario in scenarios {
        let cap = if scenario == "default" { CAP } else { CAP_ELSEWHERE };
        if let Some(found) = seeds(sim, scenario, cap, jobs)? {
            return Ok(found);
        }
    }
    let explore = build(scratch, "quorate-explore", "quorate-explore")?;
    let Some(rule) = explored(&explore, "ci")? else {
        bail!(
            "not caught in {CAP} seeds of default, {CAP_ELSEWHERE} of each other scenario, nor by explore"
        );
    };
    let scenario = "explore ci".to_owned();
    Ok(Found { scenario, seeds: 0, cap: 0, checker: rule.clone(), explored: Some(rule) })
}

fn build(scratch: &Scratch, package: &str, binary: &str) -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--profile", "sim", "--locked", "--package", package]);
    build.args(["--bin", binary]).arg("--target-dir").arg(scratch.target());
    // What the fault leaves unused is no news.
    build.env("RUSTFLAGS", "-Awarnings").current_dir(scratch.source());
    // A fault is a few lines: what they do not touch is not compiled again.
    build.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_SIM_DEBUG", "none");
    succeed(&mut build)?;
    Ok(scratch.target().join("sim").join(binary))
}

/// The first seed that fails, if one does.
fn seeds(sim: &Path, scenario: &str, cap: u64, jobs: usize) -> Result<Option<Found>> {
    let mut command = Command::new(sim);
    command.args(["--scenario", scenario, "--no-shrink"]);
    command.arg("--seeds").arg(cap.to_string()).arg("--jobs").arg(jobs.to_string());
    Ok(failed(command)?.map(|(seed, checker)| Found {
        scenario: scenario.to_owned(),
        seeds: seed + 1,
        cap,
        checker,
        explored: None,
    }))
}

/// Which checker speaks in a seed, if one does.
fn one(sim: &Path, scenario: &str, seed: u64, without: Option<&str>) -> Result<Option<String>> {
    let mut command = Command::new(sim);
    command.args(["--scenario", scenario, "--no-shrink", "--seed", &seed.to_string()]);
    if let Some(checker) = without {
        command.args(["--without", checker]);
    }
    Ok(failed(command)?.map(|(_, checker)| checker))
}

/// The seed that fails, and the checker that speaks.
fn failed(command: Command) -> Result<Option<(u64, String)>> {
    let said = last_line(command)?;
    if said.starts_with("PASS ") {
        return Ok(None);
    }
    let words: Vec<&str> = said.split_whitespace().collect();
    let ["FAIL", "sim:", "seed", seed, "checker", checker, ..] = words.as_slice() else {
        bail!("the simulator says: {said}");
    };
    let seed = seed.parse().with_context(|| said.clone())?;
    Ok(Some((seed, checker.trim_end_matches(':').to_owned())))
}

/// The rule that the exhaustive search finds broken, if it does.
fn explored(explore: &Path, bound: &str) -> Result<Option<String>> {
    let mut command = Command::new(explore);
    command.args(["--bound", bound]);
    let said = last_line(command)?;
    if said.starts_with("PASS ") {
        return Ok(None);
    }
    let rule = said.strip_prefix("FAIL explore: ").with_context(|| format!("it says: {said}"))?;
    Ok(Some(rule.split([':', ';']).next().unwrap_or(rule).to_owned()))
}

/// The last thing that a search says; it is given up when it takes too long.
fn last_line(mut command: Command) -> Result<String> {
    let mut child = command
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{:?} does not start", command.get_program()))?;
    let mut stdout = child.stdout.take().context("no stdout")?;
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stdout.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let until = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            bail!("no end after {} s: {command:?}", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let text = reader.join().unwrap_or_default();
    let last = text.lines().rfind(|line| line.starts_with("PASS ") || line.starts_with("FAIL "));
    last.map(str::to_owned).with_context(|| format!("{command:?} ended without a verdict"))
}

/// What the folder as a whole lacks.
fn owed(rows: &[(&Patch, Result<Found>)], checkers: &[String]) -> Vec<String> {
    let mut lacks = Vec::new();
    if rows.len() < FAULTS {
        lacks.push(format!("{} faults, {FAULTS} are due", rows.len()));
    }
    let rare = rows.iter().filter(|(_, found)| is_rare(found)).count();
    if rare < RARE_FAULTS {
        lacks.push(format!("{rare} need more than {RARE} seeds, {RARE_FAULTS} are due"));
    }
    let is_alone =
        |checker: &&String| rows.iter().any(|(patch, _)| patch.only.as_ref() == Some(checker));
    let idle: Vec<&str> =
        checkers.iter().filter(|checker| !is_alone(checker)).map(String::as_str).collect();
    if !idle.is_empty() {
        lacks.push(format!("alone catch nothing: {}", idle.join(", ")));
    }
    lacks
}

/// As Markdown.
fn table(rows: &[(&Patch, Result<Found>)]) -> String {
    let mut table = String::from(
        "| Planted fault | Row | Scenario | Seeds | Cap | Caught by | Alone | Explore |\n|---|---|---|---|---|---|---|---|\n",
    );
    for (patch, found) in rows {
        let row = patch.row.as_deref().unwrap_or("");
        let _ = match found {
            Ok(found) => writeln!(
                table,
                "| {} | {row} | {} | {} | {} | {} | {} | {} |",
                patch.name,
                found.scenario,
                found.seeds,
                found.cap,
                found.checker,
                if patch.only.is_some() { "yes" } else { "" },
                found.explored.as_deref().unwrap_or("")
            ),
            Err(error) => {
                writeln!(table, "| {} | {row} | NOT CAUGHT: {error:#} | | | | | |", patch.name)
            }
        };
    }
    table
}
