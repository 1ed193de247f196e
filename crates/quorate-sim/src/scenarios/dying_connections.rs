//! Connections die in every phase of a request: nobody gets stuck waiting for what never comes, or stops asking.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "dying-connections",
    row: Some("B129"),
    about: "connections are reset all the time, requests and answers lost, late and doubled",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 1, true, 25 * SECOND);
    plan.timeouts = Timeouts { election: ms(500), fetch: ms(1000), ..Timeouts::defaults() };
    plan.network = Network {
        latency: (100, 3 * MS),
        lost: 20,
        doubled: 100,
        late: 50,
        late_by: 300 * MS,
        reset: 150,
        ..Network::good()
    };
    plan.propose_every(random, SECOND, 30 * MS);
    let mut at = SECOND;
    while at < plan.quiet_at {
        plan.at(at, Action::Reset { who: Target::Node(random.index(4)) });
        at += random.within(5, 100) * MS;
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    for node in 0..4 {
        let mut last = 3 * SECOND;
        let of = history.fetches.iter().filter(|(_, of, _)| *of == node);
        let led = history.roles.iter().any(|change| change.node == node && change.role == "leader");
        for (at, ..) in of.filter(|(at, ..)| (3 * SECOND..plan.quiet_at).contains(at)) {
            ensure(led || *at <= last.max(3 * SECOND) + 4 * SECOND, || {
                format!("n{} asks nobody from {last} to {at}", node + 1)
            })?;
            last = *at;
        }
    }
    let told = history.acknowledged.iter().filter(|(_, told, _)| *told < plan.quiet_at).count();
    at_least("proposals acknowledged", told, 100)
}
