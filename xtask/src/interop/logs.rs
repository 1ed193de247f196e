//! What the directories of a quorum must have in common, read without the code that wrote them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use quorate_storage::{LogBatch, RealFs, read_log};
use quorate_wire::batch::control_records;
use quorate_wire::control::ControlRecord;

use crate::kafka::{Release, dump_log};

/// All whole batches of a log. A torn end, which a running writer leaves for a moment, is no error.
pub(super) fn batches(log_dir: &Path) -> Result<Vec<LogBatch>> {
    let files = read_log(&RealFs, log_dir)?;
    Ok(files.map_while(Result::ok).map(|found| found.batch).collect())
}

/// The epoch of the batch that ends at this offset; none if there is no such batch. Of two logs that have the same one, all
/// that is before must be the same.
pub(super) fn epoch_before(log_dir: &Path, offset: i64) -> Result<Option<i32>> {
    let batches = batches(log_dir)?;
    Ok(batches.iter().find(|batch| batch.end().0 == offset).map(|batch| batch.epoch().0))
}

/// What tells the first segment from one that was written anew: its inode, its length and when it was last written. There
/// must be later ones, or it still grows.
pub(super) fn first_segment(log_dir: &Path) -> Result<(u64, u64, std::time::SystemTime)> {
    let entries = std::fs::read_dir(log_dir).with_context(|| log_dir.display().to_string())?;
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "log");
    let mut segments: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_segment).collect();
    segments.sort();
    let [first, _, ..] = segments.as_slice() else {
        bail!("{} has {} segments, not several", log_dir.display(), segments.len());
    };
    let metadata = first.metadata().with_context(|| first.display().to_string())?;
    Ok((metadata.ino(), metadata.len(), metadata.modified()?))
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compared {
    pub(super) bytes: usize,
    pub(super) records: i64,
}

/// Checks that the logs have the same bytes below this offset, all of them from offset 0 on.
pub(super) fn compare(log_dirs: &[(String, &Path)], high_watermark: i64) -> Result<Compared> {
    let mut logs = Vec::new();
    for (name, dir) in log_dirs {
        let mut batches = batches(dir)?;
        batches.retain(|batch| batch.end().0 <= high_watermark);
        let end = batches.last().map_or(0, |batch| batch.end().0);
        if end != high_watermark {
            bail!("the log of {name} ends at {end}, below the high watermark {high_watermark}");
        }
        let mut next = 0;
        for batch in &batches {
            if batch.base().0 != next {
                bail!("the log of {name} has offset {} after {next}", batch.base());
            }
            next = batch.end().0;
        }
        logs.push((name, batches));
    }
    let (first, others) = logs.split_first().context("nothing to compare")?;
    for (name, batches) in others {
        let differs = first.1.iter().zip(batches).find(|(a, b)| a.bytes() != b.bytes());
        if let Some((a, b)) = differs {
            bail!(
                "{} and {name} differ below the high watermark {high_watermark}: {}..{} of epoch {} ({} bytes) \
                 against {}..{} of epoch {} ({} bytes)",
                first.0,
                a.base(),
                a.end(),
                a.epoch(),
                a.bytes().len(),
                b.base(),
                b.end(),
                b.epoch(),
                b.bytes().len()
            );
        }
        if first.1.len() != batches.len() {
            bail!("{} has {} batches, {name} {}", first.0, first.1.len(), batches.len());
        }
    }
    let bytes = first.1.iter().map(|batch| batch.bytes().len()).sum();
    Ok(Compared { bytes, records: high_watermark })
}

/// Leader and granting voters of an epoch, as its first record has them.
pub(super) fn election(log_dir: &Path, epoch: i32) -> Result<Option<(i32, Vec<i32>)>> {
    for batch in batches(log_dir)?.iter().filter(|batch| batch.epoch().0 == epoch) {
        if !batch.batch().is_control() {
            continue;
        }
        for (_, record) in control_records(batch.batch())? {
            if let ControlRecord::LeaderChange(change) = record {
                let granting = change.granting_voters.iter().map(|voter| voter.voter_id).collect();
                return Ok(Some((change.leader_id, granting)));
            }
        }
    }
    Ok(None)
}

/// What kafka-dump-log says of a directory.
#[derive(Debug)]
pub(super) struct Dump {
    /// What it complains of, without the directory's path.
    pub(super) complaints: Vec<String>,
    /// The lines of batches and records of the log.
    pub(super) records: Vec<String>,
}

