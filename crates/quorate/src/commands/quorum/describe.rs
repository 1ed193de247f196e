//! `quorate quorum describe`: the leader's account of its quorum, found through any node.
//!
//! With no leader every node is asked for its own view, so that the answer to "why is there no leader?"
//! stands on one page.

use std::io::Write;
use std::time::Duration;

use quorate_core::Endpoint;
use tokio::time::{Instant, sleep};

use super::report::Report;
use super::survey::{Account, Survey};
use super::{text, views};
use crate::config::listeners::split_host_port;
use crate::failure::{Exit, Failure};
use crate::{clock, say};

/// Says who leads, who votes and who is behind; and with no leader, why there is none.
///
/// Any node will do: the leader is found through it. Where there is no leader, every node that can be found
/// is asked for its own view: its role, epoch, log, vote, the peers it cannot reach, and what each
/// voter said in its last election.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorate quorum describe --bootstrap-controller c1:9093,c2:9093
  quorate quorum describe --replication --human-readable --bootstrap-controller c1:9093
  quorate quorum describe --json --bootstrap-controller c1:9093 | jq .leaderId

Exit codes: 0 the leader answered; 1 there is no leader (each node's view is on stdout), or nobody answers.")]
pub(crate) struct Args {
    /// Controllers to begin with: HOST:PORT,...
    #[arg(long, value_name = "HOST:PORT,...", required = true, value_delimiter = ',')]
    bootstrap_controller: Vec<String>,
    /// The quorum as a whole [the default].
    #[arg(long, conflicts_with = "replication")]
    status: bool,
    /// A line for each replica.
    #[arg(long)]
    replication: bool,
    /// With --replication: how long ago instead of timestamps.
    #[arg(long, requires = "replication")]
    human_readable: bool,
    /// One JSON object with the field names of Kafka's DescribeQuorum.
    #[arg(long)]
    json: bool,
    /// How long to wait for a leader, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(0..=3600))]
    timeout: u64,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let bootstrap = endpoints(&args.bootstrap_controller)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(format!("cannot start the network: {error}")).exit(Exit::Internal)
    })?;
    let (survey, account) = runtime.block_on(find(&bootstrap, Duration::from_secs(args.timeout)));
    if account.is_none() && survey.nodes.is_empty() {
        let first = survey.silent.first();
        let first = first.map(|silent| format!(": {}: {}", silent.endpoint, silent.reason));
        return Err(Failure::new(format!("no controller answers{}", first.unwrap_or_default()))
            .next("check --bootstrap-controller, and that a controller runs there"));
    }
    let report = Report::new(&survey, account.as_ref());
    if args.json {
        say(out, &serde_json::to_string(&report).unwrap_or_default())?;
    } else if account.is_none() {
        views::print(&survey, out)?;
    } else if args.replication {
        let now = args.human_readable.then(clock::now_ms);
        text::replication(&report, now, out)?;
    } else {
        text::status(&report, out)?;
    }
    match account {
        Some(_) => Ok(()),
        None => Err(Failure::new("there is no leader; stdout has each node's own view")),
    }
}

fn endpoints(list: &[String]) -> Result<Vec<Endpoint>, Failure> {
    let parse = |entry: &String| match split_host_port(entry.trim()) {
        Some((host, port)) if !host.is_empty() && port > 0 => Ok(Endpoint::new(host, port)),
        _ => {
            Err(Failure::new(format!("--bootstrap-controller has {entry}, which is no HOST:PORT"))
                .next("for example c1.example.com:9093"))
        }
    };
    list.iter().map(parse).collect()
}

/// Looks for a leader until there is one or the time is over.
async fn find(bootstrap: &[Endpoint], patience: Duration) -> (Survey, Option<Account>) {
    let deadline = Instant::now() + patience;
    loop {
        let mut survey = Survey::of(bootstrap).await;
        let account = survey.ask_leader().await;
        if account.is_some() || Instant::now() >= deadline {
            return (survey, account);
        }
        sleep(Duration::from_millis(250)).await;
    }
}
