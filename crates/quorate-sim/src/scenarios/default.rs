//! Whole clusters under all kinds of faults, each run with another mix of them.

use super::{Scenario, nothing_more};
use crate::DiskOperation;
use crate::clock::{MS, Micros, SECOND};
use crate::plan::{Action, Disk, Generation, Network, Plan, Target, Timeouts};
use crate::random::Random;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "default",
    row: None,
    about: "three to five voters, 20 to 60 s, every kind of fault, each seed another mix",
    plan,
    expect: nothing_more,
};

fn plan(random: &mut Random) -> Plan {
    let voters = random.pick(&[3, 3, 3, 4, 5, 5]);
    let is_dynamic = random.percent(60);
    let observers = if is_dynamic { random.pick(&[0, 0, 1, 2]) } else { 0 };
    drawn(random, voters, observers, is_dynamic)
}

/// A run with a mix of faults of its own.
pub(super) fn drawn(
    random: &mut Random,
    voters: usize,
    observers: usize,
    is_dynamic: bool,
) -> Plan {
    let quiet_at = random.within(15, 50) * SECOND;
    let mut plan = Plan::calm(voters, observers, is_dynamic, quiet_at);
    plan.timeouts = Timeouts::drawn(random);
    if random.percent(35) {
        let old: &[Generation] = if is_dynamic {
            &[Generation::V39, Generation::V40, Generation::Newest]
        } else {
            &[Generation::V37, Generation::V39, Generation::V40, Generation::Newest]
        };
        for generation in &mut plan.generations {
            *generation = random.pick(old);
        }
    }
    if random.percent(50) {
        for rate in &mut plan.clock_rates {
            *rate = random.within(950_000, 1_050_000);
        }
    }
    plan.network = network(random, &plan.timeouts);
    plan.disk = disk(random);
    plan.wake = random.pick(&[(10, 50), (20, 500), (100, 5000)]);
    let gap = random.pick(&[20 * MS, 100 * MS, 500 * MS]);
    plan.propose_every(random, 200 * MS, gap);
    disturb(random, &mut plan);
    if random.percent(30) {
        for hints in &mut plan.hints {
            *hints = random.percent(50);
        }
    }
    plan
}

fn network(random: &mut Random, timeouts: &Timeouts) -> Network {
    let election = u64::try_from(timeouts.election.as_micros()).unwrap_or(SECOND);
    let slow = random.pick(&[MS, 5 * MS, election / 20]);
    Network {
        latency: (50, slow),
        lost: random.pick(&[0, 0, 5, 30, 100]),
        doubled: random.pick(&[0, 10, 50]),
        late: random.pick(&[0, 10, 50, 150]),
        late_by: random.pick(&[election / 4, election, 4 * election]),
        reset: random.pick(&[0, 0, 5, 20]),
        ..Network::good()
    }
}

fn disk(random: &mut Random) -> Disk {
    Disk {
        sync: (100, random.pick(&[500, 5 * MS, 30 * MS])),
        slow: random.pick(&[0, 10, 100]),
        slow_by: random.pick(&[50 * MS, 500 * MS, 2 * SECOND]),
        read: (50, random.pick(&[5 * MS, 100 * MS, 2 * SECOND])),
        segment_bytes: random.pick(&[500, 4 << 10, 64 << 10]),
        tail_bytes: random.pick(&[0, 0, 1 << 10, 64 << 10]),
        fetch_max_bytes: random.pick(&[1 << 10, 16 << 10, 1 << 20]),
        max_batch_bytes: random.pick(&[4 << 10, 64 << 10]),
        max_uncommitted_bytes: random.pick(&[8 << 10, 64 << 10, 64 << 10]),
    }
}

/// Fills the schedule with disturbances of the kinds that this run has.
fn disturb(random: &mut Random, plan: &mut Plan) {
    let weights: Vec<u64> = (0..KINDS).map(|_| random.pick(&[0, 0, 1, 2, 5])).collect();
    let total: u64 = weights.iter().sum();
    let gap = random.pick(&[300 * MS, SECOND, 3 * SECOND]);
    if total == 0 {
        return;
    }
    let mut at = SECOND + random.below(gap);
    while at < plan.quiet_at {
        let mut left = random.below(total);
        let kind = weights.iter().position(|weight| {
            let is_it = left < *weight;
            left = left.saturating_sub(*weight);
            is_it
        });
        let action = action(random, kind.unwrap_or(0), plan);
        plan.at(at, action);
        at += 1 + random.below(2 * gap);
    }
}

const KINDS: usize = 22;

fn action(random: &mut Random, kind: usize, plan: &Plan) -> Action {
    let who = target(random, plan.nodes());
    let other = target(random, plan.nodes());
    let lasts = span(random, plan);
    let down = random.pick(&[50 * MS, 500 * MS, 2 * SECOND, 5 * SECOND]);
    let operations = random.pick(&[2, 4, 12]);
    let mid_write =
        random.percent(60).then(|| u32::try_from(random.below(operations)).unwrap_or(0));
    match kind {
        0 | 1 => Action::Crash { who, power: true, mid_write, down },
        2 => Action::Crash { who, power: false, mid_write, down },
        3 => Action::Pause { who, lasts },
        4 => Action::Cut { from: who, to: other, both: random.percent(50), lasts },
        5 => Action::Isolate {
            who,
            sends: random.percent(25),
            hears: random.percent(25),
            observers: random.percent(70),
            lasts,
        },
        6 => Action::Split { sides: random.number(), one_way: random.percent(30), lasts },
        7 => Action::Slow { from: who, to: other, by: random.within(MS, SECOND), lasts },
        8 => Action::Reset { who },
        9 | 10 => Action::StickDisk { who, lasts: 2 * lasts },
        11 | 12 => Action::FailDisk {
            who,
            operation: random.pick(&[
                DiskOperation::Write,
                DiskOperation::Sync,
                DiskOperation::Rename,
                DiskOperation::SyncDir,
            ]),
            after: u32::try_from(random.below(4)).unwrap_or(0),
        },
        13 => Action::FillDisk { who, lasts },
        14 => Action::Rot { who, live: random.percent(50), down },
        15 => Action::Wipe { who, even_static: false, down },
        16 => Action::JumpClock { who, by: random.within(10 * MS, 5 * SECOND) },
        17 => Action::SetWall {
            who,
            by_ms: random.pick(&[-3_600_000, -1000, 1000, 3_600_000, 315_360_000_000]),
        },
        18 => {
            if random.percent(50) {
                Action::Resign { who: Target::Leader }
            } else {
                Action::RepeatFetch { who }
            }
        }
        19 => Action::Shutdown { who, down },
        20 => Action::Refuse { who, lasts },
        _ => Action::Blackout { down },
    }
}

fn target(random: &mut Random, nodes: usize) -> Target {
    match random.below(10) {
        0..=3 => Target::Leader,
        4..=6 => Target::Other(random.index(8)),
        _ => Target::Node(random.index(nodes)),
    }
}

/// From much shorter than the timeouts to much longer.
fn span(random: &mut Random, plan: &Plan) -> Micros {
    let election = u64::try_from(plan.timeouts.election.as_micros()).unwrap_or(SECOND);
    match random.below(4) {
        0 => random.within(MS, election / 2),
        1 | 2 => random.within(election / 2, 4 * election),
        _ => random.within(4 * election, 12 * election),
    }
}
