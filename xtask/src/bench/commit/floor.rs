//! The floor: a model of what pull replication can reach at best, in one process.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::sample::{Sample, Used, Window};
use crate::interop::process::Process;
use crate::step::{cargo, root, succeed, target};
use crate::usage;

/// Builds it, in a target folder of its own.
pub(super) fn build() -> Result<PathBuf> {
    let folder = target().join("bench-floor");
    let mut build = cargo();
    build.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]);
    build.arg(root().join("bench/floor/Cargo.toml")).arg("--target-dir").arg(&folder);
    succeed(&mut build).context("bench/floor does not build")?;
    Ok(folder.join("release").join("floor"))
}

/// How often its use of processor and memory is read; what it uses after the last time is missed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs one row.
pub(super) fn measure(
    binary: &Path,
    dir: &Path,
    in_flight: u32,
    window: &Window,
) -> Result<Sample> {
    let mut command = std::process::Command::new(binary);
    let seconds = window.length.as_secs().max(1);
    command.arg(dir.join("files"));
    command.args([in_flight, window.record_bytes].map(|number| number.to_string()));
    command.args([&seconds.to_string(), "fdatasync"]);
    let log = dir.join("floor.log");
    let (process, _stdin, mut stdout) = Process::start_piped("floor", &command, &log)?;
    let printed = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let mut used = Used::default();
    while !printed.is_finished() {
        // It may end while it is looked at.
        if usage::of(process.id()).is_ok_and(|now| now.resident_kib > 0)
            && let Ok(now) = Used::of(&[process.id()])
        {
            used = now;
        }
        thread::sleep(LOOK_EVERY);
    }
    let Ok(text) = printed.join() else { bail!("what the floor prints was not read") };
    let text = text.context("what the floor prints was not read")?;
    let row = text
        .lines()
        .nth(1)
        .with_context(|| format!("the floor printed no row: {text:?}; see {}", log.display()))?;
    parse(row, used).with_context(|| format!("a row of the floor: {row:?}"))
}

/// `mode,clients,rec,ops,ops_s,p50us,p90us,p99us,p999us,recs_per_batch`.
fn parse(row: &str, used: Used) -> Result<Sample> {
    let fields: Vec<&str> = row.split(',').collect();
    let field = |at: usize| -> Result<f64> {
        Ok(fields.get(at).context("it is too short")?.parse::<f64>()?)
    };
    Ok(Sample {
        commits_per_second: field(4)?,
        p50_us: Some(field(5)?),
        p75_us: None,
        p99_us: Some(field(7)?),
        p999_us: Some(field(8)?),
        records_per_fsync: Some(field(9)?),
        cpu_us_per_commit: used.cpu_us_since(Used::default(), field(3)?),
        memory_mib: Some(used.peak_mib),
        failed: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read() {
        let row = "fdatasync,64,256,360512,180212,338,390,447,604,64.0";
        let sample = parse(row, Used::default()).expect("a row");
        assert_eq!((sample.commits_per_second, sample.p50_us), (180_212.0, Some(338.0)));
        assert_eq!((sample.p99_us, sample.records_per_fsync), (Some(447.0), Some(64.0)));
        assert!(parse("fdatasync,64", Used::default()).is_err());
    }
}
