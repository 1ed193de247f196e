//! What a run recorded of a replica is a script of the core: its runner gives the same outputs, step by step.

#[allow(dead_code)] // The runner reads files, too.
#[path = "../../quorate-core/tests/script/mod.rs"]
mod script;

use std::collections::BTreeMap;

use bytes::Bytes;
use quorate_core::NodeId;
use quorate_core::io::{Message, RequestId};
use quorate_core::message::Request;
use quorate_driver::{CommittedBatch, Leadership, StateMachine};
use quorate_sim::plan::Plan;
use quorate_sim::run::{run, run_recorded};
use quorate_sim::scenarios::Scenario;
use quorate_sim::script::{Recording, Step};
use quorate_sim::workload::{Ledger, Workload};
use quorate_sim::{scenarios, story};

use script::harness::Harness;
use script::{language, print};

/// What the runner prints for this step.
fn printed(step: &Step, askers: &mut BTreeMap<RequestId, String>) -> Vec<String> {
    askers.extend(step.asker.clone());
    let mut lines = Vec::new();
    lines.extend(
        step.writes.iter().map(|(id, write)| format!("write  #{} {}", id.0, print::write(write))),
    );
    lines.extend(step.events.iter().map(|event| format!("event  {}", print::event(event))));
    for message in &step.messages {
        lines.push(match message {
            Message::Request { to, request, .. } => {
                let searches = matches!(request, Request::Fetch(_)) && step.leader != Some(to.id);
                let name = if searches { "somebody".to_owned() } else { to.id.to_string() };
                format!("-> {name:<3} {}", print::request(request))
            }
            Message::Response { id, response } => {
                format!("-> {:<3} {}", askers[id], print::response(response))
            }
        });
    }
    lines.iter().flat_map(|line| line.lines()).map(str::to_owned).collect()
}

/// Runs all commands; how many steps there were.
fn replay(recording: &Recording) -> usize {
    let mut harness = Harness::default();
    let mut askers = BTreeMap::new();
    for (n, step) in recording.steps.iter().enumerate() {
        let mut found = Vec::new();
        for command in &step.commands {
            let text = harness.run(command).unwrap_or_else(|error| panic!("{command}: {error}"));
            // What waits for an answer shows in nothing.
            let shown = text.lines().filter(|line| !matches!(*line, "(parked)" | "(held)"));
            found.extend(shown.map(str::to_owned));
        }
        assert_eq!(found, printed(step, &mut askers), "step {n}: {:?}", step.commands);
    }
    recording.steps.len()
}

#[test]
fn what_a_replica_was_told_is_a_script_of_the_core() {
    let (mut steps, mut told) = (0, String::new());
    for (scenario, seed) in [("default", 2), ("default", 5), ("sizes", 1), ("old-voters", 1)] {
        let plan = scenarios::find(scenario).unwrap().draw(seed);
        let (_, recordings) = run_recorded(&plan, seed, &Ledger);
        assert!(!recordings.is_empty());
        for recording in recordings.values() {
            steps += replay(recording);
            told.push_str(&recording.text("A run"));
        }
    }
    assert!(steps > 2000, "{steps} steps");
    // All that happens to replicas is among it.
    for command in [
        "\ntick",
        "\ndurable #",
        "\npropose ",
        "vote-request pre",
        "begin-request",
        "fetch-request",
        "vote granted",
        "vote refused",
        "batches=",
        "unreachable timed-out",
        "\n<- reply #",
    ] {
        assert!(told.contains(command), "{command:?} is not in it");
    }
}

/// State machines that never agree.
#[derive(Clone)]
struct Odd;

struct OddMachine(NodeId);

impl StateMachine for OddMachine {
    fn apply(&mut self, _: &CommittedBatch) {}

    fn leader_changed(&mut self, _: &Leadership) {}
}

impl Workload for Odd {
    type Machine = OddMachine;

    fn machine(&self, node: NodeId) -> OddMachine {
        OddMachine(node)
    }

    fn command(&self, n: u64, _: usize) -> Bytes {
        Bytes::from(n.to_string())
    }

    fn digest(&self, machine: &OddMachine) -> u64 {
        u64::from(machine.0 == NodeId(1))
    }
}

#[test]
fn the_story_of_a_failure_has_a_script_that_runs() {
    const SHORT: Scenario = Scenario {
        name: "short",
        row: None,
        about: "for this test",
        plan: |_| Plan::calm(2, 0, true, 2_000_000),
        expect: |_, _| Ok(()),
    };
    let failure = run(&SHORT.draw(1), 1, &Odd).failure.unwrap();
    assert_eq!(failure.checker, "state-machine");
    let folder = tempfile::tempdir().unwrap();
    story::write(&SHORT, 1, &failure, folder.path(), &Odd).unwrap();
    let names = std::fs::read_dir(folder.path()).unwrap();
    let script = names.map(|entry| entry.unwrap().path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("replica-"))
    });
    let text = std::fs::read_to_string(script.unwrap()).unwrap();
    assert!(text.starts_with("# Replica "), "the first line says which behaviour this is");
    let blocks = language::blocks(&text);
    assert!(blocks.len() > 10 && blocks.iter().all(|block| block.expected.is_some()));
    let mut harness = Harness::default();
    let lines = blocks.iter().flat_map(|block| &block.lines);
    for (at, line) in lines.filter(|(_, line)| !line.starts_with('#')) {
        harness.run(line).unwrap_or_else(|error| panic!("{at}: {line}: {error}"));
    }
}
