//! `leader-epoch-checkpoint`: the first offset of each epoch, for Kafka's eyes.
//!
//! Never trusted: recovery takes the epochs from the batches. It may lag behind the log and
//! never names an epoch that the log does not have, since Kafka believes it.

use std::path::{Path, PathBuf};

use quorate_core::{Epoch, Offset};

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::small_file;

/// The file's name in the log directory.
pub(crate) const FILE_NAME: &str = "leader-epoch-checkpoint";

pub(crate) fn path(log_dir: &Path) -> PathBuf {
    log_dir.join(FILE_NAME)
}

/// What the file says, or why it does not read. Absent and empty files have no entries.
pub(crate) fn read<F: FileSystem>(
    fs: &F,
    log_dir: &Path,
) -> Result<Result<Vec<(Epoch, Offset)>, String>, StorageError> {
    let content = small_file::read(fs, &path(log_dir))?.unwrap_or_default();
    Ok(match str::from_utf8(&content) {
        Ok(text) => parse(text),
        Err(_) => Err("is not UTF-8".to_owned()),
    })
}

pub(crate) fn format(epochs: &[(Epoch, Offset)]) -> String {
    let mut text = format!("0\n{}\n", epochs.len());
    for (epoch, start) in epochs {
        text.push_str(&format!("{epoch} {start}\n"));
    }
    text
}

fn parse(text: &str) -> Result<Vec<(Epoch, Offset)>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = text.lines();
    match lines.next() {
        Some("0") => {}
        other => return Err(format!("line 1 is {other:?}, not the version 0")),
    }
    let count = lines.next().unwrap_or_default();
    let count: usize = count.parse().map_err(|_| format!("line 2, {count:?}, is no number"))?;
    let mut entries: Vec<(Epoch, Offset)> = Vec::new();
    for line in lines {
        let entry = line.split_once(' ').and_then(|(epoch, start)| {
            Some((Epoch(epoch.parse().ok()?), Offset(start.parse().ok()?)))
        });
        let entry = entry.ok_or_else(|| format!("{line:?} is no epoch and offset"))?;
        if entries.last().is_some_and(|last| last.0 >= entry.0 || last.1 > entry.1) {
            return Err(format!("{line:?} is out of order"));
        }
        entries.push(entry);
    }
    if entries.len() != count {
        return Err(format!("line 2 says {count} entries, but there are {}", entries.len()));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kafka_writes_and_refuses_the_rest() {
        let entries = vec![(Epoch(1), Offset(0)), (Epoch(3), Offset(4))];
        assert_eq!(format(&entries), "0\n2\n1 0\n3 4\n");
        assert_eq!(parse("0\n2\n1 0\n3 4\n"), Ok(entries));
        assert_eq!(parse(""), Ok(vec![]));
        for bad in ["1\n0\n", "0\n", "0\n2\n1 0\n", "0\n1\n1\n", "0\n2\n3 0\n1 4\n", "0\n1\n1 x\n"]
        {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
