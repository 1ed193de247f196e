//! The fuzz targets: libFuzzer, guided by coverage that stable Rust can build.
//!
//! The crate `fuzz` has targets, corpus and a lock file of its own. Here it is built with the flags that make LLVM
//! count the edges, and run one target after another. What is found stays in `target/fuzz`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::step::{cargo, root, succeed, target};

mod seeds;

/// Flags of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct Options {
    /// One target instead of all.
    #[arg(long)]
    target: Option<String>,
    /// How long each target is fuzzed.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Replays the corpus and fuzzes each target for a few seconds, from the same seed each time.
    #[arg(long, conflicts_with = "seconds")]
    smoke: bool,
    /// Runs this input alone.
    #[arg(long, value_name = "FILE", requires = "target")]
    replay: Option<PathBuf>,
    /// Makes the corpus in the tree anew: of it and of all that was found so far, the smallest inputs that cover what
    /// the golden data do not.
    #[arg(long, conflicts_with_all = ["smoke", "seconds", "replay"])]
    minimise: bool,
}

/// A fuzz target and the longest input that it is worth trying, in bytes.
struct Target {
    name: &'static str,
    max_len: u32,
}

const TARGETS: [Target; 5] = [
    Target { name: "wire", max_len: 1024 },
    Target { name: "rpc", max_len: 1024 },
    Target { name: "log", max_len: 4096 },
    Target { name: "files", max_len: 1024 },
    Target { name: "replica", max_len: 1024 },
];

const SMOKE_SECONDS: u32 = 5;

/// The most that a target may take in memory. An input's own bound is in the targets, and much tighter.
const RSS_MIB: u32 = 1024;

/// No input takes so long, in seconds.
const TIMEOUT_SECONDS: u32 = 10;

/// The most that the whole corpus in the tree may take, in bytes.
const MAX_CORPUS: u64 = 300 << 10;

/// The most inputs of a target in the tree, besides those that once failed.
const MOST_INPUTS: usize = 250;

/// What counts edges and comparisons for libFuzzer, as cargo-fuzz sets it; and every assertion counts.
const RUSTFLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Cdebug-assertions -Coverflow-checks";

/// Builds the targets and runs those that were asked for.
pub(crate) fn run(options: &Options) -> Result<String> {
    let targets: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| options.target.as_ref().is_none_or(|name| name == target.name))
        .collect();
    if targets.is_empty() {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        bail!("there is no such target; there are {}", names.join(", "));
    }
    let binaries = build()?;
    if let ([target], Some(input)) = (&targets[..], &options.replay) {
        let input = std::path::absolute(input)?;
        succeed(command(target, &binaries).arg(&input))?;
        return Ok(format!("{} takes {}", target.name, input.display()));
    }
    seeds::write(&emptied(work_dir("seeds"))?)?;
    if options.minimise {
        for target in &targets {
            minimise(target, &binaries)?;
        }
        return Ok(format!("the corpus takes {} KiB", corpus_bytes()?.div_ceil(1024)));
    }
    let bytes = corpus_bytes()?;
    if bytes > MAX_CORPUS {
        bail!(
            "the corpus takes {bytes} bytes, more than {MAX_CORPUS}: cargo xtask fuzz --minimise"
        );
    }
    let start = Instant::now();
    let mut executions = 0;
    for target in &targets {
        executions += fuzz(target, &binaries, options)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(format!("{} targets, {executions} executions in {seconds:.0} s", targets.len()))
}

