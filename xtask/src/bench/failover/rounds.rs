//! One quorum of three, whose leader ends again and again.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::ask::{Account, Asker};
use super::watch::{Left, Watch};
use crate::interop::process::{End, matching_lines, wait_for};
use crate::interop::quorum::{BOUND, Make, Plan, Quorum};
use crate::kafka::Release;

/// Whose node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Quorate,
    Java,
}

/// A quorum to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    /// As `--systems` names it.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Nodes 1, 2 and 3. A side that has one node alone has node 1: of followers that are equally far a leader that resigns
    /// prefers the lowest id, so that leadership can be handed to either side.
    pub(super) nodes: [Side; 3],
    pub(super) hints: bool,
}

/// One leader's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) how: End,
    /// Whose leader it was.
    pub(super) ended: Side,
    /// From the signal to the first commit that the new leader owns up to, when it is asked.
    pub(super) commit: Duration,
    /// From the signal to the first acknowledgement; if the new leader is Quorate's.
    pub(super) acknowledgement: Option<Duration>,
    /// How many epochs later the next round begins: one, unless there were elections without a winner, or needless ones
    /// afterwards.
    pub(super) epochs: i32,
}

/// What a Quorate leader appends: enough that a commit is never far, little enough to load nothing.
const WORKLOAD: &str = "inflight=4,size=100,rate=100";

/// How long there may be no leader.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long after the first commit the first acknowledgement may take.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(2);

/// How often leadership is handed on until it is with the side that is wanted.
const MAX_TURNS: usize = 10;

pub(super) struct Rounds {
    system: System,
    quorum: Quorum,
    done: u64,
}

impl Rounds {
    /// Formats the directories and starts all three.
    pub(super) fn start(
        system: System,
        release: &Release,
        binary: &Path,
        dir: &Path,
    ) -> Result<Rounds> {
        let hints = if system.hints { "" } else { "quorate.hint.delay.ms=0\n" };
        let plan = |side: Side| match side {
            Side::Java => Plan { make: Make::Java(release.clone()), properties: String::new() },
            Side::Quorate => Plan {
                make: Make::Quorate(["--workload", WORKLOAD].map(str::to_owned).to_vec()),
                properties: hints.to_owned(),
            },
        };
        let controllers = system.nodes.map(plan).into_iter().collect();
        let mut quorum = Quorum::format(binary, dir, None, false, release, controllers, None)?;
        for id in 1..=3 {
            quorum.start(id)?;
        }
        let mut rounds = Rounds { system, quorum, done: 0 };
        rounds.rest()?;
        Ok(rounds)
    }

    /// Ends a leader of this side, and measures until another has committed. All three run again afterwards.
    pub(super) fn round(&mut self, how: End, side: Side) -> Result<Sample> {
        let before = self.led_by(side)?;
        let left = (1..=3).filter(|id| *id != before.leader).map(|id| self.left(id));
        let mut watch = Watch::begin(left.collect::<Result<_>>()?, before.epoch)?;
        let start = Instant::now();
        self.quorum.end(before.leader, how)?;
        let commit = watch.first_commit(PATIENCE)?;
        let acknowledgement = match self.side(commit.by) {
            Side::Quorate => watch.first_acknowledgement(commit.epoch, ACKNOWLEDGEMENT),
            Side::Java => None,
        };
        drop(watch);
        self.quorum.start(before.leader)?;
        let after = self.rest()?;
        Ok(Sample {
            how,
            ended: side,
            commit: commit.at.saturating_duration_since(start),
            acknowledgement: acknowledgement.map(|seen| seen.at.saturating_duration_since(start)),
            epochs: after.epoch - before.epoch,
        })
    }

    /// All logs are the same below what is committed; then everything ends. Counts the rounds of pre-votes and of votes that
    /// Quorate's nodes asked for.
    pub(super) fn finish(mut self) -> Result<(usize, usize)> {
        self.settled()?;
        self.quorum.compare()?;
        self.quorum.end_all()?;
        let mut asked = (0, 0);
        for node in self.quorum.controllers().filter(|node| matches!(node.make, Make::Quorate(_))) {
            let lines = matching_lines(&node.log(), |line| line.contains("election round, "))?;
            let pre_votes = lines.iter().filter(|line| line.contains("round, pre-vote:")).count();
            asked.0 += pre_votes;
            asked.1 += lines.len() - pre_votes;
        }
        Ok(asked)
    }

    fn side(&self, id: i32) -> Side {
        let place = usize::try_from(id - 1).ok();
        place.and_then(|place| self.system.nodes.get(place)).copied().unwrap_or(Side::Quorate)
    }

    fn left(&self, id: i32) -> Result<Left> {
        let node = self.quorum.node(id)?;
        let log = matches!(node.make, Make::Quorate(_)).then(|| node.log());
        Ok(Left { id, port: self.quorum.port(id)?, log })
    }

    /// Waits until all three are level, and a while longer: what follows begins anywhere in the half second for which a leader
    /// holds a Fetch. After a start of Java's more time is needed: it compiles what it runs.
    fn rest(&mut self) -> Result<Account> {
        self.settled()?;
        self.done += 1;
        let has_java = self.system.nodes.contains(&Side::Java);
        let base = if has_java { 1500 } else { 300 };
        thread::sleep(Duration::from_millis(base + self.done * 137 % 500));
        self.settled()
    }

    /// Hands leadership on until it is with this side. All three are level, and have rested.
    fn led_by(&mut self, side: Side) -> Result<Account> {
        for _ in 0..MAX_TURNS {
            let now = self.settled()?;
            if self.side(now.leader) == side {
                return Ok(now);
            }
            self.quorum.end(now.leader, End::Terminate)?;
            wait_for("a leader after the one that handed over", BOUND, || {
                Ok(self.account()?.filter(|later| later.epoch > now.epoch))
            })?;
            self.quorum.start(now.leader)?;
            self.rest()?;
        }
        bail!("{side:?} does not get its turn")
    }

    /// Waits until somebody leads and all three have what is committed.
    fn settled(&mut self) -> Result<Account> {
        wait_for("three voters that are level", BOUND, || {
            let Some(now) = self.account()? else { return Ok(None) };
            let is_level = now.log_ends.len() == 3
                && now.high_watermark > 0
                && now.log_ends.iter().all(|end| *end >= now.high_watermark);
            Ok(is_level.then_some(now))
        })
    }

    /// The account of whoever leads the latest epoch.
    fn account(&mut self) -> Result<Option<Account>> {
        self.quorum.check()?;
        let running = self.quorum.controllers().filter(|node| node.is_running());
        let mut accounts = Vec::new();
        for id in running.map(|node| node.id).collect::<Vec<_>>() {
            let port = self.quorum.port(id)?;
            // One that does not answer is not there yet.
            if let Ok(Some(account)) = Asker::connect(port).and_then(|mut asker| asker.ask()) {
                accounts.push(account);
            }
        }
        Ok(accounts.into_iter().max_by_key(|account| account.epoch))
    }
}

/// The sides that a system has, each once.
pub(super) fn sides(system: &System) -> Vec<Side> {
    [Side::Quorate, Side::Java].into_iter().filter(|side| system.nodes.contains(side)).collect()
}

/// A system by its name.
pub(super) fn find(systems: &[System], name: &str) -> Result<System> {
    let known: Vec<&str> = systems.iter().map(|system| system.name).collect();
    let found = systems.iter().find(|system| system.name == name).copied();
    found.with_context(|| format!("no system is named {name}; there are {}", known.join(", ")))
}
