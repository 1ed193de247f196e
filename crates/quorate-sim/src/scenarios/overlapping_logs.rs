//! A log that parts from the leader's is cut where they part and not before, also when the power fails between the cut and
//! what comes next; a log that parts nowhere is not cut at all.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "overlapping-logs",
    row: Some("B106"),
    about: "one log parts from the others, and its power fails while it is cut",
    plan,
    expect,
};

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, random.percent(50), 15 * SECOND);
    plan.disk.segment_bytes = random.pick(&[200, 8 << 10]);
    // Small pieces, so that what is cut is refilled in many.
    plan.disk.fetch_max_bytes = 200;
    let common = random.within(1, 6);
    let n = |n: u64| usize::try_from(n).unwrap_or(0);
    let leading = vec![(1, Some(n(common))), (3, Some(8))];
    let parting = vec![(1, Some(n(common))), (2, Some(n(random.within(1, 12))))];
    plan.logs = vec![leading.clone(), leading, parting];
    plan.propose_every(random, 4 * SECOND, 50 * MS);
    // From the first election on each of its writes is cut short, the truncation among them.
    let mut at = SECOND;
    while at < 3 * SECOND {
        let mid_write = Some(u32::try_from(random.below(12)).unwrap_or(0));
        let (who, down) = (Target::Node(2), random.within(1, 20) * MS);
        plan.at(at, Action::Crash { who, power: true, mid_write, down });
        at += random.within(1, 5) * MS;
    }
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let of_others = history.truncations.iter().find(|(_, of, _)| *of != 2);
    ensure(of_others.is_none(), || format!("a log that parts nowhere is cut: {of_others:?}"))?;
    at_least("truncations", history.truncations.len(), 1)?;
    at_least("records committed", usize::try_from(history.committed.0).unwrap_or(0), 20)
}
