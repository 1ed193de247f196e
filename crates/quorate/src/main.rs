//! The `quorate` command.
//!
//! Each subcommand reads its arguments, does its work and returns; what it has to say goes to stdout, and why it
//! failed to stderr, with an exit code that `--help` tells.

mod clock;
mod commands;
mod config;
mod directories;
mod failure;
mod features;
mod uuid;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::commands::{dev, format, info, log, quorum, run};
use crate::failure::{Exit, Failure};

/// Apache Kafka's KRaft quorum: controllers that replicate the metadata log.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
A quorum on this machine, to look at:   quorate dev
From nothing to a running controller:   quorate format --help, then quorate run --help

Exit codes: 0 done; 1 wrong arguments or configuration, or the command could not do its work;
`run` has more: 2 the directory was refused, 3 its disk failed, 4 an internal error."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Runs three voters on this machine, with a steady trickle of records, and shows what they do.
    Dev(dev::Args),
    /// Formats the directories of a node, as kafka-storage does.
    Format(format::Args),
    /// Says which directories are configured, and what their meta.properties say.
    Info(info::Args),
    /// Reads the files of a metadata log.
    #[command(subcommand)]
    Log(log::Command),
    /// Prints a random uuid, for a cluster id or a directory id.
    RandomUuid,
    /// Runs a controller until SIGTERM or SIGINT.
    Run(run::Args),
    /// Asks a running quorum.
    #[command(subcommand)]
    Quorum(quorum::Command),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let help = !error.use_stderr();
            // Nowhere to complain to if this fails.
            let _ = error.print();
            return if help { ExitCode::SUCCESS } else { Exit::Refused.into() };
        }
    };
    // Not locked: `run` writes from a thread of its own.
    let out = &mut io::stdout();
    let done = match &arguments.command {
        Command::Run(args) => run::run(args),
        Command::Dev(args) => dev::run(args, out),
        Command::Format(args) => format::run(args, out),
        Command::Info(args) => info::run(args, out),
        Command::Log(command) => log::run(command, out),
        Command::RandomUuid => uuid::random().and_then(|id| say(out, &id.to_string())),
        Command::Quorum(command) => quorum::run(command, out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                let _ = writeln!(io::stderr(), "{failure}");
            }
            failure.exit.into()
        }
    }
}

/// Prints a line. A reader that has gone away ends the command.
fn say(out: &mut dyn Write, line: &str) -> Result<(), Failure> {
    writeln!(out, "{line}")
        .map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))
}