/// Builds the targets, for the host as another platform: build scripts and macros are then left as they are.
fn build() -> Result<PathBuf> {
    if Command::new("c++").arg("--version").stdout(Stdio::null()).status().is_err()
        && std::env::var_os("CXX").is_none()
    {
        bail!(
            "libFuzzer is C++, and there is no compiler for it: install g++ or clang, or set CXX"
        );
    }
    let host = host()?;
    let folder = target().join("fuzz");
    let mut build = cargo();
    build.current_dir(root().join("fuzz"));
    build.args(["build", "--quiet", "--release", "--locked", "--target", &host, "--target-dir"]);
    // These would be taken instead of the flags, or beside them.
    build.arg(&folder).env("RUSTFLAGS", RUSTFLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let start = Instant::now();
    succeed(&mut build).context("the targets do not build")?;
    println!("fuzz: built in {:.0} s", start.elapsed().as_secs_f64());
    Ok(folder.join(host).join("release"))
}

fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().context("rustc does not start")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

fn corpus(name: &str) -> PathBuf {
    root().join("fuzz/corpus").join(name)
}

/// A folder below `target/fuzz`.
fn work_dir(name: &str) -> PathBuf {
    target().join("fuzz").join(name)
}

/// Golden data as inputs.
fn seeds_of(name: &str) -> PathBuf {
    work_dir("seeds").join(name)
}

fn emptied(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    made(folder)
}

fn made(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

fn command(target: &Target, binaries: &Path) -> Command {
    let mut command = Command::new(binaries.join(target.name));
    command.current_dir(root()).stdin(Stdio::null());
    command.arg(format!("-max_len={}", target.max_len));
    command.arg(format!("-rss_limit_mb={RSS_MIB}"));
    command.arg(format!("-timeout={TIMEOUT_SECONDS}"));
    command
}

/// Fuzzes one target; gives how many inputs were executed.
fn fuzz(target: &Target, binaries: &Path, options: &Options) -> Result<u64> {
    let name = target.name;
    let found = work_dir("found");
    made(found.clone())?;
    // What covers something new is kept from run to run, but a smoke run is always the same.
    let kept = match options.smoke {
        true => emptied(work_dir("smoke").join(name))?,
        false => made(work_dir("corpus").join(name))?,
    };
    let seconds = if options.smoke { SMOKE_SECONDS } else { options.seconds };
    let mut run = command(target, binaries);
    run.arg(format!("-max_total_time={seconds}"));
    run.arg(format!("-artifact_prefix={}/{name}-", found.display()));
    if options.smoke {
        run.arg("-seed=1");
    }
    run.args([kept, corpus(name), made(seeds_of(name))?]);
    let output = run.output().with_context(|| format!("{name} does not start"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        print!("{log}");
        bail!("{name}: {}", failure(name, &log));
    }
    let last = |word: &str| log.lines().rev().find(|line| line.contains(word));
    let done = last("DONE").context("libFuzzer does not say how it ended")?;
    let inputs = last("INITED").map_or(0, executed);
    println!(
        "fuzz: {name}: {} executions, of them {inputs} of the corpus; coverage {}, features {}",
        executed(done),
        after(done, "cov: "),
        after(done, "ft: "),
    );
    Ok(executed(done))
}

/// What went wrong, the input, and how to see it again.
fn failure(name: &str, log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let what = match panic {
        Some(at) => lines.get(at..lines.len().min(at + 2)).unwrap_or(&[]).join(" "),
        None => {
            let error = lines.iter().find(|line| line.contains("ERROR: libFuzzer"));
            error.map_or("it failed", |line| line.trim()).to_owned()
        }
    };
    match log.split("Test unit written to ").nth(1).and_then(|rest| rest.lines().next()) {
        Some(file) => format!(
            "{what}; the input is {file}, see it with: cargo xtask fuzz --target {name} --replay {file}"
        ),
        None => what,
    }
}

/// `#1234` at the front of a line of libFuzzer's.
fn executed(line: &str) -> u64 {
    let digits = line.trim_start_matches('#').split_whitespace().next().unwrap_or("");
    digits.parse().unwrap_or(0)
}

fn after<'a>(line: &'a str, word: &str) -> &'a str {
    let rest = line.split(word).nth(1).unwrap_or("?");
    rest.split_whitespace().next().unwrap_or("?")
}

/// Makes one target's corpus anew out of itself and what was found by fuzzing.
fn minimise(target: &Target, binaries: &Path) -> Result<()> {
    let name = target.name;
    let merged = emptied(work_dir("merged").join(name))?;
    // What is there when the merge begins counts as covered.
    copy_all(&files(&made(seeds_of(name))?)?, &merged)?;
    let mut merge = command(target, binaries);
    // Edges alone: how often each was taken would keep thousands of inputs.
    merge.args(["-set_cover_merge=1", "-use_counters=0"]).arg(&merged);
    merge.args([corpus(name), made(work_dir("corpus").join(name))?]);
    let output = merge.output().with_context(|| format!("{name} does not start"))?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        print!("{log}");
        bail!("{name}: {}", failure(name, &log));
    }
    // libFuzzer names inputs by their hashes. One with another name once failed: it stays, whatever it covers.
    let is_hash = |name: &str| name.len() == 40 && name.bytes().all(|c| c.is_ascii_hexdigit());
    for path in files(&corpus(name))? {
        if path.file_name().is_some_and(|name| is_hash(&name.to_string_lossy())) {
            fs::remove_file(&path)?;
        }
    }
    for path in files(&seeds_of(name))? {
        fs::remove_file(merged.join(path.file_name().unwrap_or_default()))?;
    }
    // libFuzzer writes first what covers the most.
    let mut inputs = files(&merged)?;
    inputs.sort_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok());
    inputs.truncate(MOST_INPUTS);
    let (count, bytes) = copy_all(&inputs, &corpus(name))?;
    println!("fuzz: {name}: {count} inputs, {bytes} bytes");
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Copies files into a folder; gives how many they are, and how many bytes.
fn copy_all(from: &[PathBuf], to: &Path) -> Result<(usize, u64)> {
    let mut bytes = 0;
    for path in from {
        bytes += fs::copy(path, to.join(path.file_name().unwrap_or_default()))?;
    }
    Ok((from.len(), bytes))
}

fn corpus_bytes() -> Result<u64> {
    let mut bytes = 0;
    for target in &TARGETS {
        for path in files(&corpus(target.name))? {
            bytes += fs::metadata(path)?.len();
        }
    }
    Ok(bytes)
}
