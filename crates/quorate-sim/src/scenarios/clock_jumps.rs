//! Clocks that are set by hours and years, machines that sleep, leaders that stand still: time decides nothing about
//! safety.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "clock-jumps",
    row: Some("B133"),
    about: "wall clocks jump by years, monotonic ones by minutes, leaders stand still",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 60 * SECOND);
    for rate in &mut plan.clock_rates {
        *rate = random.within(800_000, 1_200_000);
    }
    plan.disk.segment_bytes = 2000;
    plan.propose_every(random, SECOND, 100 * MS);
    let mut at = 3 * SECOND;
    while at < plan.quiet_at {
        let who = if random.percent(50) { Target::Leader } else { Target::Node(random.index(3)) };
        const HOUR: i64 = 3_600_000;
        let action = match random.below(3) {
            0 => Action::Pause { who, lasts: random.within(100, 30_000) * MS },
            1 => Action::JumpClock { who, by: random.within(1, 600) * SECOND },
            _ => {
                let by_ms = random.pick(&[-87_600 * HOUR, -HOUR, -1000, 1000, HOUR, 87_600 * HOUR]);
                Action::SetWall { who, by_ms }
            }
        };
        plan.at(at, action);
        at += random.within(500, 5000) * MS;
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    at_least("records committed", usize::try_from(history.committed.0).unwrap_or(0), 10)
}
