//! The power fails all the time, at any node, with any part of what was not synced left: nothing that was
//! acknowledged may go.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "power-cuts",
    row: Some("B095"),
    about: "power cuts everywhere, often in the middle of a write",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let voters = random.pick(&[3, 5]);
    let mut plan = Plan::calm(voters, 0, random.percent(50), 20 * SECOND);
    plan.timeouts = Timeouts { election: ms(200), fetch: ms(400), ..Timeouts::drawn(random) };
    plan.disk.sync = (MS, 40 * MS);
    plan.disk.segment_bytes = random.pick(&[400, 2000, 64 << 10]);
    plan.propose_every(random, 300 * MS, 10 * MS);
    let mut at = SECOND;
    while at < plan.quiet_at {
        let who =
            if random.percent(40) { Target::Leader } else { Target::Node(random.index(voters)) };
        let mid_write = random.percent(80).then(|| u32::try_from(random.below(6)).unwrap_or(0));
        let down = random.within(10, 400) * MS;
        plan.at(at, Action::Crash { who, power: true, mid_write, down });
        at += random.within(100, 800) * MS;
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("records committed", usize::try_from(history.committed.0).unwrap_or(0), 10)
}
