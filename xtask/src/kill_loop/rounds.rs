//! The rounds: load, kills, restarts, and the wait until records are acknowledged again.

use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::cluster::{Cluster, NODES};
use super::elections::Elections;
use super::failure::{Checked, found};
use super::history::{History, Incarnation};
use super::lines::Outcome;
use super::log_copy::{LogCopy, Segments};
use super::process::{Process, Said, What};
use super::settle::settled;
use super::verdict;

/// What the leader appends. The rate leaves room, so that a round's time is the quorum's own.
const WORKLOAD: &str = "inflight=64,size=64,rate=2000";
/// A round in which no record is acknowledged for so long has failed.
const PROGRESS_BOUND: Duration = Duration::from_secs(30);
/// How long a node may take to stop in good order, and the quorum to come to rest.
const STOP_BOUND: Duration = Duration::from_secs(30);
const SETTLE_BOUND: Duration = Duration::from_secs(60);
/// What a killed process wrote is read within this time.
const DRAIN_BOUND: Duration = Duration::from_secs(10);
/// Lines that may wait to be looked at.
const QUEUE: usize = 1 << 16;

/// What is killed in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One voter.
    One,
    /// Two, one shortly after the other: no majority is left.
    Two,
    /// One, and soon after it came back once more: in the middle of its truncation or its catching up.
    Again,
    /// The leader, and the next one at the moment it says that it leads.
    Election,
    /// All at once.
    All,
    /// Both followers, until the leader gives up: the outcome of what it has in flight is unknown.
    Deposed,
    /// Both followers and then the leader, which comes back last, with records that nobody else has, and is
    /// perhaps killed once more while it truncates them.
    Diverged,
}

/// A run under way.
pub(super) struct Loop {
    cluster: Cluster,
    random: Xoshiro256PlusPlus,
    history: History,
    elections: Elections,
    said: (SyncSender<Said>, Receiver<Said>),
    /// How many streams of a process have ended.
    ended: HashMap<Incarnation, u8>,
    last_acknowledged: Option<Instant>,
    /// Since when there is no leader, and the epoch of the last one.
    leaderless: Option<(Instant, i32)>,
    figures: Figures,
    start: Instant,
}

/// The logs on all disks at a time when no node was up.
struct Disks {
    /// All that was acknowledged by then lies below this offset.
    below: i64,
    logs: JoinHandle<Vec<LogCopy>>,
}

/// What the last line tells.
#[derive(Debug, Default)]
pub(super) struct Figures {
    rounds: u32,
    kills: u32,
    leader_kills: u32,
    acknowledged: usize,
    unknown: usize,
    not_appended: usize,
    high_watermark: i64,
    leaderless_ms: Vec<u128>,
    seconds: u64,
}

impl Loop {
    /// Starts all nodes and waits for the first acknowledged records.
    pub(super) fn start(cluster: Cluster, seed: u64) -> Checked<Loop> {
        let mut this = Loop {
            cluster,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            history: History::default(),
            elections: Elections::new(NODES),
            said: sync_channel(QUEUE),
            ended: HashMap::new(),
            last_acknowledged: None,
            leaderless: None,
            figures: Figures::default(),
            start: Instant::now(),
        };
        for node in 0..NODES {
            this.start_node(node, Some(WORKLOAD))?;
        }
        this.wait_for_progress()?;
        let after = this.start.elapsed().as_millis();
        println!("kill-loop: the first record was acknowledged after {after} ms");
        Ok(this)
    }

