//! Five equal voters start at the same moment on a slow network: elections must not collide for ever.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "slow-start",
    row: Some("B010"),
    about: "five voters start at once, messages take 200 ms: a leader within five election timeouts",
    plan,
    expect,
};

fn plan(_: &mut Random) -> Plan {
    let mut plan = Plan::calm(5, 0, false, 20 * SECOND);
    plan.network.latency = (200 * MS, 200 * MS);
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let first = history.leaders().next().map(|change| change.at);
    // One seed in a thousand may take longer, but not twice as long.
    let limit = 10 * micros(plan.timeouts.election);
    ensure(first.is_some_and(|at| at <= limit), || format!("the first leader at {first:?}"))?;
    let rounds = history.newest_epoch().0;
    ensure(rounds <= 20, || format!("{rounds} epochs"))
}
