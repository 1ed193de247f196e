//! A sync that fails once and would succeed when tried again: the store is closed all the same, and whoever starts on
//! that disk takes nothing for written that a power cut takes away.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "failed-sync",
    row: Some("B109"),
    about: "a sync fails once: the node is out until it is started again",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 20 * SECOND);
    plan.timeouts = Timeouts { election: ms(300), fetch: ms(600), ..Timeouts::defaults() };
    plan.propose_every(random, 500 * MS, 20 * MS);
    let mut at = 2 * SECOND;
    while at < plan.quiet_at {
        let operation = random.pick(&[
            DiskOperation::Sync,
            DiskOperation::Sync,
            DiskOperation::SyncDir,
            DiskOperation::Rename,
        ]);
        let who = Target::Node(random.index(3));
        plan.at(at, Action::FailDisk { who, operation, after: 0 });
        // Its process has ended after a second, and starts again one later.
        let down = random.within(10, 300) * MS;
        let cut = Action::Crash { who, power: true, mid_write: None, down };
        plan.at(at + random.within(2000, 3000) * MS, cut);
        at += random.within(1500, 4000) * MS;
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    at_least("starts", history.starts.len(), plan.voters + 1)
}
