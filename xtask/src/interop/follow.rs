//! `cargo xtask interop follow`: a Quorate voter that never campaigns among Java controllers.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::admin::Admin;
use super::logs::{self, Compared};
use super::process::{End, wait_for};
use super::quorum::{BOUND, Make, Plan, Quorum};
use super::{copy_dir, say_errors};
use crate::kafka::{Release, VERSIONS};
use crate::step::step;

/// Flags of `cargo xtask interop follow`.
#[derive(clap::Args)]
pub(super) struct Options {
    /// The releases of the second Java controller, in turn; the first one is of the newest release.
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',', default_values_t = VERSIONS.map(str::to_owned))]
    versions: Vec<String>,
    /// Fewer topics.
    #[arg(long)]
    quick: bool,
}

/// The Quorate node; the Java controllers are 1, of the newest release, and [`OTHER`].
const QUORATE: i32 = 3;
/// The Java controller of the scenario's release.
const OTHER: i32 = 2;

/// Runs each version with voters in the log, and the first of them with static voters too.
pub(super) fn run(options: &Options, binary: &Path, dir: &Path) -> Result<String> {
    let mut scenarios: Vec<(String, bool)> =
        options.versions.iter().map(|version| (version.clone(), false)).collect();
    scenarios.extend(options.versions.first().map(|version| (version.clone(), true)));
    let topics = if options.quick { 40 } else { 200 };
    let (mut total, mut elections) = (Compared::default(), 0);
    for (version, is_static) in &scenarios {
        let name = format!("{version}{}", if *is_static { "-static" } else { "" });
        let scenario = Scenario::format(&name, version, *is_static, binary, &dir.join(&name));
        let figures =
            scenario.and_then(|scenario| scenario.run(topics)).with_context(|| name.clone())?;
        total.bytes += figures.bytes;
        total.records += figures.records;
        elections += 1;
    }
    Ok(format!(
        "{} quorums ({}), {} topics each, {} records and {} bytes identical below the high watermark, {elections} \
         elections decided by Quorate's vote, directories exchanged both ways",
        scenarios.len(),
        scenarios
            .iter()
            .map(|(version, is_static)| {
                format!("{version}{}", if *is_static { " static" } else { "" })
            })
            .collect::<Vec<_>>()
            .join(", "),
        topics + topics / 2 + 2 * LATER_TOPICS,
        total.records,
        total.bytes
    ))
}

/// Topics made with one controller down, and after the exchange of directories.
const LATER_TOPICS: u32 = 20;

/// Java's own timeouts are half of these, which a busy machine can exceed.
const TIMEOUTS: &str =
    "controller.quorum.election.timeout.ms=2000\ncontroller.quorum.fetch.timeout.ms=4000\n";

/// Small, so that every log has several. Production keys begin at 8 MiB.
const SEGMENT_BYTES: u32 = 128 << 10;

/// Timeouts and segments for a controller of a release; none is Quorate.
fn properties(release: Option<&Release>) -> String {
    let segments = match release.map(Release::family) {
        Some("4.0") => format!(
            "metadata.log.segment.min.bytes={SEGMENT_BYTES}\nmetadata.log.segment.bytes={SEGMENT_BYTES}\n"
        ),
        _ => format!("internal.metadata.log.segment.bytes={SEGMENT_BYTES}\n"),
    };
    format!("{TIMEOUTS}{segments}")
}

struct Scenario {
    check: String,
    /// The release of [`OTHER`], of the broker, and of the tools.
    release: Release,
    quorum: Quorum,
}

