//! A leader whose disk is full, fails, or hangs must not stay leader.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "dead-disk",
    row: Some("B110"),
    about: "the disk of the leader is full, broken or stuck: another leads soon",
    plan,
    expect,
};

const AT: Micros = 6 * SECOND;

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 30 * SECOND);
    plan.propose_every(random, SECOND, 20 * MS);
    let who = Target::Leader;
    let action = match random.below(4) {
        0 => Action::FillDisk { who, lasts: 10 * SECOND },
        1 => Action::FailDisk { who, operation: DiskOperation::Write, after: 0 },
        2 => Action::FailDisk { who, operation: DiskOperation::Sync, after: 0 },
        _ => Action::StickDisk { who, lasts: 20 * SECOND },
    };
    plan.at(AT, action);
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let Some((_, leader)) = history.hits.first().copied() else {
        return Err("nobody led".to_owned());
    };
    let step_down = history
        .roles
        .iter()
        .find(|change| change.node == leader && change.role == "resigned" && change.at > AT);
    let Some(step_down) = step_down else { return Err("it did not resign".to_owned()) };
    let limit = match step_down.reason {
        "storage failed" => micros(plan.timeouts.election),
        // The watchdog is as patient as check-quorum.
        _ => micros(plan.timeouts.fetch) * 3 / 2,
    };
    let took = step_down.at - AT;
    // The first write after the disk has died may come a little later.
    ensure(took <= limit + 400 * MS, || format!("it resigned after {took} us: {step_down:?}"))?;
    let next = history.leaders().find(|change| change.at > step_down.at);
    ensure(next.is_some_and(|next| next.at < step_down.at + 5 * SECOND), || {
        format!("the next leader: {next:?}")
    })
}
