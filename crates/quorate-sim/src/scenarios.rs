//! Named runs: how each is drawn from a seed, and what is expected of it beyond what the checkers check.

mod caught_up;
mod clock_jumps;
mod commit_latency;
mod dead_disk;
mod default;
mod dying_connections;
mod failed_sync;
mod flipping_partitions;
mod former_leader;
mod hand_over;
mod hints;
mod idle;
mod inbound_only;
mod isolated_follower;
mod isolated_leader;
mod killed_leader;
mod lagging_epoch;
mod late_names;
mod leader_write_fails;
mod long_absence;
mod lost_state;
mod new_disk;
mod observers_return;
mod old_voters;
mod overlapping_logs;
mod own_epoch;
mod power_cuts;
mod repeated_fetches;
mod returning_voter;
mod rolling_segments;
mod single_voter;
mod sizes;
mod slow_flushes;
mod slow_start;
mod timers;
mod uncommitted_limit;
mod unequal_logs;

use std::time::Duration;

use crate::DiskOperation;
use crate::clock::{MS, Micros, SECOND};
use crate::history::{History, RoleChange};
use crate::plan::{Action, Generation, Network, Plan, Target, Timeouts};
use crate::random::Random;
use crate::world::micros;

/// A named kind of run.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// As the command line names it.
    pub name: &'static str,
    /// The row of the table of known faults that it re-tells, if it does.
    pub row: Option<&'static str>,
    /// What happens, in a sentence.
    pub about: &'static str,
    /// Draws a run.
    pub plan: fn(&mut Random) -> Plan,
    /// In words, what is not as it should be at the end.
    pub expect: fn(&Plan, &History) -> Result<(), String>,
}

impl Scenario {
    /// The run of a seed.
    pub fn draw(&self, seed: u64) -> Plan {
        (self.plan)(&mut Random::new(seed ^ 0x5175_6f72_6174_6500)).ordered()
    }
}

/// All scenarios; the first is the one that runs unless another is named.
pub const ALL: &[Scenario] = &[
    default::SCENARIO,
    sizes::SCENARIO,
    caught_up::SCENARIO,
    clock_jumps::SCENARIO,
    commit_latency::SCENARIO,
    dead_disk::SCENARIO,
    dying_connections::SCENARIO,
    failed_sync::SCENARIO,
    flipping_partitions::SCENARIO,
    former_leader::SCENARIO,
    hand_over::SCENARIO,
    hints::SCENARIO,
    idle::SCENARIO,
    inbound_only::SCENARIO,
    isolated_follower::SCENARIO,
    isolated_leader::SCENARIO,
    killed_leader::SCENARIO,
    lagging_epoch::SCENARIO,
    late_names::SCENARIO,
    leader_write_fails::SCENARIO,
    long_absence::SCENARIO,
    lost_state::SCENARIO,
    new_disk::SCENARIO,
    observers_return::SCENARIO,
    old_voters::SCENARIO,
    overlapping_logs::SCENARIO,
    own_epoch::SCENARIO,
    power_cuts::SCENARIO,
    repeated_fetches::SCENARIO,
    returning_voter::SCENARIO,
    rolling_segments::SCENARIO,
    single_voter::SCENARIO,
    slow_flushes::SCENARIO,
    slow_start::SCENARIO,
    timers::SCENARIO,
    uncommitted_limit::SCENARIO,
    unequal_logs::SCENARIO,
];

/// The scenario of this name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

fn nothing_more(_: &Plan, _: &History) -> Result<(), String> {
    Ok(())
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn at_least(what: &str, found: usize, due: usize) -> Result<(), String> {
    ensure(found >= due, || format!("{found} {what}, at least {due} are due"))
}

/// Whether a node hears later of a commit than it may: after its leader, by this much for each node. What is
/// committed before the sixth second is left out, when the cluster was still new.
fn late_commit(
    plan: &Plan,
    history: &History,
    limit: impl Fn(usize) -> Micros,
) -> Result<(), String> {
    let Some(leader) = history.leaders().last() else { return Err("nobody led".to_owned()) };
    for (at, of, offset) in &history.high_watermarks {
        if *of != leader.node || *at < 6 * SECOND || *at > plan.quiet_at - 3 * SECOND {
            continue;
        }
        for node in 0..plan.nodes() {
            let heard = history
                .high_watermarks
                .iter()
                .find(|(_, other, known)| *other == node && known >= offset)
                .map(|(at, ..)| *at);
            ensure(heard.is_some_and(|heard| heard <= *at + limit(node)), || {
                format!("{offset} was committed at {at}, n{} heard of it at {heard:?}", node + 1)
            })?;
        }
    }
    Ok(())
}