impl Scenario {
    fn format(
        name: &str,
        version: &str,
        is_static: bool,
        binary: &Path,
        dir: &Path,
    ) -> Result<Scenario> {
        let newest = Release::installed(VERSIONS[0])?;
        let other = Release::installed(version)?;
        let java = |release: &Release| Plan {
            make: Make::Java(release.clone()),
            properties: properties(Some(release)),
        };
        let quorate = Plan {
            make: Make::Quorate(Vec::new()),
            properties: format!("{}quorate.campaign=never\n", properties(None)),
        };
        let check = format!("interop follow {name}");
        let mut quorum = None;
        step(&check, "format", || {
            let controllers = vec![java(&newest), java(&other), quorate];
            // The broker is of the older release, as the directories' features are.
            let broker = Some(other.clone());
            quorum =
                Some(Quorum::format(binary, dir, None, is_static, &other, controllers, broker)?);
            Ok(String::new())
        })?;
        Ok(Scenario { check, release: other, quorum: quorum.context("formatted")? })
    }

    fn run(mut self, topics: u32) -> Result<Compared> {
        let check = self.check.clone();
        let mut admin = None;
        step(&check, "start", || {
            for id in [QUORATE, 1, 2] {
                self.quorum.start(id)?;
            }
            let now = self.quorum.wait_for_leader(0)?;
            let (broker, address) = self.quorum.broker()?;
            self.quorum.start(broker)?;
            admin = Some(Admin::start(&self.release, &self.quorum.dir, &address)?);
            Ok(format!("{} leads epoch {}", self.quorum.node(now.leader)?.name(), now.epoch))
        })?;
        let mut admin = admin.context("started")?;
        step(&check, "topics, Quorate killed and back", || {
            self.churn_and_kill(&mut admin, topics)
        })?;
        step(&check, "Quorate's vote decides", || self.election(&mut admin))?;
        // Under the other leader now.
        step(&check, "topics, Quorate killed and back", || {
            self.churn_and_kill(&mut admin, topics / 2)
        })?;
        let mut compared = Compared::default();
        step(&check, "logs compared", || {
            compared = self.quorum.compare()?;
            Ok(format!("{} bytes below offset {}", compared.bytes, compared.records))
        })?;
        drop(admin);
        step(&check, "kafka-dump-log", || self.dump(&compared))?;
        step(&check, "directories exchanged", || self.exchange(&compared))?;
        say_errors(&check, &self.quorum)?;
        Ok(compared)
    }

    /// Topics come and go; Quorate is killed before most of them are made, and comes back.
    fn churn_and_kill(&mut self, admin: &mut Admin, topics: u32) -> Result<String> {
        let quorum = &mut self.quorum;
        admin.churn(topics, |line| {
            if line == "created 10" {
                quorum.end(QUORATE, End::Kill)?;
            } else if line == format!("created {topics}") {
                quorum.start(QUORATE)?;
            }
            quorum.check()
        })?;
        let compared = quorum.compare()?;
        let leader = wait_for("a leader", BOUND, || quorum.describe())?.leader;
        let leader = quorum.node(leader)?.name();
        Ok(format!(
            "{topics} topics made and deleted, {} records, {leader} leads",
            compared.records
        ))
    }

    /// The leading Java controller is killed: the other one needs Quorate's vote, and then its disk for each commit.
    fn election(&mut self, admin: &mut Admin) -> Result<String> {
        let before = wait_for("a leader", BOUND, || self.quorum.describe())?;
        if before.leader == QUORATE {
            bail!("Quorate leads, although it never campaigns");
        }
        self.quorum.end(before.leader, End::Kill)?;
        let after = self.quorum.wait_for_leader(before.epoch)?;
        let other = 3 - before.leader;
        if after.leader != other {
            bail!("node {} leads, where {other} should", after.leader);
        }
        admin.churn(LATER_TOPICS, |_| self.quorum.check())?;
        let log_dir = self.quorum.node(QUORATE)?.log_dir();
        let (leader, mut granting) = logs::election(&log_dir, after.epoch)?.with_context(|| {
            format!("Quorate's log has no LeaderChange of epoch {}", after.epoch)
        })?;
        granting.sort_unstable();
        if leader != other || granting != [other, QUORATE] {
            bail!("epoch {} is led by {leader} with the votes of {granting:?}", after.epoch);
        }
        self.quorum.compare()?;
        self.quorum.start(before.leader)?;
        // It is back, or there would be no majority without Quorate.
        self.quorum.compare()?;
        Ok(format!(
            "{} took over in epoch {} with Quorate's vote",
            self.quorum.node(other)?.name(),
            after.epoch
        ))
    }

