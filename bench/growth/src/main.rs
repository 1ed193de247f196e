//! Observers of one leader: each is a connection with a Fetch on it, from the end of the log on.
//!
//! `observers COUNT CLUSTER-ID HOST:PORT...` finds the leader, connects, prints `ready` once each observer has had an
//! answer, and then a line of JSON for each line that it reads; the end of its input ends it. All is done in one thread
//! without a runtime, one read and one write an answer: on a machine that it shares with the leader, what it costs
//! counts against the leader. An observer without an answer for 2 s connects again, as brokers do; an answer that leaves a
//! gap, or names an error, ends it all.

mod answer;
mod crowd;
mod leader;
mod request;

use std::process::ExitCode;

use anyhow::{Context, Result};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("observers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = "give COUNT CLUSTER-ID HOST:PORT...";
    let count: usize = args.next().context(usage)?.parse().context(usage)?;
    let cluster = args.next().context(usage)?;
    let servers: Vec<String> = args.collect();
    let leader = leader::find(&cluster, &servers)?;
    crowd::run(count, &cluster, &leader)
}