    /// One round.
    pub(super) fn round(&mut self, round: u32, of: u32) -> Checked {
        let start = Instant::now();
        let acknowledged = self.history.acknowledged().len();
        self.pause(200, 1000)?;
        let kind = self.kind(round);
        let victims = self.victims(kind, round.is_multiple_of(3))?;
        let (kills, leader_kills) = (self.figures.kills, self.figures.leader_kills);
        match kind {
            Kind::One => {
                self.kill(&victims)?;
                self.pause(0, 1500)?;
                self.restart(victims.clone())?;
            }
            Kind::Two => {
                for victim in &victims {
                    self.kill(&[*victim])?;
                    self.pause(0, 300)?;
                }
                self.restart(victims.clone())?;
            }
            Kind::Again => {
                for _ in 0..2 {
                    self.kill(&victims)?;
                    self.pause(0, 800)?;
                    self.restart(victims.clone())?;
                    self.pause(50, 900)?;
                }
            }
            Kind::Election => {
                self.kill(&victims)?;
                let (next, _) = self.wait_for_leader()?;
                self.kill(&[next])?;
                self.pause(0, 500)?;
                self.restart(vec![next, victims.first().copied().unwrap_or(next)])?;
            }
            Kind::All => {
                self.kill(&victims)?;
                let disks = self.read_disks()?;
                self.restart(victims.clone())?;
                self.check_disks(disks)?;
            }
            Kind::Deposed => {
                let (followers, _) = self.leave_leader_alone()?;
                // Check-quorum takes one and a half fetch timeouts, 3 s.
                self.pause(2500, 4500)?;
                self.restart(followers)?;
            }
            Kind::Diverged => {
                let (followers, leader) = self.leave_leader_alone()?;
                self.pause(50, 300)?;
                self.kill(&[leader])?;
                self.restart(followers)?;
                self.wait_for_progress()?;
                self.restart(vec![leader])?;
                if self.below(2) == 0 {
                    self.pause(0, 100)?;
                    self.kill(&[leader])?;
                    self.restart(vec![leader])?;
                }
            }
        }
        let waited = self.wait_for_progress()?;
        self.figures.rounds = round;
        println!(
            "kill-loop: round {round}/{of}: {kind:?}, {} killed, the leader {} times, acknowledged {}, epoch {}, \
             progress after {} ms, {:.1} s",
            self.figures.kills - kills,
            self.figures.leader_kills - leader_kills,
            self.history.acknowledged().len() - acknowledged,
            self.history.latest_leader().map_or(0, |(epoch, _)| epoch),
            waited.as_millis(),
            start.elapsed().as_secs_f64(),
        );
        Ok(())
    }

    /// Stops the load, lets the quorum come to rest, stops it and judges the logs.
    pub(super) fn finish(mut self) -> Checked<Figures> {
        self.pause(300, 600)?;
        self.stop_all()?;
        for node in 0..NODES {
            self.start_node(node, None)?;
        }
        let high_watermark = self.wait_until_settled()?;
        self.stop_all()?;
        let disks = self.read_disks()?;
        let logs = self.parsed(disks.logs)?;
        verdict::final_state(&self.history, &logs, high_watermark)?;
        self.figures.acknowledged = self.history.acknowledged().len();
        self.figures.unknown = self.history.unknown();
        self.figures.not_appended = self.history.not_appended();
        self.figures.high_watermark = high_watermark;
        self.figures.seconds = self.start.elapsed().as_secs();
        Ok(self.figures)
    }

    /// Rare kinds come at fixed rounds, so that ten rounds have one of each.
    fn kind(&mut self, round: u32) -> Kind {
        match round % 10 {
            _ if round.is_multiple_of(6) => Kind::Election,
            4 => Kind::Deposed,
            8 => Kind::Diverged,
            _ => match self.below(100) {
                0..40 => Kind::One,
                40..60 => Kind::Two,
                60..80 => Kind::Again,
                _ => Kind::All,
            },
        }
    }

    /// The first nodes to be killed, in order.
    fn victims(&mut self, kind: Kind, leader_first: bool) -> Checked<Vec<usize>> {
        let mut nodes: Vec<usize> = (0..NODES).collect();
        self.shuffle(&mut nodes);
        if leader_first || kind == Kind::Election {
            let (leader, _) = self.wait_for_leader()?;
            nodes.sort_by_key(|node| *node != leader);
        }
        nodes.truncate(match kind {
            Kind::One | Kind::Again | Kind::Election => 1,
            Kind::Two => 2,
            Kind::All => NODES,
            // Who that is turns out when it is done.
            Kind::Deposed | Kind::Diverged => 0,
        });
        Ok(nodes)
    }

    /// Kills both followers; returns them and the leader.
    fn leave_leader_alone(&mut self) -> Checked<(Vec<usize>, usize)> {
        let (leader, _) = self.wait_for_leader()?;
        let followers: Vec<usize> = (0..NODES).filter(|node| *node != leader).collect();
        self.kill(&followers)?;
        Ok((followers, leader))
    }