    /// kafka-dump-log must say of Quorate's directory what it says of Java's.
    fn dump(&mut self, had: &Compared) -> Result<String> {
        self.quorum.end_all()?;
        let log_dir = |id| Ok::<_, anyhow::Error>(self.quorum.node(id)?.log_dir());
        let (java, ours) = (log_dir(OTHER)?, log_dir(QUORATE)?);
        let (java, ours) = std::thread::scope(|scope| {
            let java = scope.spawn(|| logs::dump(&self.release, &java));
            let ours = logs::dump(&self.release, &ours);
            (java.join(), ours)
        });
        let java = java.map_err(|_| anyhow::anyhow!("the thread of kafka-dump-log panicked"))??;
        let ours = ours?;
        let new: Vec<&String> =
            ours.complaints.iter().filter(|line| !java.complaints.contains(line)).collect();
        if !new.is_empty() {
            bail!("kafka-dump-log complains of Quorate's directory alone: {new:?}");
        }
        // What was never committed may differ: a leader's last batch, as it was told to stop.
        let common = java.records.len().min(ours.records.len());
        let records_of =
            |dump: &logs::Dump| dump.records.iter().filter(|line| line.starts_with('|')).count();
        let least = records_of(&java).min(records_of(&ours));
        if i64::try_from(least)? < had.records {
            bail!("kafka-dump-log prints {least} records, {} are committed", had.records);
        }
        let differs = java.records.iter().zip(&ours.records).find(|(a, b)| a != b);
        if let Some((java, ours)) = differs {
            bail!("kafka-dump-log prints other records:\n  {java}\n  {ours}");
        }
        Ok(format!("{} lines alike, {} complaints about both", common, java.complaints.len()))
    }

    /// With all stopped, Java's [`OTHER`] gets a copy of Quorate's directory and Quorate one of Java's, each with its own
    /// identity in it.
    fn exchange(&mut self, had: &Compared) -> Result<String> {
        let mut before = Vec::new();
        for (id, from) in [(OTHER, QUORATE), (QUORATE, OTHER)] {
            let kept = self.quorum.dir.join(format!("kept-{from}"));
            std::fs::rename(self.quorum.node(from)?.data(), &kept)
                .with_context(|| kept.display().to_string())?;
            before.push((id, kept));
        }
        let mut begun = Vec::new();
        for (id, kept) in &before {
            let node = self.quorum.node(*id)?;
            copy_dir(kept, &node.data())?;
            // Java holds this file as its lock; it is no part of what is handed over.
            let lock = node.data().join(".lock");
            if lock.try_exists()? {
                std::fs::remove_file(&lock)?;
            }
            node.adopt(&self.quorum.cluster)?;
            begun.push((*id, logs::first_segment(&node.log_dir())?));
        }
        // These two first: what both had dropped nobody could give back. A first segment that one had fetched anew would be
        // another file.
        for id in [QUORATE, OTHER] {
            self.quorum.start(id)?;
        }
        let alone = self.quorum.compare()?;
        if alone.records < had.records {
            bail!("{} records of {} are there after the exchange", alone.records, had.records);
        }
        for (id, first) in begun {
            if logs::first_segment(&self.quorum.node(id)?.log_dir())? != first {
                bail!("{} has written its first segment anew", self.quorum.node(id)?.name());
            }
        }
        self.quorum.start(1)?;
        let (broker, address) = self.quorum.broker()?;
        self.quorum.start(broker)?;
        let mut admin = Admin::start(&self.release, &self.quorum.dir, &address)?;
        admin.churn(LATER_TOPICS, |_| self.quorum.check())?;
        let compared = self.quorum.compare()?;
        std::thread::sleep(Duration::from_millis(500));
        self.quorum.check()?;
        drop(admin);
        self.quorum.end_all()?;
        Ok(format!("{} records", compared.records))
    }
}
