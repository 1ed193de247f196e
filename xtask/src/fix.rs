//! The writing twin of `ci`.

use anyhow::Result;

use crate::step::{cargo, step, succeed};

/// Formats the tree and applies clippy's suggestions.
pub(crate) fn run() -> Result<String> {
    step("fix", "clippy", || {
        succeed(cargo().args([
            "clippy",
            "--fix",
            "--workspace",
            "--all-targets",
            "--allow-dirty",
            "--allow-staged",
        ]))?;
        Ok(String::new())
    })?;
    // Clippy's own edits are not formatted, so this comes last.
    step("fix", "format", || {
        succeed(cargo().args(["fmt", "--all"]))?;
        succeed(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml"]))?;
        Ok(String::new())
    })?;
    Ok("2 steps".to_owned())
}
