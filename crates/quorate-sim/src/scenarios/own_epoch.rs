//! Leaders fall one after another, so that records of older epochs are on a majority before anything of a new
//! epoch is: the high watermark must wait for the new leader's own first record.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "own-epoch",
    row: Some("B003"),
    about: "leaders fall in a row; nothing is committed before a record of the own epoch",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 20 * SECOND);
    plan.timeouts = Timeouts { election: ms(300), fetch: ms(600), ..Timeouts::defaults() };
    plan.network.latency = (MS, 20 * MS);
    plan.propose_every(random, 500 * MS, 10 * MS);
    let mut at = SECOND;
    while at < plan.quiet_at {
        let down = random.within(300, 1500) * MS;
        plan.at(
            at,
            Action::Crash { who: Target::Leader, power: random.percent(50), mid_write: None, down },
        );
        at += random.within(600, 1500) * MS;
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("leaders", history.leaders().count(), 3)
}
