//! The simulator: built with its own profile, run with the arguments that follow. It prints its own last line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::step::cargo;

/// Flags of `cargo xtask sim`: those of the simulator; `--help` tells them.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Builds the simulator and runs it.
pub(crate) fn run(options: &Options) -> ExitCode {
    let status = cargo()
        .args(["run", "--quiet", "--profile", "sim", "--package", "quorate-sim"])
        .args(["--bin", "quorate-sim", "--"])
        .args(&options.arguments)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("FAIL sim: cargo does not start: {error}");
            ExitCode::FAILURE
        }
    }
}
