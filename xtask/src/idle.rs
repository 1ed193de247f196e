//! What a node of an idle quorum costs: three voters with a leader and nothing to do, watched through `/proc`.
//!
//! A wake-up is a voluntary context switch of any of its threads. The bounds are those of the issue that asked for
//! them: they are far from what is measured, so that a busy machine does not decide.

use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::kill_loop::build;
use crate::kill_loop::cluster::{Cluster, NODES};
use crate::kill_loop::process::{Said, What};
use crate::step::target;
use crate::usage::{self, Usage};

/// Flags of `cargo xtask idle`.
#[derive(Args)]
pub(crate) struct Options {
    /// For how long the nodes are watched.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

/// Of one core.
const MAX_CPU_PERCENT: f64 = 1.0;
const MAX_WAKE_UPS_PER_SECOND: f64 = 20.0;

/// The first election and what follows it.
const SETTLING: Duration = Duration::from_secs(3);

/// How long a leader may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs three voters without a workload and watches them.
pub(crate) fn run(options: &Options) -> Result<String> {
    let binary = build::release("idle")?;
    let dir = target().join("idle").join(std::process::id().to_string());
    let mut cluster = Cluster::format(&binary, dir.clone(), "")?;
    let (said, heard) = mpsc::sync_channel(1024);
    for node in 0..NODES {
        cluster.start(node, None, 0, &said)?;
    }
    let leader = wait_for_leader(&heard)?;
    thread::sleep(SETTLING);
    // Whatever is said from here on is not looked at, but must not block the nodes.
    thread::spawn(move || while heard.recv().is_ok() {});
    let before = readings(&cluster)?;
    let start = Instant::now();
    thread::sleep(Duration::from_secs(options.seconds));
    let seconds = start.elapsed().as_secs_f64();
    let after = readings(&cluster)?;
    let mut worst = (0.0_f64, 0.0_f64, 0_u64);
    for (node, (before, after)) in before.iter().zip(&after).enumerate() {
        let cpu = (after.cpu_seconds - before.cpu_seconds) / seconds * 100.0;
        let wake_ups = (after.switches - before.switches) as f64 / seconds;
        let role = if node == leader { "leader" } else { "follower" };
        println!(
            "idle: node {} ({role}): {cpu:.2} % of a core, {wake_ups:.1} wake-ups/s, {:.1} MiB resident",
            node + 1,
            after.resident_kib as f64 / 1024.0
        );
        worst = (worst.0.max(cpu), worst.1.max(wake_ups), worst.2.max(after.resident_kib));
    }
    drop(cluster);
    fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let figures = format!(
        "cpu_percent={:.2} wake_ups_per_second={:.1} resident_mib={:.1} (the most of any node)",
        worst.0,
        worst.1,
        worst.2 as f64 / 1024.0
    );
    if worst.0 >= MAX_CPU_PERCENT || worst.1 >= MAX_WAKE_UPS_PER_SECOND {
        bail!("{figures}; at most {MAX_CPU_PERCENT} % and {MAX_WAKE_UPS_PER_SECOND} are allowed");
    }
    Ok(figures)
}

/// The node that says that it leads.
fn wait_for_leader(heard: &mpsc::Receiver<Said>) -> Result<usize> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let said = heard.recv_timeout(left).context("no node says that it leads")?;
        match said.what {
            What::Leads(_) => return Ok(said.who.node),
            What::End => bail!("node {} ended", said.who.node + 1),
            _ => {}
        }
    }
}

fn readings(cluster: &Cluster) -> Result<Vec<Usage>> {
    (0..NODES)
        .map(|node| {
            let process =
                cluster.running(node).with_context(|| format!("node {} is gone", node + 1))?;
            usage::of(process.id())
        })
        .collect()
}
