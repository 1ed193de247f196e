//! What CI runs. It writes nothing to the tree.

mod dependencies;
mod lengths;
mod licence;

use std::time::Instant;

use anyhow::Result;
use clap::Args;

use crate::step::{cargo, step, succeed, target};

/// Flags of `cargo xtask ci`.
#[derive(Args)]
pub(crate) struct Options {
    /// Leaves out the documentation.
    #[arg(long)]
    quick: bool,
    /// Leaves out the tests, for a caller that has just run them.
    #[arg(long)]
    no_tests: bool,
}

/// The manifest of the fuzz targets.
const FUZZ: &str = "fuzz/Cargo.toml";
/// The manifest of what benchmarks measure beside.
const FLOOR: &str = "bench/floor/Cargo.toml";

type Step = (&'static str, fn() -> Result<String>);

/// Runs the steps in order, up to the first that fails.
pub(crate) fn run(options: &Options) -> Result<String> {
    let start = Instant::now();
    // The quick ones first.
    let all: [Step; 7] = [
        ("format", format),
        ("file lengths", lengths::check),
        ("licences", dependencies::check_licences),
        ("duplicate dependencies", dependencies::check_duplicates),
        ("clippy", clippy),
        ("tests", tests),
        ("docs", docs),
    ];
    let left_out =
        |name| (options.quick && name == "docs") || (options.no_tests && name == "tests");
    let mut steps = 0;
    for (name, work) in all.into_iter().filter(|(name, _)| !left_out(*name)) {
        step("ci", name, work)?;
        steps += 1;
    }
    Ok(format!("{steps} steps in {:.0} s", start.elapsed().as_secs_f64()))
}

fn format() -> Result<String> {
    succeed(cargo().args(["fmt", "--all", "--check"]))?;
    // Workspaces of their own.
    for manifest in [FUZZ, FLOOR] {
        succeed(cargo().args(["fmt", "--manifest-path", manifest, "--check"]))?;
    }
    Ok(String::new())
}

fn clippy() -> Result<String> {
    succeed(cargo().args([
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    let mut fuzz = cargo();
    fuzz.args(["clippy", "--locked", "--manifest-path", FUZZ, "--target-dir"]);
    fuzz.arg(target().join("fuzz-clippy")).args(["--", "-D", "warnings"]);
    // Nothing is linked, so that libFuzzer need not be built.
    succeed(fuzz.env("CUSTOM_LIBFUZZER_PATH", "/libfuzzer.a"))?;
    let mut floor = cargo();
    floor.args(["clippy", "--locked", "--manifest-path", FLOOR, "--target-dir"]);
    succeed(floor.arg(target().join("bench-floor")).args(["--", "-D", "warnings"]))?;
    Ok(String::new())
}

fn tests() -> Result<String> {
    succeed(cargo().args(["test", "--locked", "--workspace"]))?;
    Ok(String::new())
}

fn docs() -> Result<String> {
    let mut doc = cargo();
    doc.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--locked", "--workspace", "--no-deps"]);
    succeed(&mut doc)?;
    Ok(String::new())
}
