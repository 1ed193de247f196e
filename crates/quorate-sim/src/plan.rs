//! What a run is: the cluster, its rates of faults, and every disturbance with its time. All of it is drawn
//! from the seed beforehand, so that a shrinker can take parts away.

use std::time::Duration;

use crate::clock::{MS, Micros, SECOND};
use crate::disk::DiskOperation;
use crate::random::Random;

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many voters.
    pub voters: usize,
    /// How many observers beside them.
    pub observers: usize,
    /// Voters in the 0-0 checkpoint (kraft.version 1) instead of configured ones.
    pub is_dynamic: bool,
    /// What each node speaks.
    pub generations: Vec<Generation>,
    /// Which nodes take hints of a leader's death; the others wait for their fetch timeout, as Java does.
    pub hints: Vec<bool>,
    /// Microseconds on each node's clock while a million pass.
    pub clock_rates: Vec<u64>,
    /// Timeouts, as in `controller.quorum.*`.
    pub timeouts: Timeouts,
    /// The network when nothing in particular is wrong.
    pub network: Network,
    /// The disks.
    pub disk: Disk,
    /// How long a process takes to look at what has come in.
    pub wake: (Micros, Micros),
    /// What happens when.
    pub schedule: Vec<(Micros, Action)>,
    /// When faults end and the quiet phase begins.
    pub quiet_at: Micros,
    /// What directories begin with, per node: epochs, each with this many records after its leader's own, or with
    /// nothing in the log at all. Empty for an empty directory.
    pub logs: Vec<Vec<(i32, Option<usize>)>>,
    /// Checkers that keep silent, by name: to learn whether others see the same fault.
    pub silent: Vec<String>,
}

/// Timeouts of all nodes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Named as the core's configuration.
pub struct Timeouts {
    pub election: Duration,
    pub election_backoff_max: Duration,
    pub fetch: Duration,
    pub request: Duration,
    pub retry_backoff: Duration,
    pub fetch_max_wait: Duration,
    pub linger: Duration,
    /// `Config::high_watermark_linger`.
    pub high_watermark_linger: Duration,
}

/// The network.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// How long a message takes, in microseconds.
    pub latency: (Micros, Micros),
    /// How many messages in a thousand are lost.
    pub lost: u64,
    /// How many requests in a thousand come twice.
    pub doubled: u64,
    /// How many messages in a thousand take very long, and are overtaken.
    pub late: u64,
    /// How long these take at most.
    pub late_by: Micros,
    /// How many requests in a thousand end with a reset connection.
    pub reset: u64,
    /// How many requests in a hundred to a machine without a process are never answered, not even refused.
    pub silent: u64,
}

/// The disks.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// How long a group of writes takes until it is durable.
    pub sync: (Micros, Micros),
    /// How many groups in a thousand take long.
    pub slow: u64,
    /// How long these take at most.
    pub slow_by: Micros,
    /// How long a read takes of what memory does not have.
    pub read: (Micros, Micros),
    /// `metadata.log.segment.bytes`.
    pub segment_bytes: u64,
    /// How many bytes of durable batches stay in memory.
    pub tail_bytes: usize,
    /// How many bytes a Fetch asks for.
    pub fetch_max_bytes: u32,
    /// The largest batch.
    pub max_batch_bytes: usize,
    /// How many bytes may be appended and not committed.
    pub max_uncommitted_bytes: usize,
}

/// The RPC versions that a node knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Vote 0, Fetch 16: before KIP-853. Fits static quorums alone.
    V37,
    /// Vote 1, Fetch 17: no pre-vote.
    V39,
    /// Vote 2, Fetch 17: no high watermark in Fetch.
    V40,
    /// All that we speak.
    Newest,
}

impl Generation {
    /// The highest version of an API, by its key.
    pub(crate) fn highest(self, key: i16, ours: i16) -> i16 {
        let limit = match (self, key) {
            (Generation::Newest, _) => ours,
            (Generation::V37, 1) => 16,
            (_, 1) => 17,
            (Generation::V37, _) => 0,
            (Generation::V39, 52) => 1,
            _ => ours,
        };
        limit.min(ours)
    }
}

/// Whom a disturbance hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This node, counted from 0.
    Node(usize),
    /// Whoever leads the newest epoch at that time.
    Leader,
    /// One that does not lead at that time: the n-th of them.
    Other(usize),
}

