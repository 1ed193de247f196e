//! All start before any name resolves: once names do, there is a leader within a few election timeouts, and nobody waits
//! any longer than that.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "late-names",
    row: Some("B122"),
    about: "no peer can be reached for a minute from the start; then a leader comes soon",
    plan,
    expect,
};

const LASTS: Micros = 60 * SECOND;

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 1, true, LASTS + 20 * SECOND);
    plan.propose_every(random, LASTS, 200 * MS);
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        if from < to {
            let (from, to) = (Target::Node(from), Target::Node(to));
            plan.at(0, Action::Cut { from, to, both: true, lasts: LASTS });
        }
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let early = history.leaders().find(|change| change.at < LASTS);
    ensure(early.is_none(), || format!("a leader of nobody: {early:?}"))?;
    let first = history.leaders().next();
    // A round that is under way, the wait for the next one, and now and then one that collides.
    let limit = LASTS + 6 * micros(plan.timeouts.election);
    ensure(first.is_some_and(|leader| leader.at <= limit), || {
        format!("the first leader: {first:?}")
    })?;
    let observer = history.high_watermarks.iter().find(|(_, of, _)| *of == 3);
    ensure(observer.is_some_and(|(at, ..)| *at <= limit + 3 * SECOND), || {
        format!("the observer hears of the first commit at {observer:?}")
    })
}
