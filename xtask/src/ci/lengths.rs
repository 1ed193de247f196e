//! No source file is longer than a reader can hold.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::step::root;

/// The most lines that a source file may have.
const MOST_LINES: usize = 800;

/// Counts the lines of every `.rs` file.
pub(super) fn check() -> Result<String> {
    let mut files = Vec::new();
    for folder in ["bench", "crates", "fuzz/src", "xtask"] {
        source_files(&root().join(folder), &mut files)?;
    }
    let mut longest = (0, PathBuf::new());
    let mut too_long = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let lines = text.lines().count();
        if lines > MOST_LINES {
            too_long.push(format!("{} has {lines} lines", file.display()));
        }
        longest = longest.max((lines, file.clone()));
    }
    if !too_long.is_empty() {
        bail!("{} (at most {MOST_LINES})", too_long.join(", "));
    }
    let name = longest.1.strip_prefix(root()).unwrap_or(&longest.1).display();
    Ok(format!("{} files, the longest {name} with {} lines", files.len(), longest.0))
}

fn source_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                source_files(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
