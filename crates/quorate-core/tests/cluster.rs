//! Whole clusters under random faults, by seed: what Raft promises is checked after every step, and in the
//! quiet time after it a leader must be there and commit.

#[path = "cluster/disk.rs"]
mod disk;
#[path = "cluster/world.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use quorate_core::Offset;
use world::{Shape, World};

/// Runs seeds of one shape; `SEED=n` runs that one alone. A seed that fails runs again to tell its story.
fn run(shape: Shape, seeds: u64) {
    let only: Option<u64> = std::env::var("SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seeds = only.map_or(0..seeds, |seed| seed..seed + 1);
    let mut committed = 0;
    for seed in seeds {
        let mut world = World::new(seed, shape);
        if catch_unwind(AssertUnwindSafe(|| story(&mut world))).is_err() {
            let mut world = World::new(seed, shape);
            world.keep_story();
            let again = catch_unwind(AssertUnwindSafe(|| story(&mut world)));
            eprintln!("{}\nSEED={seed} of {shape:?} fails", world.story());
            resume_unwind(again.expect_err("the same seed fails again"));
        }
        committed += world.committed().0;
    }
    assert!(committed > 0);
}

fn story(world: &mut World) {
    for _ in 0..60 {
        let pause = world.chance.below(500_000);
        world.run(Duration::from_micros(pause));
        world.propose();
        if world.chance.percent(40) {
            world.disturb();
        }
    }
    assert!(world.steps() < 60_000, "{} steps in half a minute: a tight loop", world.steps());

    world.heal();
    let before = world.committed();
    world.run(Duration::from_secs(15));
    if let Err(views) = world.agreed_leader() {
        panic!("nobody leads after 15 quiet seconds: {views}");
    }
    world.propose();
    world.run(Duration::from_secs(1));
    assert!(world.committed() > before.max(Offset(1)), "nothing is committed in quiet times");
    assert!(world.is_level(), "not everybody has caught up");

    let steps = world.steps();
    world.run(Duration::from_secs(5));
    let idle = world.steps() - steps;
    assert!(idle < 5 * 4 * 40, "{idle} steps in 5 idle seconds");
}

/// What an election costs in writes, each of them a sync that the quorum waits for. Who wins writes two election states, its own
/// vote and that it leads, and one batch; the others their vote, the leader and that batch. One more election state is written
/// by who hears of the epoch before it is asked for its vote. The old leader may have lost in its end what it wrote, and write it
/// again.
#[test]
fn an_election_writes_two_states_and_a_batch() {
    let (mut followers, mut ordinary) = (0, 0);
    for seed in 0..50 {
        for is_handed_over in [false, true] {
            let mut world = World::new(seed, Shape { nodes: 3, dynamic: seed % 2 == 0 });
            world.heal();
            world.run(Duration::from_secs(10));
            world.propose();
            world.run(Duration::from_secs(1));
            let (old, before) = (world.leader().expect("a leader"), world.writes());
            if is_handed_over {
                world.shut_down(old);
            } else {
                world.crash(old);
            }
            world.run(Duration::from_secs(1));
            let new = world.leader().expect("a leader again");
            assert!(new != old && world.is_level(), "seed {seed}");
            for (node, (after, before)) in world.writes().iter().zip(before).enumerate() {
                let states = &after.0[before.0.len()..];
                let what = format!(
                    "seed {seed}, handed over: {is_handed_over}, node {node} after {old} and {new} led: {states:?}"
                );
                assert_eq!(after.1 - before.1, 1, "{what}");
                let told: Vec<_> = states
                    .iter()
                    .map(|state| (state.voted.is_some(), state.leader.is_some()))
                    .collect();
                let (heard, vote) = ((false, false), (true, false));
                let (leads, follows) = ((false, true), (true, true));
                if node == new {
                    assert_eq!(told, [vote, leads], "{what}");
                } else if node == old {
                    assert!((1..=3).contains(&told.len()), "{what}");
                } else {
                    let is_ordinary = told == [vote, follows];
                    assert!(is_ordinary || told == [heard, vote, follows], "{what}");
                    followers += 1;
                    ordinary += usize::from(is_ordinary);
                }
            }
        }
    }
    assert!(ordinary * 4 > followers * 3, "{ordinary} of {followers} write two states");
}

#[test]
fn three_static_voters() {
    run(Shape { nodes: 3, dynamic: false }, 250);
}

#[test]
fn three_voters_in_the_log() {
    run(Shape { nodes: 3, dynamic: true }, 250);
}

#[test]
fn five_voters() {
    run(Shape { nodes: 5, dynamic: true }, 100);
}

#[test]
fn two_voters() {
    run(Shape { nodes: 2, dynamic: false }, 100);
}

#[test]
fn one_voter() {
    run(Shape { nodes: 1, dynamic: true }, 100);
}