/// A disturbance, or a client's deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client proposes records to one of the nodes that believe to lead.
    Propose {
        /// Which of them.
        pick: u64,
        /// How many records.
        records: u64,
        /// How many bytes each, about.
        size: u64,
    },
    /// A process ends: by `kill -9`, or with its machine in a power cut.
    Crash {
        /// Which.
        who: Target,
        /// Whether unsynced writes may be lost.
        power: bool,
        /// It ends at so many operations into the next writes.
        mid_write: Option<u32>,
        /// How long until it is back.
        down: Micros,
    },
    /// A process stands still while its messages pile up.
    Pause {
        /// Which.
        who: Target,
        /// How long.
        lasts: Micros,
    },
    /// A link is cut in one direction or both.
    Cut {
        /// From here.
        from: Target,
        /// To there.
        to: Target,
        /// And back.
        both: bool,
        /// How long.
        lasts: Micros,
    },
    /// A node is cut off from the voters.
    Isolate {
        /// Which.
        who: Target,
        /// Whether what it sends gets through nevertheless.
        sends: bool,
        /// Whether it hears nevertheless.
        hears: bool,
        /// Whether observers are cut off as well.
        observers: bool,
        /// How long.
        lasts: Micros,
    },
    /// Two sides that do not hear each other.
    Split {
        /// One bit a node: its side.
        sides: u64,
        /// Only the first side does not hear the other.
        one_way: bool,
        /// How long.
        lasts: Micros,
    },
    /// A link is slow in one direction.
    Slow {
        /// From here.
        from: Target,
        /// To there.
        to: Target,
        /// By so much.
        by: Micros,
        /// How long.
        lasts: Micros,
    },
    /// All connections of a node are reset.
    Reset {
        /// Which.
        who: Target,
    },
    /// The power fails everywhere at once.
    Blackout {
        /// How long until it is back.
        down: Micros,
    },
    /// A process runs, but its machine accepts no connection: those that there are end, and new ones are refused.
    Refuse {
        /// Whose.
        who: Target,
        /// How long.
        lasts: Micros,
    },
    /// The same for connections of one other node.
    RefuseOne {
        /// Who refuses.
        who: Target,
        /// Whose.
        from: Target,
        /// How long.
        lasts: Micros,
    },
    /// No write gets done for a while.
    StickDisk {
        /// Whose.
        who: Target,
        /// How long.
        lasts: Micros,
    },
    /// An operation of a disk fails once.
    FailDisk {
        /// Whose.
        who: Target,
        /// Which.
        operation: DiskOperation,
        /// So many of the kind succeed before.
        after: u32,
    },
    /// Nothing fits on a disk for a while.
    FillDisk {
        /// Whose.
        who: Target,
        /// How long.
        lasts: Micros,
    },
    /// A bit on a disk goes wrong.
    Rot {
        /// Whose.
        who: Target,
        /// Below a process that runs on, and meets it when it reads; or the process ends before, and starts again.
        live: bool,
        /// How long until it is back.
        down: Micros,
    },
    /// A node comes back with an empty disk and a new directory id.
    Wipe {
        /// Which.
        who: Target,
        /// Also where voters are configured, and go by their id: it may vote twice.
        even_static: bool,
        /// How long until it is back.
        down: Micros,
    },
    /// A monotonic clock jumps forward.
    JumpClock {
        /// Whose.
        who: Target,
        /// By so much.
        by: Micros,
    },
    /// A wall clock is set.
    SetWall {
        /// Whose.
        who: Target,
        /// By so many milliseconds.
        by_ms: i64,
    },
    /// The leader's state machine resigns.
    Resign {
        /// Of which node.
        who: Target,
    },
    /// The operator stops a node in good order and starts it again.
    Shutdown {
        /// Which.
        who: Target,
        /// How long until it is back.
        down: Micros,
    },
    /// A copy of the last Fetch that a node sent arrives once more, late.
    RepeatFetch {
        /// Whose.
        who: Target,
    },
}

