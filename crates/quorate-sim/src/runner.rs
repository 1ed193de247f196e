//! Many seeds, several at a time; the first failure ends it.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::run::run;
use crate::scenarios::Scenario;
use crate::statistics::Statistics;
use crate::workload::Workload;
use crate::world::Failure;

/// What runs added up to, and the seed that failed with its failure, if one did.
pub type Ended = (Statistics, Option<(u64, Failure)>);

/// How seeds are run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// How many at a time.
    pub jobs: usize,
    /// Checkers that keep silent, by name: to learn whether others see the same fault.
    pub silent: &'a [String],
}

impl Options<'_> {
    /// All checkers speak.
    pub fn with_jobs(jobs: usize) -> Options<'static> {
        Options { jobs, silent: &[] }
    }
}

/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(5);

/// So many seeds are written into a resume file at once.
const CHUNK: u64 = 100;

/// Runs the seeds of this range. The seed with its failure, if there was one.
///
/// # Errors
/// No thread can be started.
pub fn run_seeds(
    scenario: &'static Scenario,
    seeds: std::ops::Range<u64>,
    options: Options<'_>,
    workload: &impl Workload,
) -> Result<Ended> {
    let next = AtomicU64::new(seeds.start);
    let stop = AtomicBool::new(false);
    let (results, incoming) = mpsc::channel();
    let mut statistics = Statistics::default();
    let mut failed: Option<(u64, Failure)> = None;
    thread::scope(|scope| -> Result<()> {
        for _ in 0..options.jobs.max(1) {
            let (results, next, stop) = (results.clone(), &next, &stop);
            thread::Builder::new().spawn_scoped(scope, move || {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let mut plan = scenario.draw(seed);
                    plan.silent = options.silent.to_vec();
                    let mut outcome = run(&plan, seed, workload);
                    if outcome.failure.is_none()
                        && !plan.is_silent("scenario")
                        && let Err(what) = (scenario.expect)(&plan, &outcome.history)
                    {
                        outcome.failure =
                            Some(Failure { checker: "scenario", what, at: outcome.time, node: 0 });
                    }
                    if results.send((seed, outcome)).is_err() {
                        return;
                    }
                }
            })?;
        }
        drop(results);
        for (seed, outcome) in incoming {
            match outcome.failure.clone() {
                Some(failure) => {
                    stop.store(true, Ordering::Relaxed);
                    // The smallest of those that failed at the same time.
                    if failed.as_ref().is_none_or(|(first, _)| seed < *first) {
                        failed = Some((seed, failure));
                    }
                }
                None => statistics.add(&outcome),
            }
        }
        Ok(())
    })?;
    Ok((statistics, failed))
}

/// Runs `count` seeds from 0 on in pieces, tells how far it is, and notes in a file, if one is given, what is
/// done: with the same file it goes on from there.
///
/// # Errors
/// The file is of another scenario, or cannot be read or written.
pub fn run_many(
    scenario: &'static Scenario,
    count: u64,
    options: Options<'_>,
    resume: Option<&Path>,
    workload: &impl Workload,
) -> Result<(Ended, Duration)> {
    let (mut done, mut statistics, mut spent) = match resume {
        Some(path) => read(scenario, path)?,
        None => (0, Statistics::default(), Duration::ZERO),
    };
    let mut told = Instant::now();
    while done < count {
        let start = Instant::now();
        let end = count.min(done + CHUNK);
        let (more, failed) = run_seeds(scenario, done..end, options, workload)?;
        spent += start.elapsed();
        statistics.merge(&more);
        if failed.is_some() {
            return Ok(((statistics, failed), spent));
        }
        done = end;
        if let Some(path) = resume {
            write(scenario, path, done, &statistics, spent)?;
        }
        if told.elapsed() >= PROGRESS && done < count {
            told = Instant::now();
            println!("sim: {done} of {count}: {}", statistics.summary(spent));
            let _ = std::io::stdout().flush();
        }
    }
    Ok(((statistics, None), spent))
}

fn read(scenario: &Scenario, path: &Path) -> Result<(u64, Statistics, Duration)> {
    let fresh = (0, Statistics::default(), Duration::ZERO);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(fresh),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let mut lines = text.lines();
    if lines.next() != Some(scenario.name) {
        bail!("{} is of another scenario than {}", path.display(), scenario.name);
    }
    let numbers: Vec<u64> = lines
        .flat_map(|line| line.split_whitespace())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{} is no resume file", path.display()))?;
    let [done, runs, time, events, committed, digest, spent, counts @ ..] = numbers.as_slice()
    else {
        bail!("{} is cut short", path.display());
    };
    let mut statistics = Statistics {
        runs: *runs,
        time: *time,
        events: *events,
        committed: *committed,
        digest: *digest,
        ..Statistics::default()
    };
    if counts.len() != 2 * statistics.counts.len() {
        bail!("{} was written by another version: remove it to begin anew", path.display());
    }
    for (sums, pair) in statistics.counts.iter_mut().zip(counts.chunks_exact(2)) {
        *sums = (pair[0], pair[1]);
    }
    Ok((*done, statistics, Duration::from_millis(*spent)))
}

fn write(
    scenario: &Scenario,
    path: &Path,
    done: u64,
    statistics: &Statistics,
    spent: Duration,
) -> Result<()> {
    let Statistics { runs, time, events, committed, digest, counts } = statistics;
    let mut text = format!(
        "{}\n{done} {runs} {time} {events} {committed} {digest} {}\n",
        scenario.name,
        spent.as_millis()
    );
    for (times, runs) in counts {
        text.push_str(&format!("{times} {runs}\n"));
    }
    let beside = path.with_extension("tmp");
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .with_context(|| path.display().to_string())
}
