//! Observers that lose the leader for a while and ask around go back to it, and do not stay with whom they asked.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "observers-return",
    row: Some("B042"),
    about: "observers are cut off from the leader for some fetch timeouts, and fetch from it again",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 2, true, 70 * SECOND);
    plan.propose_every(random, SECOND, 200 * MS);
    for observer in 3..5 {
        let (from, to) = (Target::Node(observer), Target::Leader);
        let lasts = random.within(30_000, 35_000) * MS;
        plan.at(6 * SECOND, Action::Cut { from, to, both: true, lasts });
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let Some(leader) = history.leaders().last() else { return Err("nobody led".to_owned()) };
    for observer in 3..5 {
        let asked_around = history.fetches.iter().any(|(at, of, to)| {
            *of == observer && *to != leader.node && (6 * SECOND..45 * SECOND).contains(at)
        });
        ensure(asked_around, || format!("n{} never lost its leader", observer + 1))?;
        let late = history
            .fetches
            .iter()
            .filter(|(at, of, _)| *of == observer && (48 * SECOND..plan.quiet_at).contains(at));
        let (all, right) = late.fold((0, 0), |(all, right), (.., to)| {
            (all + 1, right + usize::from(*to == leader.node))
        });
        ensure(all > 20 && right * 100 >= all * 95, || {
            format!("n{} sends {right} of {all} fetches to the leader", observer + 1)
        })?;
    }
    Ok(())
}
