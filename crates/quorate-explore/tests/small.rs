//! Small bounds, explored to the end.

use quorate_explore::{Bound, Figures, explore};

fn small(name: &str) -> Bound {
    Bound { timeouts: 2, epochs: 2, delays: Some(0), ..*Bound::named(name).expect("a bound") }
}

fn run(bound: Bound) -> Figures {
    match explore(bound, |_| {}) {
        Ok(figures) => figures,
        Err(violation) => panic!("{}\n{}", violation.story.join("\n"), violation.rule),
    }
}

#[test]
fn every_election_and_record_of_the_bound_is_reached() {
    let figures = run(Bound { proposals: 1, ..small("ci") });
    assert_eq!(figures.elections, 2);
    // Two leader changes and a record.
    assert_eq!(figures.committed, 3);
    assert!(figures.states > 1_000, "{figures:?}");
}

#[test]
fn two_explorations_find_the_same() {
    let bound = Bound { proposals: 0, crashes: 0, ..small("observer") };
    let (first, second) = (run(bound), run(bound));
    assert_eq!(
        (first.states, first.transitions, first.depth),
        (second.states, second.transitions, second.depth)
    );
}

#[test]
fn more_may_happen_within_a_larger_bound() {
    let none = run(Bound { proposals: 0, crashes: 0, ..small("two-voters") });
    let crash = run(Bound { proposals: 0, ..small("two-voters") });
    let delay = run(Bound { proposals: 0, crashes: 0, delays: Some(1), ..small("two-voters") });
    assert!(none.states < crash.states, "{none:?} {crash:?}");
    assert!(none.states < delay.states, "{none:?} {delay:?}");
}
