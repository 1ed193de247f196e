//! Clusters of other sizes than the default's, from one voter to seven, with observers.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "sizes",
    row: None,
    about: "one to seven voters and up to three observers, every kind of fault",
    plan,
    expect: nothing_more,
};

fn plan(random: &mut Random) -> Plan {
    let voters = random.pick(&[1, 2, 2, 4, 6, 7]);
    let is_dynamic = random.percent(60);
    let observers = if is_dynamic { random.index(4) } else { 0 };
    default::drawn(random, voters, observers, is_dynamic)
}
