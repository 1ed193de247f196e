//! A leader whose own append fails after a follower fetched it resigns, and never uses that offset again in its
//! epoch.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "leader-write-fails",
    row: Some("B108"),
    about: "the leader cannot write what its followers have already: it resigns for good",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 20 * SECOND);
    plan.timeouts = Timeouts { election: ms(300), fetch: ms(600), ..Timeouts::defaults() };
    // Its disk is slower than the others' answers.
    plan.disk.sync = (5 * MS, 30 * MS);
    plan.propose_every(random, 500 * MS, 15 * MS);
    for n in 1..6 {
        let operation = random.pick(&[DiskOperation::Write, DiskOperation::Sync]);
        let after = u32::try_from(random.below(4)).unwrap_or(0);
        plan.at(3 * n * SECOND, Action::FailDisk { who: Target::Leader, operation, after });
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let failed = history.roles.iter().filter(|change| change.reason == "storage failed");
    at_least("resignations", failed.count(), 1)
}
