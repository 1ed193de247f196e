//! Benchmarks: each prints tables in Markdown that can be pasted into `bench/RESULTS.md`.
//!
//! What they run beside Quorate, and is no part of it, lies in the folder `bench`.

mod commit;
mod core;
mod failover;
mod growth;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Flags of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Commits of three processes with fsync, beside a model of the limit, etcd and Apache Kafka.
    Commit(commit::Options),
    /// The core alone: three replicas in one thread, without disk, network and clock.
    Core(core::Options),
    /// How long there is no leader after one was killed, or told to stop, beside Apache Kafka.
    Failover(failover::Options),
    /// What grows with the log, the observers, the voters and the records.
    Growth(growth::Options),
}

impl Options {
    /// The check's name in its last line.
    pub(crate) fn name(&self) -> String {
        match &self.what {
            What::Commit(_) => "bench commit".to_owned(),
            What::Core(_) => "bench core".to_owned(),
            What::Failover(_) => "bench failover".to_owned(),
            What::Growth(_) => "bench growth".to_owned(),
        }
    }
}

/// Runs the one that was asked for.
pub(crate) fn run(options: &Options) -> Result<String> {
    match &options.what {
        What::Commit(options) => commit::run(options),
        What::Core(options) => core::run(options),
        What::Failover(options) => failover::run(options),
        What::Growth(options) => growth::run(options),
    }
}
