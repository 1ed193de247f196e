//! A voter of the log comes back with an empty disk: under its new directory id it is nobody, neither votes nor leads, and
//! what is committed stays, whoever of the others falls.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "new-disk",
    row: Some("B117"),
    about: "a voter of five loses its disk, then leaders fall: it never stands for election",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(5, 0, true, 25 * SECOND);
    plan.timeouts = Timeouts { election: ms(300), fetch: ms(600), ..Timeouts::defaults() };
    plan.propose_every(random, SECOND, 30 * MS);
    let who = if random.percent(50) { Target::Leader } else { Target::Other(random.index(4)) };
    plan.at(
        4 * SECOND,
        Action::Wipe { who, even_static: false, down: random.within(10, 500) * MS },
    );
    for n in 0..5 {
        let (who, power, down) = (Target::Leader, random.percent(50), random.within(1, 3) * SECOND);
        plan.at((7 + 3 * n) * SECOND, Action::Crash { who, power, mid_write: None, down });
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let Some((wiped, node)) = history.hits.first().copied() else {
        return Err("nobody lost a disk".to_owned());
    };
    let stands = history.roles.iter().find(|change| {
        change.node == node
            && change.at > wiped
            && !matches!(change.role, "unattached" | "follower")
    });
    ensure(stands.is_none(), || format!("a replica that is no voter: {stands:?}"))?;
    at_least("leaders", history.leaders().count(), 4)
}
