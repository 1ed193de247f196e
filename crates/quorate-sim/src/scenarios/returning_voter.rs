//! Voters that start again know who led, and not where: the leader announces itself, and they fetch soon.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "returning-voter",
    row: Some("B041"),
    about: "followers start again and again, and each time fetch from the leader within half a fetch timeout",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 30 * SECOND);
    plan.propose_every(random, SECOND, 30 * MS);
    let mut at = 5 * SECOND;
    while at < plan.quiet_at - 3 * SECOND {
        let (who, power) = (Target::Other(random.index(2)), random.percent(50));
        let down = random.within(10, 1000) * MS;
        plan.at(at, Action::Crash { who, power, mid_write: None, down });
        at += random.within(1500, 3000) * MS;
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let leaders = history.leaders_since(5 * SECOND);
    ensure(leaders == 0, || format!("{leaders} leaders while only followers start"))?;
    let Some(leader) = history.leaders().last() else { return Err("nobody led".to_owned()) };
    let limit = micros(plan.timeouts.fetch) / 2 + 100 * MS;
    let starts: Vec<_> = history.starts.iter().filter(|(at, _)| *at > 5 * SECOND).collect();
    at_least("starts", starts.len(), 3)?;
    for (at, node) in starts {
        let mut fetches = history.fetches.iter();
        let first = fetches.find(|(sent, of, to)| of == node && sent >= at && *to == leader.node);
        ensure(first.is_some_and(|(sent, ..)| *sent <= at + limit), || {
            format!("n{} started at {at} and first fetched at {first:?}", node + 1)
        })?;
    }
    Ok(())
}
