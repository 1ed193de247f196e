//! The simulator itself: it gives the same run twice, its scenarios hold, an embedder's state machine fits in, and
//! a failure becomes a short story.

use bytes::Bytes;
use quorate_core::NodeId;
use quorate_driver::{CommittedBatch, Leadership, StateMachine};
use quorate_sim::plan::{Action, Target};
use quorate_sim::random::Digest;
use quorate_sim::run::{run, run_traced};
use quorate_sim::runner::{Options, run_seeds};
use quorate_sim::scenarios::{self, Scenario};
use quorate_sim::story;
use quorate_sim::workload::{Ledger, Workload};

#[test]
fn a_seed_is_one_run() {
    let scenario = &scenarios::ALL[0];
    let mut digests = Vec::new();
    for seed in 2..5 {
        let plan = scenario.draw(seed);
        let (first, lines) = run_traced(&plan, seed, &Ledger);
        let second = run(&plan, seed, &Ledger);
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert!(lines.len() > 100);
        digests.push(first.digest);
    }
    digests.dedup();
    assert_eq!(digests.len(), 3, "seeds differ");
}

#[test]
fn every_scenario_holds() {
    for scenario in scenarios::ALL {
        let (statistics, failed) =
            run_seeds(scenario, 0..1, Options::with_jobs(1), &Ledger).unwrap();
        assert_eq!(failed, None, "{}", scenario.name);
        assert_eq!(statistics.runs, 1);
    }
}

/// A state machine of an embedder: it counts, and forgets a record now and then, on one node alone.
#[derive(Clone)]
struct Counting {
    is_faulty: bool,
}

struct Counter {
    sum: u64,
    forgets: bool,
}

impl StateMachine for Counter {
    fn apply(&mut self, batch: &CommittedBatch) {
        for (offset, value) in batch.records() {
            if !(self.forgets && offset.0 % 7 == 0) {
                self.sum += u64::try_from(value.len()).unwrap();
            }
        }
    }

    fn leader_changed(&mut self, _: &Leadership) {}
}

impl Workload for Counting {
    type Machine = Counter;

    fn machine(&self, node: NodeId) -> Counter {
        Counter { sum: 0, forgets: self.is_faulty && node == NodeId(2) }
    }

    fn command(&self, n: u64, size: usize) -> Bytes {
        Bytes::from(format!("{n}{}", "+".repeat(size)))
    }

    fn digest(&self, machine: &Counter) -> u64 {
        let mut digest = Digest::default();
        digest.add(machine.sum);
        digest.value()
    }
}

#[test]
fn an_embedders_state_machine_is_compared_over_nodes() {
    let scenario = scenarios::find("commit-latency").unwrap();
    let plan = scenario.draw(1);
    assert_eq!(run(&plan, 1, &Counting { is_faulty: false }).failure, None);
    let failure = run(&plan, 1, &Counting { is_faulty: true }).failure.unwrap();
    assert_eq!(failure.checker, "state-machine");
}

#[test]
fn a_failure_becomes_a_short_story() {
    // Whoever expects that no leader ever falls is told how one does.
    const STABLE: Scenario = Scenario {
        name: "stable",
        row: None,
        about: "for this test",
        plan: |random| {
            let mut plan = (scenarios::find("commit-latency").unwrap().plan)(random);
            for at in 1..10 {
                plan.at(at * 1_000_000, Action::Reset { who: Target::Node(1) });
            }
            let (who, down) = (Target::Leader, 1_000_000);
            plan.at(8_500_000, Action::Crash { who, power: true, mid_write: None, down });
            plan
        },
        expect: |_, history| match history.leaders().count() {
            1 => Ok(()),
            n => Err(format!("{n} leaders")),
        },
    };
    let (_, failed) = run_seeds(&STABLE, 3..4, Options::with_jobs(1), &Ledger).unwrap();
    let (seed, failure) = failed.unwrap();
    assert_eq!((seed, failure.checker), (3, "scenario"));
    let folder = std::env::temp_dir().join(format!("quorate-sim-story-{}", std::process::id()));
    story::write(&STABLE, seed, &failure, &folder, &Ledger).unwrap();
    let text = std::fs::read_to_string(folder.join("story.txt")).unwrap();
    let diagram = std::fs::read_to_string(folder.join("story.mmd")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(text.matches("Crash {").count(), 1, "the crash is what it takes");
    assert_eq!(text.matches("Reset {").count(), 0, "resets do not matter");
    assert!(text.contains("loses its power"));
    assert!(diagram.starts_with("sequenceDiagram\n    participant n1\n"));
    assert!(diagram.contains("->>n"));
}
