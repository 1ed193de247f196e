//! Two voters in an old epoch and one in a newer one, with a longer log, that cannot reach one of them: refused
//! pre-votes must teach the newer epoch.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "lagging-epoch",
    row: Some("B017"),
    about: "refused pre-votes teach a newer epoch, and a leader comes",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 15 * SECOND);
    let old = vec![(1, Some(2)), (4, Some(3))];
    let new = vec![(1, Some(2)), (4, Some(6)), (6, None)];
    plan.logs = vec![old.clone(), old, new];
    let (from, to) = (Target::Node(0), Target::Node(2));
    plan.at(0, Action::Cut { from, to, both: true, lasts: 15 * SECOND });
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let first = history.leaders().next();
    let in_time = first.is_some_and(|leader| leader.at < 8 * micros(plan.timeouts.election));
    ensure(in_time, || format!("the first leader: {first:?}"))?;
    let last = history.leaders().last();
    ensure(last.is_some_and(|leader| leader.epoch.0 > 6), || format!("{last:?}"))
}
