//! Steps of a check: each is announced, timed, and shows what its command prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Runs one step of a check and says how long it took. The error of a failed step begins with its name.
pub(crate) fn step(check: &str, name: &str, work: impl FnOnce() -> Result<String>) -> Result<()> {
    println!("{check}: {name} ...");
    let start = Instant::now();
    let result = work();
    let seconds = start.elapsed().as_secs_f64();
    match result {
        Ok(figures) if figures.is_empty() => println!("{check}: {name} ok, {seconds:.1} s"),
        Ok(figures) => println!("{check}: {name} ok, {seconds:.1} s, {figures}"),
        Err(error) => {
            println!("{check}: {name} failed, {seconds:.1} s");
            return Err(error.context(name.to_owned()));
        }
    }
    Ok(())
}

/// The cargo that runs us, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a command whose output goes to ours.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("{name} does not start"))?;
    if !status.success() {
        bail!("{} ended with {status}", describe(command));
    }
    Ok(())
}

/// Runs a command and returns what it printed to stdout.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{name} does not start"))?;
    if !output.status.success() {
        bail!("{} ended with {}", describe(command), output.status);
    }
    Ok(output.stdout)
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// The folder that cargo builds into, absolute.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The command as one would type it.
fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
