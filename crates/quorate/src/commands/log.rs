//! `quorate log`: what stands in the files of a metadata log, and whether they are sound.

mod batches;
mod dump;
mod progress;
mod verify;

use std::io::Write;

use crate::failure::Failure;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Prints the batches and records of segments and checkpoints, as kafka-dump-log does.
    Dump(dump::Args),
    /// Looks a directory over, changes nothing, and says what is damaged.
    Verify(verify::Args),
}

pub(crate) fn run(command: &Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Dump(args) => dump::run(args, out),
        Command::Verify(args) => verify::run(args, out),
    }
}
