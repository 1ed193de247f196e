//! Partitions that flip within election timeouts, and power cuts in the middle of quorum-state: never two leaders
//! in an epoch.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "flipping-partitions",
    row: Some("B034"),
    about: "partitions flip all the time, and the power fails while votes are written",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(5, 0, random.percent(50), 25 * SECOND);
    plan.timeouts = Timeouts { election: ms(300), fetch: ms(600), ..Timeouts::drawn(random) };
    plan.disk.sync = (MS, 30 * MS);
    plan.network.latency = (100, 10 * MS);
    plan.propose_every(random, 500 * MS, 50 * MS);
    let mut at = SECOND;
    while at < plan.quiet_at {
        let lasts = random.within(150, 600) * MS;
        plan.at(at, Action::Split { sides: random.number(), one_way: random.percent(30), lasts });
        if random.percent(40) {
            let who = Target::Node(random.index(5));
            let mid_write = Some(u32::try_from(random.below(8)).unwrap_or(0));
            let down = random.within(20, 800) * MS;
            // In the quiet phase nobody dies any more.
            let crash_at = (at + random.below(lasts)).min(plan.quiet_at - 1);
            plan.at(crash_at, Action::Crash { who, power: true, mid_write, down });
        }
        at += lasts;
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("epochs", usize::try_from(history.newest_epoch().0).unwrap_or(0), 3)
}
