//! `quorate quorum`: questions to a quorum that runs.

mod describe;
mod report;
mod survey;
mod text;
mod views;

use std::io::Write;

use crate::failure::Failure;

/// Asks a running quorum.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Says who leads, who votes and who is behind; and with no leader, why there is none.
    Describe(describe::Args),
}

pub(crate) fn run(command: &Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Describe(args) => describe::run(args, out),
    }
}

pub(crate) use survey::describe_replica;
