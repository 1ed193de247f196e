//! Voters that have no pre-vote beside one that has: each time a leader falls, another is elected.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "old-voters",
    row: Some("B024"),
    about: "two of three voters know no pre-vote; the leader is killed twenty times",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, false, 65 * SECOND);
    plan.timeouts = Timeouts { election: ms(300), fetch: ms(600), ..Timeouts::defaults() };
    let newest = random.index(3);
    for (index, generation) in plan.generations.iter_mut().enumerate() {
        if index != newest {
            *generation = random.pick(&[Generation::V37, Generation::V39]);
        }
    }
    plan.propose_every(random, SECOND, 200 * MS);
    for n in 0..20 {
        let crash =
            Action::Crash { who: Target::Leader, power: true, mid_write: None, down: SECOND };
        plan.at((4 + 3 * n) * SECOND, crash);
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("leaders", history.leaders().count(), 20)?;
    ensure(history.hits.len() == 20, || {
        format!("the leader was there {} times of 20", history.hits.len())
    })?;
    let fallbacks =
        history.roles.iter().filter(|change| change.reason == "a voter has no pre-vote");
    at_least("fallbacks", fallbacks.count(), 1)
}
