//! Flushes that take any time: what is durable is counted by writes, and an idle cluster has committed all.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "slow-flushes",
    row: Some("B112"),
    about: "flushes take from nothing to a second; even a quorum of one commits its first record",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(random.pick(&[1, 1, 2, 3]), 0, random.percent(50), 20 * SECOND);
    plan.disk.sync = (0, 20 * MS);
    plan.disk.slow = 400;
    plan.disk.slow_by = SECOND;
    plan.propose_every(random, 100 * MS, 300 * MS);
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("records committed", usize::try_from(history.committed.0).unwrap_or(0), 10)
}
