//! A copy of the tree, to break. It keeps what was built of it: only files that differ are written again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::{root, succeed, target};

/// What is copied: all that a build needs.
const COPIED: [&str; 6] = ["Cargo.toml", "Cargo.lock", ".cargo", "bench", "crates", "xtask"];

/// The folder with the planted faults of this project.
pub(crate) fn planted() -> PathBuf {
    root().join("xtask").join("planted")
}

/// The copy. Nobody else changes it meanwhile.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: PathBuf,
    _lock: File,
}

impl Scratch {
    /// One folder for all faults, so that they share what they do not change.
    pub(crate) fn open() -> Result<Scratch> {
        let folder = target().join("planted");
        let problem = || folder.display().to_string();
        fs::create_dir_all(&folder).with_context(problem)?;
        let lock = File::create(folder.join("lock")).with_context(problem)?;
        if lock.try_lock().is_err() {
            bail!("{} is in use by another run", folder.display());
        }
        Ok(Scratch { folder, _lock: lock })
    }

    /// The root of the copy.
    pub(crate) fn source(&self) -> PathBuf {
        self.folder.join("source")
    }

    /// Where it is built.
    pub(crate) fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// Makes it the same as the tree again.
    pub(crate) fn restore(&self) -> Result<()> {
        let source = self.source();
        fs::create_dir_all(&source).with_context(|| source.display().to_string())?;
        for name in COPIED {
            copy(&root().join(name), &source.join(name))?;
        }
        Ok(())
    }

    /// Whether a patch fits, as an error that says where it does not.
    pub(crate) fn fits(&self, patch: &Path) -> Result<()> {
        self.git_apply(patch, &["--check"])
    }

    /// Breaks it.
    pub(crate) fn apply(&self, patch: &Path) -> Result<()> {
        self.git_apply(patch, &[])
    }

    fn git_apply(&self, patch: &Path, flags: &[&str]) -> Result<()> {
        let mut apply = Command::new("git");
        // The copy lies inside a repository, and `git apply` would leave out what that ignores.
        apply.env("GIT_CEILING_DIRECTORIES", &self.folder).current_dir(self.source());
        apply.arg("apply").args(flags).arg(patch);
        succeed(&mut apply).with_context(|| format!("{} does not apply", patch.display()))
    }
}

/// Makes one the same as the other.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let problem = || to.display().to_string();
    if !from.is_dir() {
        let content = fs::read(from).with_context(|| from.display().to_string())?;
        let is_same = match fs::read(to) {
            Ok(there) => there == content,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error).with_context(problem),
        };
        // A file that stays is not built again.
        return if is_same { Ok(()) } else { fs::write(to, content).with_context(problem) };
    }
    fs::create_dir_all(to).with_context(problem)?;
    let wanted = names(from)?;
    for extra in names(to)?.difference(&wanted) {
        let extra = to.join(extra);
        if extra.is_dir() { fs::remove_dir_all(&extra) } else { fs::remove_file(&extra) }
            .with_context(|| extra.display().to_string())?;
    }
    for name in wanted {
        copy(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

fn names(folder: &Path) -> Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}
