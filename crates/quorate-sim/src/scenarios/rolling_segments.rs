//! Segments of a batch or two, and power cuts in the middle of rolling: no segment vanishes whose records were promised.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "rolling-segments",
    row: Some("B103"),
    about: "the power fails while segments are rolled",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 15 * SECOND);
    plan.timeouts = Timeouts {
        election: ms(200),
        fetch: ms(400),
        fetch_max_wait: ms(100),
        ..Timeouts::defaults()
    };
    plan.disk.segment_bytes = random.pick(&[150, 300]);
    plan.disk.sync = (MS, 10 * MS);
    plan.propose_every(random, 300 * MS, 30 * MS);
    let mut at = SECOND;
    while at < plan.quiet_at {
        let who = if random.percent(40) { Target::Leader } else { Target::Node(random.index(3)) };
        // Old segment synced, three files made, directory synced, written, synced.
        let mid_write = Some(u32::try_from(random.below(9)).unwrap_or(0));
        let down = random.within(10, 300) * MS;
        plan.at(at, Action::Crash { who, power: true, mid_write, down });
        at += random.within(100, 600) * MS;
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("records committed", usize::try_from(history.committed.0).unwrap_or(0), 10)
}
