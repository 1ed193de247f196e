//! A leader that too few voters can reach, though an observer can, gives up by itself, and acknowledges nothing more.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "isolated-leader",
    row: Some("B004"),
    about: "a leader cut off from a majority resigns within one and a half fetch timeouts",
    plan,
    expect,
};

const CUT_AT: Micros = 6 * SECOND;

fn plan(random: &mut Random) -> Plan {
    let keeps_one = random.percent(50);
    let mut plan = Plan::calm(if keeps_one { 5 } else { 3 }, 1, true, 16 * SECOND);
    plan.propose_every(random, SECOND, 50 * MS);
    let lasts = 9 * SECOND;
    if keeps_one {
        for to in (0..3).map(Target::Other) {
            for from in [Target::Leader, Target::Other(3)] {
                plan.at(CUT_AT, Action::Cut { from, to, both: true, lasts });
            }
        }
        return plan;
    }
    let isolate = Action::Isolate {
        who: Target::Leader,
        sends: false,
        hears: false,
        observers: false,
        lasts,
    };
    plan.at(CUT_AT, isolate);
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let Some((cut, leader)) = history.hits.first().copied() else {
        return Err("nobody led when the link was to be cut".to_owned());
    };
    // The last majority may be one that was heard just before the cut, and the one voter that is left.
    let last_majority =
        if plan.voters == 5 { cut + micros(plan.timeouts.fetch_max_wait) + 10 * MS } else { cut };
    let limit = last_majority + micros(plan.timeouts.fetch) * 3 / 2 + 10 * MS;
    let resigned = history.roles.iter().any(|change| {
        change.node == leader && change.role == "resigned" && (cut..=limit).contains(&change.at)
    });
    ensure(resigned, || format!("n{} did not resign by {limit}", leader + 1))?;
    let next = history.leaders().find(|change| change.at > cut && change.node != leader);
    let in_time = next.is_some_and(|change| change.at < cut + 8 * SECOND);
    ensure(in_time, || format!("no other leader in time: {next:?}"))?;
    // What was on its way when the link went may still be acknowledged.
    let late = history.acknowledged.iter().find(|(proposed, told, node)| {
        *node == leader && *proposed > cut && *told < cut + 9 * SECOND
    });
    ensure(late.is_none(), || format!("the isolated leader acknowledged: {late:?}"))
}