/// Runs kafka-dump-log over all files of a log directory that it knows.
pub(super) fn dump(release: &Release, log_dir: &Path) -> Result<Dump> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(log_dir).with_context(|| log_dir.display().to_string())? {
        let path = entry?.path();
        let known = ["log", "checkpoint", "index", "timeindex"];
        if path.extension().is_some_and(|kind| known.iter().any(|known| kind == *known)) {
            files.push(path);
        }
    }
    files.sort();
    let list: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let mut java = release.java(dump_log(release.version()));
    java.args(["--cluster-metadata-decoder", "--files", &list.join(",")]);
    let output = java.stdin(Stdio::null()).output().context("java does not start")?;
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut dump = Dump { complaints: Vec::new(), records: Vec::new() };
    if !output.status.success() {
        dump.complaints.push(format!("it ended with {}", output.status));
    }
    let without_path = |line: &str| line.replace(&log_dir.display().to_string(), "");
    let mut in_log = false;
    for line in stdout.lines() {
        if let Some(file) = line.strip_prefix("Dumping ") {
            in_log = file.ends_with(".log");
        } else if in_log && (line.starts_with("baseOffset:") || line.starts_with('|')) {
            dump.records.push(without_position(line));
        }
        let bad =
            ["isvalid: false", "invalid bytes", "payload: Error at", "Non-consecutive", "mismatch"];
        if bad.iter().any(|bad| line.contains(bad)) {
            dump.complaints.push(without_path(line));
        }
    }
    // Lines of a logger begin with the time.
    let is_news = |line: &&str| !line.contains(" INFO ");
    let without_time = |line: &str| line.split_once(']').map_or(line, |(_, rest)| rest).to_owned();
    dump.complaints
        .extend(stderr.lines().filter(is_news).map(|line| without_time(&without_path(line))));
    Ok(dump)
}

/// A line without the byte at which its batch stands: segments are rolled at other batches.
fn without_position(line: &str) -> String {
    match line.split_once(" position: ") {
        Some((before, rest)) => {
            let after = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
            format!("{before}{after}")
        }
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_wire::batch::{encode_control, encode_data};
    use quorate_wire::control::{LeaderChangeMessage, Voter};

    use super::*;

    #[test]
    fn a_difference_below_the_high_watermark_is_found_and_one_above_is_none() {
        let dir = std::env::temp_dir().join(format!("quorate-interop-{}", std::process::id()));
        let log = |name: &str, batches: &[Bytes]| {
            let dir = dir.join(name);
            std::fs::create_dir_all(&dir).expect("a directory");
            std::fs::write(dir.join("00000000000000000000.log"), batches.concat()).expect("a file");
            dir
        };
        let data = |base, epoch, value| encode_data(base, epoch, 1, &[Bytes::from_static(value)]);
        let granting = |voter_id| Voter { voter_id, ..Default::default() };
        let change = LeaderChangeMessage {
            leader_id: 2,
            granting_voters: vec![granting(2), granting(3)],
            ..Default::default()
        };
        let start =
            encode_control(0, 1, 1, &[ControlRecord::LeaderChange(change)]).expect("it fits");
        let first = log("first", &[start.clone(), data(1, 1, b"x"), data(2, 1, b"y")]);
        let second = log("second", &[start.clone(), data(1, 1, b"x"), data(2, 1, b"z")]);
        let gap = log("gap", &[start, data(2, 1, b"y")]);
        let of = |a: &Path, b: &Path, high_watermark| {
            compare(&[("a".to_owned(), a), ("b".to_owned(), b)], high_watermark)
        };
        let below = of(&first, &second, 2).expect("alike").bytes;
        let found = [of(&first, &second, 3), of(&first, &gap, 3), of(&first, &second, 4)];
        let elected = election(&first, 1);
        std::fs::remove_dir_all(&dir).expect("removed");
        assert!(below > 100);
        let found = found.map(|result| result.expect_err("a difference").to_string());
        assert!(found[0].contains("differ") && found[1].contains("after 1"), "{found:?}");
        assert!(found[2].contains("ends at 3"), "{found:?}");
        assert_eq!(elected.expect("it reads"), Some((2, vec![2, 3])));
    }
}
