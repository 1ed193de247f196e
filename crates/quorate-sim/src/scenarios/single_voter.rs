//! A quorum of one has nobody to hear from, and leads for ever.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "single-voter",
    row: Some("B006"),
    about: "one voter, idle for long: one epoch, one leader",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(1, 0, random.percent(50), 60 * SECOND);
    plan.disk.slow = random.pick(&[0, 200]);
    plan.disk.slow_by = SECOND;
    plan.propose_every(random, SECOND, 5 * SECOND);
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let leaders = history.leaders().count();
    ensure(leaders == 1, || format!("{leaders} leaders in a quorum of one"))
}
