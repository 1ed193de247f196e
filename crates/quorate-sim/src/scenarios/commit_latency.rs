//! A Fetch that says its high watermark is answered when that moves; an older one when its wait is over.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "commit-latency",
    row: Some("B125"),
    about: "followers that say their high watermark learn of commits at once",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 20 * SECOND);
    for generation in &mut plan.generations {
        *generation = random.pick(&[Generation::V40, Generation::Newest]);
    }
    plan.propose_every(random, 5 * SECOND, 400 * MS);
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let wait = micros(plan.timeouts.fetch_max_wait);
    let leader = history.leaders().last().map_or(0, |leader| leader.node);
    late_commit(plan, history, |node| {
        let is_new = |index: usize| plan.generations[index] == Generation::Newest;
        // Two round trips of 2 ms, and a disk of 2 ms.
        if is_new(node) && is_new(leader) { 15 * MS } else { wait + 15 * MS }
    })
}
