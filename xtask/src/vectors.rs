//! `cargo xtask vectors [FILE...]`: the codec against golden vectors.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use quorate_storage::{FileSystem as _, RealFs, quorum_state};
use quorate_wire::vectors::{Report, check_file};
use serde_json::Value;

use crate::step::{root, target};

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
        let report = check(&text).with_context(|| file.display().to_string())?;
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
    if !total.failed.is_empty() || total.left_out_count() > 0 {
        bail!(figures(&total));
    }
    if total.passed == 0 {
        bail!("nothing was checked: {}", figures(&total));
    }
    Ok(figures(&total))
}

/// Checks a file. Its quorum-state files are storage's affair, all other lines the codec's.
fn check(text: &str) -> Result<Report> {
    let mut ours = Report::default();
    let mut wires = String::new();
    for (index, line) in text.lines().enumerate() {
        let state = serde_json::from_str::<Value>(line).ok();
        let state = state.filter(|line| line["message"] == "quorum-state-file");
        // An empty line in its place keeps the numbers of the others.
        wires.push_str(if state.is_some() { "" } else { line });
        wires.push('\n');
        if let Some(state) = state {
            match quorum_state_file(&state) {
                Ok(()) => ours.passed += 1,
                Err(error) => {
                    ours.failed.push(format!("line {}: quorum-state file: {error:#}", index + 1));
                }
            }
        }
    }
    ours.merge(check_file(&wires));
    Ok(ours)
}

/// Reads the file as a node does, and writes it again, which must give the same text.
fn quorum_state_file(line: &Value) -> Result<()> {
    let text = line["fileText"].as_str().context("there is no text")?;
    let dir = target().join(format!("vectors-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let path = dir.join(quorum_state::FILE_NAME);
    std::fs::write(&path, text)?;
    let state = quorum_state::read(&RealFs, &dir)?.context("it is not there")?;
    RealFs.remove(&path)?;
    quorum_state::write(&RealFs, &dir, &state)?;
    let written = std::fs::read_to_string(&path)?;
    std::fs::remove_dir_all(&dir)?;
    ensure!(written == text, "ours {written}, Kafka's {text}");
    let members: Value = serde_json::from_str(text)?;
    ensure!(members == line["json"], "{members} is not {}", line["json"]);
    let number = |name: &str| members[name].as_i64();
    let node = |id: Option<quorate_core::NodeId>| id.map_or(-1, |id| i64::from(id.0));
    ensure!(number("leaderEpoch") == Some(i64::from(state.epoch.0)), "epoch {}", state.epoch);
    ensure!(number("leaderId") == Some(node(state.leader)), "leader {:?}", state.leader);
    ensure!(number("votedId") == Some(node(state.voted.map(|key| key.id))), "{:?}", state.voted);
    Ok(())
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
