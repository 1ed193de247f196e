//! The binaries under test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::step::{cargo, step, succeed, target};

/// A `quorate` binary.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(crate) path: PathBuf,
}

/// What is shipped.
pub(crate) fn release(check: &str) -> Result<Binary> {
    build(check, None, &target(), &[])
}

/// The test build whose unsynced writes stay in memory. It has a target folder of its own, so that the
/// shipped binary is never it.
pub(crate) fn power_cut() -> Result<Binary> {
    build(CHECK, None, &target().join("power-cut"), POWER_CUT)
}

/// The same from another tree.
pub(crate) fn power_cut_of(source: &Path, target: &Path) -> Result<Binary> {
    build(CHECK, Some(source), target, POWER_CUT)
}

const POWER_CUT: &[&str] = &["--features", "power-cut"];

const CHECK: &str = "kill-loop";

fn build(check: &str, source: Option<&Path>, target: &Path, features: &[&str]) -> Result<Binary> {
    let path = target.join("release").join("quorate");
    step(check, "build", || {
        let mut command = cargo();
        command.args(["build", "--release", "--locked", "--package", "quorate"]).args(features);
        command.arg("--target-dir").arg(target);
        if let Some(source) = source {
            command.current_dir(source);
        }
        succeed(&mut command)?;
        Ok(path.display().to_string())
    })?;
    if !path.try_exists().with_context(|| path.display().to_string())? {
        bail!("cargo built no {}", path.display());
    }
    Ok(Binary { path })
}
