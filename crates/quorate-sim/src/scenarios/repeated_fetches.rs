//! Old Fetches come once more and late, also after their sender has cut its log: no false acknowledgement.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "repeated-fetches",
    row: Some("B131"),
    about: "copies of old Fetches arrive late, after crashes and truncations",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 25 * SECOND);
    plan.timeouts = Timeouts { election: ms(200), fetch: ms(400), ..Timeouts::drawn(random) };
    plan.network = Network { doubled: 200, late: 100, late_by: 2 * SECOND, ..plan.network };
    plan.propose_every(random, 300 * MS, 20 * MS);
    let mut at = SECOND;
    while at < plan.quiet_at {
        let who = Target::Node(random.index(3));
        plan.at(at, Action::RepeatFetch { who });
        if random.percent(30) {
            let lasts = random.within(200, 900) * MS;
            let who = Target::Leader;
            plan.at(
                at,
                Action::Isolate { who, sends: false, hears: false, observers: true, lasts },
            );
        }
        if random.percent(20) {
            let down = random.within(10, 300) * MS;
            let mid_write = Some(u32::try_from(random.below(4)).unwrap_or(0));
            plan.at(at + 5 * MS, Action::Crash { who, power: true, mid_write, down });
            plan.at(at + 5 * MS + down + random.below(500 * MS), Action::RepeatFetch { who });
        }
        at += random.within(50, 400) * MS;
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("records committed", usize::try_from(history.committed.0).unwrap_or(0), 10)
}
