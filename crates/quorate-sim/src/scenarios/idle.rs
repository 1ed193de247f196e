//! A cluster that has nothing to do does nothing but fetch: a few messages for each node and second.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "idle",
    row: Some("B139"),
    about: "three voters and three observers, idle for five minutes",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    Plan::calm(3, 3, true, random.within(200, 300) * SECOND)
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let leaders = history.leaders().count();
    ensure(leaders == 1, || format!("{leaders} leaders in an idle cluster"))
}
