//! A leader that is shut down in good order hands over to its best successor: one round, one epoch.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "hand-over",
    row: Some("B012"),
    about: "a leader is shut down: its successor wins the first round at once",
    plan,
    expect,
};

const SHUTDOWN_AT: Micros = 6 * SECOND;

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(5, 0, random.percent(50), 12 * SECOND);
    plan.network.latency = (MS, MS);
    plan.propose_every(random, SECOND, 100 * MS);
    plan.at(SHUTDOWN_AT, Action::Shutdown { who: Target::Leader, down: 5 * SECOND });
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let resigned = history.roles.iter().find(|change| change.reason == "shutting down");
    let Some(resigned) = resigned else { return Err("nobody handed over".to_owned()) };
    let after: Vec<&RoleChange> =
        history.leaders().filter(|change| change.at >= resigned.at).collect();
    let [next] = after.as_slice() else {
        return Err(format!("{} leaders after the hand-over", after.len()));
    };
    ensure(next.epoch.0 == resigned.epoch.0 + 1, || format!("epoch {}", next.epoch))?;
    // EndQuorumEpoch, pre-votes, votes: three round trips of 2 ms, and two election states on two disks.
    let gap = next.at - resigned.at;
    ensure(gap <= 30 * MS, || format!("nobody led for {gap} us"))
}
