//! Hints of a death that is none: followers that the leader refuses, one-way links and resets, beside peers that take no
//! hints or know no pre-vote. Whoever a majority fetches from goes on leading, in its epoch. In time each follower is one of
//! the minority that the leader refuses, for whoever is answered again vouches for the leader as before.

use std::collections::BTreeSet;

use super::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "hints",
    row: None,
    about: "a leader that lives refuses fewer than a majority, in time everybody: it leads on in its epoch",
    plan,
    expect,
};

const FROM: Micros = 6 * SECOND;

/// Until a follower that was refused vouches for its leader again: it asks once in a retry backoff.
const RECOVERS: Micros = 300 * MS;

/// Until one that takes no hints was answered again: an idle leader holds its Fetch for half a second.
const IS_ANSWERED: Micros = 700 * MS;

/// Until one vouches whose messages got lost: a Fetch or a pre-vote that nobody answers is given up before.
const HEARS: Micros = 2500 * MS;

fn plan(random: &mut Random) -> Plan {
    let voters = random.pick(&[3, 5]);
    let is_dynamic = random.percent(50);
    let mut plan = Plan::calm(voters, 0, is_dynamic, 50 * SECOND);
    // An idle leader holds every Fetch for as long as it may.
    if random.percent(60) {
        let gap = random.pick(&[20, 100]) * MS;
        plan.propose_every(random, SECOND, gap);
    }
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
    let recovers = if has_old { IS_ANSWERED } else { RECOVERS };
    // These are fewer than a majority, so that the leader keeps one. Each time they have recovered others are the losers.
    let losers = (voters - 1) / 2;
    let mut first = 0;
    let who = Target::Leader;
    let mut at = FROM;
    let end = plan.quiet_at - 5 * SECOND;
    while at < end {
        let until = end.min(at + random.pick(&[400, 1000, 3000]) * MS);
        // Each gets a hint when its turn begins.
        let (from, lasts) = (Target::Other(first % (voters - 1)), 100 * MS);
        plan.at(at, Action::RefuseOne { who, from, lasts });
        let mut recovered = at + lasts + recovers;
        at = recovered;
        while at < until {
            let from = Target::Other((first + random.index(losers)) % (voters - 1));
            let lasts = random.pick(&[2, 20, 100, 300, longest]) * MS;
            let kind = random.below(kinds);
            match kind {
                0 | 1 => plan.at(at, Action::RefuseOne { who, from, lasts }),
                2 => plan.at(at, Action::Reset { who: from }),
                3 => plan.at(at, Action::Cut { from, to: who, both: false, lasts }),
                _ => {
                    plan.at(at, Action::RefuseOne { who, from, lasts });
                    plan.at(at, Action::Cut { from: who, to: from, both: false, lasts });
                }
            }
            recovered = recovered.max(at + lasts + if kind < 3 { recovers } else { HEARS });
            at += random.pick(&[5, 50, 500]) * MS + if has_old { lasts + recovers } else { 0 };
        }
        at = at.max(recovered);
        first += 1;
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
    let hinted = hinted.filter(|change| change.reason == "the leader refuses connections");
    let nodes: Vec<usize> = hinted.map(|change| change.node).collect();
    let takes_hints = plan.hints.iter().all(|takes| *takes);
    let different = nodes.iter().collect::<BTreeSet<_>>().len();
    at_least("voters that took a hint", different, if takes_hints { plan.voters - 1 } else { 0 })
}