    /// Kills nodes at the same time, reads their last words, and looks at what is on their disks.
    fn kill(&mut self, nodes: &[usize]) -> Checked {
        let leader = self.leader();
        let now = Instant::now();
        let mut killed: Vec<Process> =
            nodes.iter().filter_map(|node| self.cluster.take(*node)).collect();
        for process in &mut killed {
            process.kill()?;
        }
        for process in &mut killed {
            process.wait()?;
        }
        for process in killed {
            self.figures.kills += 1;
            if let Some((node, epoch)) = leader
                && node == process.who.node
            {
                self.figures.leader_kills += 1;
                self.leaderless.get_or_insert((now, epoch));
            }
            self.drain(process.who)?;
            self.check_election(process.who.node)?;
        }
        Ok(())
    }

    fn check_election(&mut self, node: usize) -> Checked {
        let led = self.history.latest_led_by(node);
        self.elections.check(node, &self.cluster.log_dir(node), led)
    }

    /// Waits until everything that an ended process wrote was read.
    fn drain(&mut self, who: Incarnation) -> Checked {
        let all_read = |this: &Loop| this.ended.get(&who).is_some_and(|streams| *streams == 2);
        match self.listen(DRAIN_BOUND, all_read)? {
            true => Ok(()),
            false => Err(anyhow!("node {} is gone, but its pipes stay open", who.node + 1).into()),
        }
    }

    fn restart(&mut self, mut nodes: Vec<usize>) -> Checked {
        self.shuffle(&mut nodes);
        for node in nodes {
            self.pause(0, 300)?;
            self.start_node(node, Some(WORKLOAD))?;
        }
        Ok(())
    }

    fn start_node(&mut self, node: usize, workload: Option<&str>) -> Checked {
        let seed = self.random.next_u64() >> 32;
        self.cluster.start(node, workload, seed, &self.said.0)?;
        Ok(())
    }

    /// What all disks have. Nobody is up, nor waits for us to make sense of it: that would be leaderless time.
    fn read_disks(&self) -> Checked<Disks> {
        let logs = (0..NODES).map(|node| Segments::read(&self.cluster.log_dir(node)));
        let logs: Vec<Segments> = logs.collect::<anyhow::Result<_>>()?;
        let below = self.history.acknowledged().last_key_value().map_or(0, |(last, _)| last + 1);
        let parse = move || logs.into_iter().map(LogCopy::parse).collect();
        Ok(Disks { below, logs: thread::spawn(parse) })
    }

    /// Whatever was acknowledged when all nodes were down was on the disks of a majority.
    fn check_disks(&mut self, disks: Disks) -> Checked {
        let logs = self.parsed(disks.logs)?;
        verdict::majority_has_acknowledged(&self.history, &logs, disks.below)
    }

    /// Goes on listening until the logs are taken apart.
    fn parsed(&mut self, logs: JoinHandle<Vec<LogCopy>>) -> Checked<Vec<LogCopy>> {
        while !logs.is_finished() {
            self.listen(Duration::from_millis(20), |_| false)?;
        }
        Ok(logs.join().map_err(|_| anyhow!("a log cannot be taken apart"))?)
    }

    /// SIGTERM to all; each must hand over and exit with 0.
    fn stop_all(&mut self) -> Checked {
        let mut stopping: Vec<Process> =
            (0..NODES).filter_map(|node| self.cluster.take(node)).collect();
        for process in &stopping {
            process.terminate()?;
        }
        let deadline = Instant::now() + STOP_BOUND;
        for process in &mut stopping {
            let name = process.who.node + 1;
            let status = loop {
                if let Some(status) = process.ended()? {
                    break status;
                }
                if Instant::now() >= deadline {
                    return found("stop", format!("node {name} runs {STOP_BOUND:?} after SIGTERM"));
                }
                self.listen(Duration::from_millis(10), |_| false)?;
            };
            if !status.success() {
                return found("stop", format!("node {name} ended with {status} after SIGTERM"));
            }
            self.drain(process.who)?;
            self.check_election(process.who.node)?;
        }
        Ok(())
    }

    fn wait_until_settled(&mut self) -> Checked<i64> {
        let deadline = Instant::now() + SETTLE_BOUND;
        loop {
            let description = self.cluster.describe();
            if let Ok(description) = &description
                && let Some(high_watermark) = settled(description, NODES)
            {
                return Ok(high_watermark);
            }
            if Instant::now() >= deadline {
                return found("settle", format!("after {SETTLE_BOUND:?}: {description:?}"));
            }
            self.listen(Duration::from_millis(200), |_| false)?;
            // `listen` returns early only if there is something to hear.
            sleep(Duration::from_millis(10));
        }
    }

