//! `cargo xtask vectors [FILE...]`: the codec against golden vectors.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use quorate_wire::vectors::{Report, check_file};

use crate::step::root;

/// Flags of `cargo xtask vectors`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Files in the form of testdata/wire, one JSON object a line; without any, those of testdata/wire.
    files: Vec<PathBuf>,
}

/// Checks all files, and names every line that is not as it should be.
pub(crate) fn run(options: &Options) -> Result<String> {
    let files = if options.files.is_empty() { own_files()? } else { options.files.clone() };
    let mut total = Report::default();
    for file in files {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let report = check_file(&text);
        println!("{}: {}", file.display(), figures(&report));
        for (message, count) in &report.left_out {
            println!("  left out, not built: {message} ({count})");
        }
        for line in &report.stricter {
            println!("  passed, stricter than Java: {line}");
        }
        for line in &report.failed {
            println!("  FAILED {line}");
        }
        total.merge(report);
    }
    if !total.failed.is_empty() {
        bail!(figures(&total));
    }
    if total.passed + total.left_out_count() == 0 {
        bail!("there is nothing to check");
    }
    Ok(figures(&total))
}

fn own_files() -> Result<Vec<PathBuf>> {
    let folder = root().join("testdata/wire");
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()
        .with_context(|| format!("cannot list {}", folder.display()))?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    Ok(files)
}

fn figures(report: &Report) -> String {
    let (passed, failed) = (report.passed, report.failed.len());
    format!("{passed} passed, {failed} failed, {} left out", report.left_out_count())
}
