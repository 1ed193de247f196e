//! A new cluster whose logs differ, with one slow link: it must come to a leader without racing through epochs.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "unequal-logs",
    row: Some("B028"),
    about: "logs of different length and a slow link: a leader soon, and few epochs",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 1, true, 25 * SECOND);
    plan.logs = [120, 120, 147].map(|records| vec![(43, Some(records))]).to_vec();
    let (a, b) = random.pick(&[(0, 1), (0, 2), (1, 2)]);
    for (from, to) in [(a, b), (b, a)] {
        let by = random.within(400, 900) * MS;
        let (from, to) = (Target::Node(from), Target::Node(to));
        plan.at(0, Action::Slow { from, to, by, lasts: 25 * SECOND });
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let first = history.leaders().next();
    let in_time = first.is_some_and(|leader| leader.at < 15 * micros(plan.timeouts.election));
    ensure(in_time, || format!("the first leader: {first:?}"))?;
    let epochs = history.newest_epoch().0 - 43;
    ensure(epochs <= 15, || format!("{epochs} epochs"))
}
