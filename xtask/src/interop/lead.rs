//! `cargo xtask interop lead`: a Quorate leader of Java followers, and leadership to and fro.
//!
//! Who wins is arranged by timeouts alone. Java's are long, so that Quorate is ahead at the first start. A Java controller
//! that was fetching refuses pre-votes until its own fetch timeout, and then asks at once itself, so that Quorate would
//! never follow on a Java leader that was killed: in such a turn the other Java controller is killed too, and started
//! again, when it has not fetched yet.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use quorate_storage::LogBatch;

use super::logs;
use super::process::{End, matching_lines, wait_for};
use super::quorum::{BOUND, Description, Make, Plan, Quorum};
use super::say_errors;
use crate::kafka::{Release, VERSIONS};
use crate::step::step;

/// Flags of `cargo xtask interop lead`.
#[derive(clap::Args)]
pub(super) struct Options {
    /// The releases of the Java followers, in turn; all but the first one quick.
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',', default_values_t = VERSIONS.map(str::to_owned))]
    versions: Vec<String>,
    /// Leads for 10 s instead of 60, and two takeovers instead of ten.
    #[arg(long)]
    quick: bool,
}

/// The Quorate node; the Java controllers are 2 and 3. Of followers that are equally far a Java leader that resigns prefers
/// the one with the lowest id.
const QUORATE: i32 = 1;

/// What Quorate appends while it leads.
const WORKLOAD: &str = "inflight=8,size=100,rate=200";

/// Runs each version with voters in the log, and the first of them with static voters too.
pub(super) fn run(options: &Options, binary: &Path, dir: &Path) -> Result<String> {
    let mut figures = Vec::new();
    for (at, version) in options.versions.iter().enumerate() {
        let is_quick = options.quick || at > 0;
        figures.push(run_one(version, false, is_quick, binary, dir)?);
        if at == 0 {
            figures.push(run_one(version, true, true, binary, dir)?);
        }
    }
    Ok(format!("no Java controller stopped; {}", figures.join("; ")))
}

fn run_one(
    version: &str,
    is_static: bool,
    is_quick: bool,
    binary: &Path,
    dir: &Path,
) -> Result<String> {
    let (seconds, rounds) = if is_quick { (10, 2) } else { (60, 10) };
    let name = format!("{version}{}", if is_static { "-static" } else { "" });
    let check = format!("interop lead {name}");
    let release = Release::installed(version)?;
    let mut lead = None;
    step(&check, "format", || {
        lead = Some(Lead::format(&release, is_static, binary, &dir.join(&name))?);
        Ok(String::new())
    })?;
    let mut lead = lead.context("formatted")?;
    step(&check, "Quorate wins an election", || lead.win())?;
    step(&check, &format!("Quorate leads for {seconds} s"), || lead.lead(seconds))?;
    let mut takeovers = 0;
    for round in 0..rounds {
        // In turn, so that each side ends in both ways.
        let how = [End::Terminate, End::Kill];
        let (ours, theirs) = (how[round % 2], how[(round / 2 + round) % 2]);
        let step_name =
            format!("takeover {} of {rounds}, Quorate by {ours:?}, Java by {theirs:?}", round + 1);
        step(&check, &step_name, || {
            let (more, figures) = lead.there_and_back(ours, theirs)?;
            takeovers += more;
            Ok(figures)
        })?;
    }
    let mut figures = String::new();
    step(&check, "promises kept", || {
        figures = lead.finish()?;
        Ok(figures.clone())
    })?;
    say_errors(&check, &lead.quorum)?;
    Ok(format!(
        "{name}: Quorate led for {seconds} s, {rounds} times there and back in {takeovers} elections, {figures}"
    ))
}

struct Lead {
    quorum: Quorum,
    /// The last leader's.
    epoch: i32,
}

impl Lead {
    fn format(release: &Release, is_static: bool, binary: &Path, dir: &Path) -> Result<Lead> {
        let java = || Plan {
            make: Make::Java(release.clone()),
            properties: "controller.quorum.election.timeout.ms=5000\n\
                         controller.quorum.fetch.timeout.ms=4000\n"
                .to_owned(),
        };
        let args = ["--workload", WORKLOAD].map(str::to_owned);
        let quorate = Plan {
            make: Make::Quorate(args.to_vec()),
            properties: "controller.quorum.election.timeout.ms=300\n\
                         controller.quorum.fetch.timeout.ms=2000\n"
                .to_owned(),
        };
        let controllers = vec![quorate, java(), java()];
        let quorum = Quorum::format(binary, dir, None, is_static, release, controllers, None)?;
        Ok(Lead { quorum, epoch: 0 })
    }

