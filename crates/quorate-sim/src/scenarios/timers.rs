//! Voters that hear nobody, for long: each draws every timeout anew, so that their campaigns stay apart.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "timers",
    row: Some("B032"),
    about: "seven voters without a network campaign for a minute, each in its own time",
    plan,
    expect,
};

const LASTS: Micros = 60 * SECOND;

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(7, 0, random.percent(50), LASTS);
    plan.wake = (10, 30);
    for (from, to) in (0..7).flat_map(|from| (0..7).map(move |to| (from, to))) {
        if from < to {
            let (from, to) = (Target::Node(from), Target::Node(to));
            plan.at(0, Action::Cut { from, to, both: true, lasts: LASTS });
        }
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let is_campaign = |change: &&RoleChange| change.role == "prospective" && change.at < LASTS;
    let mut begun: Vec<(Micros, usize)> =
        history.roles.iter().filter(is_campaign).map(|change| (change.at, change.node)).collect();
    begun.sort_unstable();
    let election = micros(plan.timeouts.election);
    for node in 0..7 {
        let of: Vec<Micros> =
            begun.iter().filter(|(_, by)| *by == node).map(|(at, _)| *at).collect();
        at_least("campaigns of a node", of.len(), 10)?;
        let gaps = u64::try_from(of.len() - 1).unwrap_or(1);
        let mean = (of[of.len() - 1] - of[0]) / gaps;
        // A round lasts as long as the wait for it: from one to two election timeouts each.
        ensure((election..=4 * election).contains(&mean), || {
            format!("n{} campaigns every {mean} us", node + 1)
        })?;
    }
    // Seven nodes in a span of a second: by chance one pair of a hundred is as close as a millisecond.
    let close = begun.windows(2).filter(|pair| pair[1].0 - pair[0].0 < MS).count();
    ensure(close * 12 < begun.len(), || format!("{close} of {} at a time", begun.len()))?;
    let phases: std::collections::BTreeSet<u64> =
        begun.iter().map(|(at, _)| at / MS % (election / MS)).collect();
    at_least("milliseconds of the timeout", phases.len(), begun.len() / 2)
}
