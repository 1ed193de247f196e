//! A follower that was away for ten minutes is heard and served at once when it is back.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "long-absence",
    row: Some("B136"),
    about: "a follower is down for ten minutes, and has caught up a second after its start",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let down = 600 * SECOND;
    let mut plan = Plan::calm(3, 0, random.percent(50), down + 15 * SECOND);
    plan.propose_every(random, 4 * SECOND, 8 * SECOND);
    let who = Target::Other(random.index(2));
    plan.at(5 * SECOND, Action::Crash { who, power: random.percent(50), mid_write: None, down });
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let Some((start, node)) = history.starts.iter().rfind(|(at, _)| *at > 10 * SECOND).copied()
    else {
        return Err("it never came back".to_owned());
    };
    let first = history.high_watermarks.iter().find(|(at, of, _)| *of == node && *at > start);
    ensure(first.is_some_and(|(at, ..)| *at <= start + SECOND), || {
        format!("n{} was back at {start} and heard of a commit at {first:?}", node + 1)
    })
}
