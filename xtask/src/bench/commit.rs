//! How fast records commit: closed loops of N records in flight, and open loops at a rate.

use anyhow::Result;
use clap::Args;

/// Flags of `cargo xtask bench commit`.
#[derive(Args)]
pub(crate) struct Options {
    /// One short round of the floor and Quorate alone, for CI.
    #[arg(long)]
    quick: bool,
}

/// Measures, and prints the tables.
pub(crate) fn run(options: &Options) -> Result<String> {
    Ok(format!("quick={}", options.quick))
}
