//! A voter behind a firewall that lets connections out and none in: the others elect one of themselves, and it follows.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "inbound-only",
    row: Some("B029"),
    about: "nobody can connect to one of three configured voters: it disturbs nobody for long",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, false, 40 * SECOND);
    plan.propose_every(random, SECOND, 100 * MS);
    plan.at(0, Action::Refuse { who: Target::Node(2), lasts: 40 * SECOND });
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    // It may win the first round, and gives up when nobody fetches.
    let settled = 15 * SECOND;
    let late = history.leaders_since(settled);
    ensure(late == 0, || format!("the leader changed {late} times after {settled}"))?;
    let last = history.leaders().last();
    ensure(last.is_some_and(|leader| leader.node != 2), || format!("the last leader: {last:?}"))?;
    let known = |node: usize| {
        let of = history
            .high_watermarks
            .iter()
            .filter(|(at, of, _)| *of == node && (settled..plan.quiet_at).contains(at));
        of.count()
    };
    (0..3).try_for_each(|node| at_least("advances of a high watermark", known(node), 50))
}
