//! A leader falls with records that only it has, and starts again alone: it never leads that epoch again, and no offset of
//! the epoch is used twice.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "former-leader",
    row: Some("B001"),
    about: "leaders lose their unsynced records, and start again while nobody else runs",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 30 * SECOND);
    plan.timeouts = Timeouts { election: ms(300), fetch: ms(600), ..Timeouts::defaults() };
    // Its own flush is the last.
    plan.disk.sync = (5 * MS, 40 * MS);
    plan.propose_every(random, SECOND, 5 * MS);
    for n in 0..6 {
        let at = (4 + 4 * n) * SECOND;
        plan.at(
            at,
            Action::Crash {
                who: Target::Leader,
                power: true,
                mid_write: Some(u32::try_from(random.below(3)).unwrap_or(0)),
                down: random.within(10, 200) * MS,
            },
        );
        // The others are not there to tell it of a newer epoch.
        for other in 0..2 {
            let (who, down) = (Target::Other(other), SECOND + random.below(SECOND));
            plan.at(at - 1, Action::Crash { who, power: false, mid_write: None, down });
        }
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let mut led: Vec<(usize, i32)> =
        history.leaders().map(|change| (change.node, change.epoch.0)).collect();
    at_least("leaders", led.len(), 4)?;
    led.sort_unstable();
    let twice = led.windows(2).find(|pair| pair[0] == pair[1]);
    ensure(twice.is_none(), || format!("one epoch, led twice: {twice:?}"))
}
