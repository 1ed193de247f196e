//! A small limit on what may be appended and not committed, met all the time while leaders fall: nothing of it leaks, and a
//! leader at rest takes proposals.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "uncommitted-limit",
    row: Some("B155"),
    about: "the limit of uncommitted bytes is met while leaders fall; afterwards all is accepted",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 30 * SECOND);
    plan.timeouts = Timeouts { election: ms(300), fetch: ms(600), ..Timeouts::defaults() };
    plan.disk.max_batch_bytes = 2 << 10;
    plan.disk.max_uncommitted_bytes = 4 << 10;
    plan.disk.sync = (MS, 30 * MS);
    let mut at = SECOND;
    while at < 20 * SECOND {
        // Some are larger than a batch may be.
        let size = random.pick(&[10, 500, 900, 2500]);
        plan.at(
            at,
            Action::Propose { pick: random.number() | 1, records: random.within(1, 4), size },
        );
        at += random.below(20 * MS);
    }
    let mut at = 2 * SECOND;
    while at < 20 * SECOND {
        let who = Target::Leader;
        let lasts = random.within(300, 1500) * MS;
        plan.at(
            at,
            match random.below(3) {
                0 => Action::Crash { who, power: true, mid_write: None, down: lasts },
                1 => Action::Resign { who },
                _ => Action::Isolate { who, sends: false, hears: false, observers: true, lasts },
            },
        );
        at += random.within(500, 2000) * MS;
    }
    // At rest, one at a time.
    for n in 0..40 {
        plan.at(25 * SECOND + n * 100 * MS, Action::Propose { pick: 1, records: 1, size: 500 });
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("leaders", history.leaders().count(), 3)?;
    let rested = history
        .acknowledged
        .iter()
        .filter(|(proposed, ..)| (25 * SECOND..29 * SECOND).contains(proposed));
    at_least("proposals acknowledged at rest", rested.count(), 40)
}
