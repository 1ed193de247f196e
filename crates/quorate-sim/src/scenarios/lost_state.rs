//! A configured voter comes back with an empty disk under its old id, while the others have everything: the leader serves
//! it from the start, though its fetches go back.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "lost-state",
    row: Some("B097"),
    about: "a configured voter loses its disk, and is filled again from offset 0",
    plan,
    expect,
};

const AT: Micros = 8 * SECOND;

fn plan(random: &mut Random) -> Plan {
    let mut plan = Plan::calm(3, 0, false, 20 * SECOND);
    plan.propose_every(random, SECOND, 20 * MS);
    let (who, down) = (Target::Other(random.index(2)), random.within(50, 500) * MS);
    // What is under way just then is on one disk alone.
    plan.schedule.retain(|(at, _)| !(AT - 300 * MS..AT + 100 * MS).contains(at));
    plan.at(AT, Action::Wipe { who, even_static: true, down });
    plan
}

fn expect(_: &Plan, history: &History) -> Result<(), String> {
    let leaders = history.leaders_since(AT);
    ensure(leaders == 0, || format!("{leaders} leaders because a follower lost its disk"))?;
    let Some((_, node)) = history.hits.first().copied() else {
        return Err("nobody lost a disk".to_owned());
    };
    let Some((start, _)) = history.starts.iter().rfind(|(_, of)| *of == node) else {
        return Err("it never came back".to_owned());
    };
    let mut known = history.high_watermarks.iter();
    let level = known.find(|(at, of, offset)| *of == node && at > start && offset.0 > 300);
    ensure(level.is_some_and(|(at, ..)| *at < start + 3 * SECOND), || {
        format!("n{} started at {start}, and has caught up at {level:?}", node + 1)
    })
}
