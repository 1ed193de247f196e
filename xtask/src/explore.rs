//! The exhaustive exploration of the core: built with the simulator's profile, so that assertions count and a
//! panic is a finding. It prints its own last line.

use std::process::ExitCode;

use clap::Args;

use crate::step::cargo;

/// Flags of `cargo xtask explore`.
#[derive(Args)]
pub(crate) struct Options {
    /// How far: ci, large, two-voters or observer.
    #[arg(long, value_name = "NAME", default_value = "ci")]
    bound: String,
}

/// Builds the explorer and runs it.
pub(crate) fn run(options: &Options) -> ExitCode {
    let status = cargo()
        .args(["run", "--quiet", "--profile", "sim", "--package", "quorate-explore"])
        .args(["--", "--bound", &options.bound])
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("FAIL explore: cargo does not start: {error}");
            ExitCode::FAILURE
        }
    }
}