impl Timeouts {
    /// Kafka's own simulation uses about these; shorter ones make more happen in the same time.
    pub fn drawn(random: &mut Random) -> Timeouts {
        let ms = |n: u64| Duration::from_millis(n);
        let election = random.pick(&[200, 300, 500, 1000]);
        let (fetch, request) =
            (election * random.pick(&[1, 2, 3]), election * random.pick(&[1, 2, 3]));
        Timeouts {
            election: ms(election),
            election_backoff_max: ms(random.pick(&[100, 500, 1000])),
            fetch: ms(fetch),
            request: ms(request),
            retry_backoff: ms(random.pick(&[20, 50])),
            // A leader that holds a Fetch for longer than its follower waits is no leader.
            fetch_max_wait: ms(random.pick(&[50, 100, 300]).min(fetch / 3).min(request / 3)),
            linger: ms(random.pick(&[0, 0, 5, 20])),
            high_watermark_linger: ms(random.pick(&[0, 1])),
        }
    }

    /// Kafka's defaults.
    pub fn defaults() -> Timeouts {
        let ms = Duration::from_millis;
        Timeouts {
            election: ms(1000),
            election_backoff_max: ms(1000),
            fetch: ms(2000),
            request: ms(2000),
            retry_backoff: ms(20),
            fetch_max_wait: ms(500),
            linger: ms(0),
            high_watermark_linger: ms(1),
        }
    }

    /// A span in which a healthy cluster has elected and committed whatever was there before, generously.
    pub(crate) fn recovery(&self) -> Micros {
        let span = self.election * 12 + self.fetch * 4 + self.request * 4 + Duration::from_secs(2);
        u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
    }
}

impl Network {
    /// A network without faults.
    pub fn good() -> Network {
        Network {
            latency: (100, 800),
            lost: 0,
            doubled: 0,
            late: 0,
            late_by: 0,
            reset: 0,
            silent: 30,
        }
    }
}

impl Disk {
    /// A disk without faults, and segments that roll now and then.
    pub fn good() -> Disk {
        Disk {
            sync: (200, 2 * MS),
            slow: 0,
            slow_by: 0,
            read: (50, MS),
            segment_bytes: 8 << 10,
            tail_bytes: 4 << 10,
            fetch_max_bytes: 1 << 20,
            max_batch_bytes: 8 << 20,
            max_uncommitted_bytes: 64 << 20,
        }
    }
}

impl Plan {
    /// Whether this checker is not to be heard.
    pub(crate) fn is_silent(&self, checker: &str) -> bool {
        self.silent.iter().any(|name| name == checker)
    }

    /// A cluster without faults and without anything to do, whose faults would end at this time.
    pub fn calm(voters: usize, observers: usize, is_dynamic: bool, quiet_at: Micros) -> Plan {
        let nodes = voters + observers;
        Plan {
            voters,
            observers,
            is_dynamic,
            generations: vec![Generation::Newest; nodes],
            hints: vec![true; nodes],
            clock_rates: vec![1_000_000; nodes],
            timeouts: Timeouts::defaults(),
            network: Network::good(),
            disk: Disk::good(),
            wake: (20, 100),
            schedule: Vec::new(),
            quiet_at,
            logs: Vec::new(),
            silent: Vec::new(),
        }
    }

    /// How many nodes.
    pub fn nodes(&self) -> usize {
        self.voters + self.observers
    }

    /// Puts a disturbance into the schedule.
    pub fn at(&mut self, at: Micros, action: Action) {
        self.schedule.push((at, action));
    }

    /// Clients that propose all the time, about so often.
    pub fn propose_every(&mut self, random: &mut Random, from: Micros, gap: Micros) {
        let mut at = from + random.below(gap);
        while at < self.quiet_at {
            // Several clients at a time, now and then.
            for _ in 0..if random.percent(15) { 1 + random.below(4) } else { 1 } {
                let size =
                    if random.percent(10) { random.within(100, 2000) } else { random.below(60) };
                let records = if random.percent(20) { random.within(2, 6) } else { 1 };
                self.at(at, Action::Propose { pick: random.number(), records, size });
            }
            at += 1 + random.below(2 * gap);
        }
    }

    /// The end of the quiet phase: by then there must be a leader, a commit and equal logs.
    pub(crate) fn deadline(&self) -> Micros {
        self.quiet_at + 2 * self.timeouts.recovery() + 20 * SECOND
    }

    pub(crate) fn ordered(mut self) -> Plan {
        self.schedule.sort_by_key(|(at, _)| *at);
        self
    }
}

/// So long a run's cluster is left idle at its end, to see that it comes to rest.
pub(crate) const IDLE: Micros = 3 * SECOND;
