//! A quiet cluster with a record now and then: observers hear of each commit, and are not always one behind.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "caught-up",
    row: Some("B124"),
    about: "observers of a quiet cluster learn of each commit within a second",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 2, true, 30 * SECOND);
    plan.timeouts.fetch_max_wait = ms(random.within(100, 1000));
    for generation in &mut plan.generations {
        *generation = random.pick(&[Generation::V40, Generation::Newest]);
    }
    let gap = random.within(100, 1000) * MS;
    let mut at = 5 * SECOND;
    while at < plan.quiet_at {
        plan.at(at, Action::Propose { pick: 1, records: 1, size: 4 });
        at += gap;
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let limit = micros(plan.timeouts.fetch_max_wait).max(SECOND) + 100 * MS;
    late_commit(plan, history, |_| limit)
}
