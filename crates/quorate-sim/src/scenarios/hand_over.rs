//! A leader that is shut down in good order hands over to its best successor: one round, one epoch. Where links differ and
//! clients go on, the first round may come too soon, and is tried again.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "hand-over",
    row: Some("B012"),
    about: "a leader is shut down, idle or under load, over equal links or not: its successor leads at once, or soon",
    plan,
    expect,
};

const SHUTDOWN_AT: Micros = 6 * SECOND;

fn plan(random: &mut Random) -> Plan {
    let voters = random.pick(&[3, 5, 5]);
    let mut plan = Plan::calm(voters, 0, random.percent(50), 8 * SECOND);
    if random.percent(30) {
        plan.network.latency = (MS, MS);
        plan.propose_every(random, SECOND, 100 * MS);
    } else {
        plan.network.latency = (10, 50);
        for (from, to) in (0..voters).flat_map(|from| (0..voters).map(move |to| (from, to))) {
            if from < to {
                let most = random.pick(&[200, 2 * MS, 20 * MS]);
                let by = random.within(50, most);
                let lasts = plan.quiet_at;
                let (from, to) = (Target::Node(from), Target::Node(to));
                plan.at(0, Action::Slow { from, to, by, lasts });
                plan.at(0, Action::Slow { from: to, to: from, by, lasts });
            }
        }
        let gap = random.within(1, 5) * MS;
        plan.propose_every(random, SHUTDOWN_AT - 300 * MS, gap);
    }
    plan.at(SHUTDOWN_AT, Action::Shutdown { who: Target::Leader, down: SECOND });
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let resigned = history.roles.iter().find(|change| change.reason == "shutting down");
    let Some(resigned) = resigned else { return Err("nobody handed over".to_owned()) };
    let after: Vec<&RoleChange> =
        history.leaders().filter(|change| change.at >= resigned.at).collect();
    let [next] = after.as_slice() else {
        return Err(format!("{} leaders after the hand-over", after.len()));
    };
    let is_even = plan.network.latency == (MS, MS);
    ensure(next.epoch.0 == resigned.epoch.0 + 1 || !is_even, || format!("epoch {}", next.epoch))?;
    // Over equal links EndQuorumEpoch, pre-votes, votes: three round trips of 2 ms, and two election states on two disks.
    let limit = if is_even { 30 * MS } else { 800 * MS };
    let gap = next.at - resigned.at;

    ensure(gap <= limit, || format!("nobody led for {gap} us"))
}
