//! Hints of a death that is none: followers that the leader refuses, one-way links and resets, beside peers that take no
//! hints or know no pre-vote. Whoever a majority fetches from goes on leading, in its epoch.

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "hints",
    row: None,
    about: "a leader that lives refuses fewer than a majority, again and again: it leads on in its epoch",
    plan,
    expect,
};

const FROM: Micros = 6 * SECOND;

fn plan(random: &mut Random) -> Plan {
    let voters = random.pick(&[3, 5]);
    let is_dynamic = random.percent(50);
    let mut plan = Plan::calm(voters, 0, is_dynamic, 40 * SECOND);
    let gap = random.pick(&[20, 100]) * MS;
    plan.propose_every(random, SECOND, gap);
    if random.percent(50) {
        // Peers of older releases, and Java's, which wait for the fetch timeout.
        let old: &[Generation] = if is_dynamic {
            &[Generation::V39, Generation::V40, Generation::Newest]
        } else {
            &[Generation::V37, Generation::V39, Generation::V40, Generation::Newest]
        };
        for node in 0..voters {
            plan.generations[node] = random.pick(old);
            plan.hints[node] = random.percent(60);
        }
    }
    // Without pre-votes a fetch timeout raises the epoch, hint or no hint: then nothing is lost on its way for so long.
    let has_old = plan.generations.iter().any(|generation| *generation < Generation::V40);
    let (kinds, longest) = if has_old { (3, 700) } else { (5, 4000) };
    // These are fewer than a majority, so that the leader keeps one.
    let losers = (voters - 1) / 2;
    let who = Target::Leader;
    let mut at = FROM;
    while at < plan.quiet_at - 5 * SECOND {
        let from = Target::Other(random.index(losers));
        let lasts = random.pick(&[2, 20, 100, 300, longest]) * MS;
        match random.below(kinds) {
            0 | 1 => plan.at(at, Action::RefuseOne { who, from, lasts }),
            2 => plan.at(at, Action::Reset { who: from }),
            3 => plan.at(at, Action::Cut { from, to: who, both: false, lasts }),
            _ => {
                plan.at(at, Action::RefuseOne { who, from, lasts });
                plan.at(at, Action::Cut { from: who, to: from, both: false, lasts });
            }
        }
        at += random.pick(&[5, 50, 500]) * MS + if has_old { lasts + 700 * MS } else { 0 };
    }
    plan
}

fn expect(plan: &Plan, history: &History) -> Result<(), String> {
    let later = |change: &&RoleChange| (FROM..plan.quiet_at).contains(&change.at);
    let raised = history.roles.iter().filter(later).find(|change| change.role == "candidate");
    ensure(raised.is_none(), || format!("a leader that lives was disturbed: {raised:?}"))?;
    let fell = history.roles.iter().filter(later).find(|change| change.role == "resigned");
    ensure(fell.is_none(), || format!("a leader that lives gave up: {fell:?}"))?;
    let hinted = history.roles.iter().filter(later);
    let hinted = hinted.filter(|change| change.reason == "the leader refuses connections").count();
    let takes_hints = plan.hints.iter().all(|takes| *takes);
    at_least("hinted rounds", hinted, if takes_hints { 3 } else { 0 })
}
