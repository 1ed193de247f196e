//! Copies of the tree with a fault in it. A harness that does not find these finds nothing.
//!
//! `xtask/planted/NAME.patch` has the fault and says in its head what it breaks. A patch that does not apply
//! fails the run: it is to be made anew when the code that it breaks has changed.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::build::{self, Binary};
use crate::step::{root, step, succeed, target};

/// Which fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Plant {
    /// Appended data are not synced.
    Fdatasync,
    /// A directory is not synced after a rename.
    DirSync,
    /// The election state is reported as durable, and later writes are done, before it is written.
    Barrier,
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Plant::Fdatasync => "fdatasync",
            Plant::DirSync => "dir-sync",
            Plant::Barrier => "barrier",
        })
    }
}

/// What is copied: all that the build of the command needs.
const COPIED: [&str; 5] = ["Cargo.toml", "Cargo.lock", ".cargo", "crates", "xtask"];

/// Copies the tree, breaks it and builds it.
pub(super) fn build(plant: Plant) -> Result<Binary> {
    // One folder for all faults, so that they share what they do not change.
    let planted = target().join("planted");
    let source = planted.join("source");
    step("kill-loop", "plant", || {
        if source.try_exists()? {
            fs::remove_dir_all(&source).with_context(|| source.display().to_string())?;
        }
        fs::create_dir_all(&source).with_context(|| source.display().to_string())?;
        for name in COPIED {
            copy(&root().join(name), &source.join(name))?;
        }
        let patch = root().join("xtask").join("planted").join(format!("{plant}.patch"));
        let mut apply = Command::new("git");
        // The copy lies inside a repository, and `git apply` would leave out what that ignores.
        apply.env("GIT_CEILING_DIRECTORIES", &planted).current_dir(&source);
        apply.args(["apply", "--verbose"]).arg(&patch);
        succeed(&mut apply).with_context(|| format!("{} does not apply", patch.display()))?;
        Ok(source.display().to_string())
    })?;
    build::power_cut_of(&source, &planted.join("target"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let problem = || from.display().to_string();
    if from.is_dir() {
        fs::create_dir(to).with_context(|| to.display().to_string())?;
        for entry in fs::read_dir(from).with_context(problem)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else {
        fs::copy(from, to).with_context(problem)?;
    }
    Ok(())
}
