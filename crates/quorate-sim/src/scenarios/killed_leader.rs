//! A leader that is killed shows on the sockets of the others: one of them leads within milliseconds. With peers that take no
//! hints it takes what it takes them.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "killed-leader",
    row: None,
    about: "the leader is killed ten times: its death shows, and another leads in milliseconds",
    plan,
    expect,
};

const KILLS: u64 = 10;

fn plan(random: &mut Random) -> Plan {
    let voters = random.pick(&[3, 3, 5]);
    let mut plan = Plan::calm(voters, 0, random.percent(50), (6 + 5 * KILLS) * SECOND);
    plan.network.silent = 0;
    // Without work the Fetches are parked when the leader dies.
    if random.percent(70) {
        let gap = random.pick(&[30, 200]) * MS;
        plan.propose_every(random, SECOND, gap);
    }
    if random.percent(40) {
        for node in 0..voters {
            plan.hints[node] = random.percent(50);
        }
    }
    for n in 0..KILLS {
        let at = (5 + 5 * n) * SECOND + random.below(SECOND);
        let down = random.within(100, 3000) * MS;
        let who = Target::Leader;
        plan.at(at, Action::Crash { who, power: false, mid_write: None, down });
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    // A fetch timeout, and a round of pre-votes that a vouching follower refuses first.
    let without = micros(plan.timeouts.fetch + 2 * plan.timeouts.election) + 200 * MS;
    let all_take_hints = plan.hints.iter().all(|takes| *takes);
    let mut gaps = Vec::new();
    for (at, killed) in &history.hits {
        let next = history.leaders().find(|change| change.at > *at);
        let Some(next) = next else { return Err(format!("nobody leads after {at}")) };
        let gap = next.at - at;
        ensure(gap <= without, || {
            format!("n{} is killed at {at}, nobody leads for {gap} us", killed + 1)
        })?;
        gaps.push(gap);
    }
    at_least("leaders killed", gaps.len(), usize::try_from(KILLS).unwrap_or(0))?;
    gaps.sort_unstable();
    let median = gaps[gaps.len() / 2];
    ensure(!all_take_hints || median <= 15 * MS, || format!("the median gap is {median} us"))?;
    let worst = gaps[gaps.len() - 1];
    ensure(!all_take_hints || worst <= 100 * MS, || format!("the longest gap is {worst} us"))
}
