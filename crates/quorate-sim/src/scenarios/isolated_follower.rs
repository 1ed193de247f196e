//! A follower that is cut off for minutes keeps its epoch, and disturbs nobody when it is back.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "isolated-follower",
    row: Some("B013"),
    about: "a follower is cut off for ten minutes: neither epoch nor leader changes",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let lasts = 600 * SECOND;
    let mut plan = Plan::calm(3, 0, random.percent(50), 5 * SECOND + lasts);
    plan.propose_every(random, SECOND, 10 * SECOND);
    let who = Target::Other(random.index(2));
    let at = 5 * SECOND;
    if random.percent(50) {
        let (sends, hears) = (random.percent(20), random.percent(20));
        plan.at(at, Action::Isolate { who, sends, hears, observers: true, lasts });
    } else {
        // It still reaches the other follower.
        plan.at(at, Action::Cut { from: who, to: Target::Leader, both: true, lasts });
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let leaders: Vec<&RoleChange> =
        history.leaders().filter(|change| change.at > 5 * SECOND).collect();
    ensure(leaders.is_empty(), || format!("the leader changed: {leaders:?}"))?;
    let bumps =
        history.roles.iter().find(|change| change.at > 5 * SECOND && change.role == "candidate");
    ensure(bumps.is_none(), || format!("an epoch was raised: {bumps:?}"))
}