    /// Waits for the leader of a later epoch.
    fn next_leader(&mut self) -> Result<Description> {
        let now = self.quorum.wait_for_leader(self.epoch)?;
        self.epoch = now.epoch;
        Ok(now)
    }

    fn win(&mut self) -> Result<String> {
        for id in [QUORATE, 2, 3] {
            self.quorum.start(id)?;
        }
        let now = self.next_leader()?;
        if now.leader != QUORATE {
            bail!("node {} leads epoch {}, not Quorate", now.leader, now.epoch);
        }
        self.quorum.compare()?;
        Ok(format!("epoch {}", now.epoch))
    }

    fn lead(&mut self, seconds: u64) -> Result<String> {
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut last = 0;
        while Instant::now() < end {
            let now = wait_for(&format!("a high watermark above {last}"), BOUND, || {
                let now = self.quorum.describe()?;
                Ok(now.filter(|now| now.high_watermark > last || now.epoch != self.epoch))
            })?;
            if now.leader != QUORATE || now.epoch != self.epoch {
                bail!("node {} leads epoch {}, without a reason", now.leader, now.epoch);
            }
            last = now.high_watermark;
            std::thread::sleep(Duration::from_secs(1));
        }
        let compared = self.quorum.compare()?;
        Ok(format!("{} records, {} bytes identical", compared.records, compared.bytes))
    }

    /// Quorate ends and a Java controller takes over; it ends too, and so on until Quorate leads again. Everybody is
    /// back at the end of each turn. Counts the elections.
    fn there_and_back(&mut self, ours: End, theirs: End) -> Result<(u32, String)> {
        let mut elections = 0;
        let mut leader = QUORATE;
        loop {
            let how = if leader == QUORATE { ours } else { theirs };
            self.quorum.end(leader, how)?;
            if leader != QUORATE && how == End::Kill {
                let other = 5 - leader;
                self.quorum.end(other, End::Kill)?;
                self.quorum.start(other)?;
            }
            let now = self.next_leader()?;
            elections += 1;
            self.quorum.start(leader)?;
            self.quorum.compare()?;
            leader = now.leader;
            if leader == QUORATE {
                return Ok((elections, format!("{elections} elections, epoch {}", now.epoch)));
            }
            if elections > 12 {
                bail!("Quorate does not get its turn: {elections} elections");
            }
        }
    }

    /// All logs are the same below the high watermark, and every record that Quorate acknowledged is where it said.
    fn finish(&mut self) -> Result<String> {
        let compared = self.quorum.compare()?;
        self.quorum.end_all()?;
        let node = self.quorum.node(QUORATE)?;
        let log = node.log();
        let acknowledged = matching_lines(&log, |line| line.starts_with("ack "))?;
        let batches = logs::batches(&node.log_dir())?;
        let by_offset: HashMap<i64, &LogBatch> = batches
            .iter()
            .flat_map(|batch| (batch.base().0..batch.end().0).map(move |offset| (offset, batch)))
            .collect();
        for line in &acknowledged {
            let words: Vec<&str> = line.split(' ').collect();
            let &[_, id, offset, epoch] = words.as_slice() else {
                // A killed process may have left half a line.
                continue;
            };
            let offset: i64 = offset.parse().with_context(|| line.clone())?;
            let batch = by_offset
                .get(&offset)
                .with_context(|| format!("acknowledged, and not in the log: {line}"))?;
            let has_id = batch.bytes().windows(id.len()).any(|bytes| bytes == id.as_bytes());
            if !has_id || batch.epoch().0.to_string() != epoch {
                bail!("acknowledged, and another record is in its place: {line}");
            }
        }
        if acknowledged.is_empty() {
            bail!("Quorate acknowledged nothing");
        }
        Ok(format!(
            "{} bytes identical below offset {}, {} records acknowledged and all there",
            compared.bytes,
            compared.records,
            acknowledged.len()
        ))
    }
}