    /// The node that leads, as far as is known, and its epoch.
    fn leader(&self) -> Option<(usize, i32)> {
        let (epoch, who) = self.history.latest_leader()?;
        let running = self.cluster.running(who.node)?;
        (running.who == who).then_some((who.node, epoch))
    }

    fn wait_for_leader(&mut self) -> Checked<(usize, i32)> {
        self.listen(PROGRESS_BOUND, |this| this.leader().is_some())?;
        match self.leader() {
            Some(leader) => Ok(leader),
            None => found("progress", format!("no leader for {PROGRESS_BOUND:?}")),
        }
    }

    /// Waits for a record that is acknowledged from now on; returns how long that took.
    fn wait_for_progress(&mut self) -> Checked<Duration> {
        let now = Instant::now();
        let again = |this: &Loop| this.last_acknowledged.is_some_and(|at| at > now);
        match self.listen(PROGRESS_BOUND, again)? {
            true => Ok(now.elapsed()),
            false => found("progress", format!("nothing was acknowledged for {PROGRESS_BOUND:?}")),
        }
    }

    /// Goes on listening for a random time.
    fn pause(&mut self, from_ms: u64, to_ms: u64) -> Checked {
        let ms = from_ms + self.below(to_ms - from_ms + 1);
        self.listen(Duration::from_millis(ms), |_| false)?;
        Ok(())
    }

    /// Takes in what the nodes say until something is true, which it returns, or for so long.
    fn listen(&mut self, bound: Duration, until: impl Fn(&Loop) -> bool) -> Checked<bool> {
        let deadline = Instant::now() + bound;
        loop {
            if until(self) {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            match self.said.1.recv_timeout((deadline - now).min(Duration::from_millis(50))) {
                Ok(said) => self.hear(said)?,
                Err(RecvTimeoutError::Timeout) => self.check_running()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(anyhow!("the channel of lines is closed").into());
                }
            }
        }
    }

    fn check_running(&mut self) -> Checked {
        let mut gone = None;
        for process in self.cluster.all_running() {
            if let Some(status) = process.ended()? {
                gone = Some((process.who, status));
            }
        }
        if let Some((who, status)) = gone {
            let log = self.cluster.log_file(who);
            return found("exit", format!("{status} of a node by itself, see {}", log.display()));
        }
        Ok(())
    }

    fn hear(&mut self, Said { who, at, what }: Said) -> Checked {
        let node = who.node + 1;
        match what {
            What::Outcome(id, outcome) => {
                if let Outcome::Acknowledged(place) = outcome {
                    self.last_acknowledged = Some(at);
                    if let Some((since, _)) =
                        self.leaderless.take_if(|(_, epoch)| place.epoch > *epoch)
                    {
                        let ms = at.saturating_duration_since(since).as_millis();
                        self.figures.leaderless_ms.push(ms);
                    }
                }
                self.history.outcome(id, outcome)
            }
            What::Leads(epoch) => self.history.leader(epoch, who),
            What::IntegrityFault(line) => found("integrity-fault", format!("node {node}: {line}")),
            What::Nonsense(line) => found("stdout", format!("node {node}: {line}")),
            What::End => {
                *self.ended.entry(who).or_default() += 1;
                Ok(())
            }
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound.max(1)
    }

    fn shuffle(&mut self, nodes: &mut [usize]) {
        for last in (1..nodes.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(0);
            nodes.swap(last, other);
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut leaderless = self.leaderless_ms.clone();
        leaderless.sort_unstable();
        let at = |index: usize| leaderless.get(index).map_or("-".to_owned(), u128::to_string);
        write!(
            f,
            "rounds={} kills={} leader_kills={} acknowledged={} unknown={} not_appended={} high_watermark={} \
             leaderless_ms min={} median={} max={} seconds={}",
            self.rounds,
            self.kills,
            self.leader_kills,
            self.acknowledged,
            self.unknown,
            self.not_appended,
            self.high_watermark,
            at(0),
            at(leaderless.len() / 2),
            at(leaderless.len().saturating_sub(1)),
            self.seconds,
        )
    }
}
