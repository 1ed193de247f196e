//! The story of a failure: of the cluster as text and as a sequence diagram, and of the replica at fault as a script
//! of the core, which `cargo test -p quorate-core --test scripts` runs once it lies among the others.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::plan::{Action, Plan};
use crate::run::run_with;
use crate::scenarios::Scenario;
use crate::shrink::shrink;
use crate::trace::{Line, What};
use crate::workload::Workload;
use crate::world::Failure;

/// So many lines before the failure are told.
const MAX_LINES: usize = 3000;

/// A diagram with more lines than this is read by nobody.
const MAX_ARROWS: usize = 250;

/// Prints all that happens in a run.
pub fn print(plan: &Plan, seed: u64, workload: &impl Workload) {
    let outcome = run_with(plan, seed, workload, true);
    println!("{}", describe(plan));
    for line in &outcome.lines {
        println!("{}", line.text());
    }
}

/// Cuts the run of a seed down to a short one that fails in the same way, and writes its story into a folder.
/// In words, how short it is.
///
/// # Errors
/// The folder cannot be written.
pub fn write(
    scenario: &Scenario,
    seed: u64,
    failure: &Failure,
    folder: &Path,
    workload: &impl Workload,
) -> Result<String> {
    let whole = scenario.draw(seed);
    let entries = whole.schedule.len();
    let (plan, runs) = shrink(scenario, whole, seed, failure, workload);
    let outcome = run_with(&plan, seed, workload, true);
    let failure = outcome.failure.as_ref().unwrap_or(failure);
    let mut text = format!(
        "# Seed {seed} of scenario {}, cut down from {entries} disturbances to {} in {runs} runs.\n# {}: {}\n\n{}\n",
        scenario.name,
        plan.schedule.len(),
        failure.checker,
        failure.what,
        describe(&plan)
    );
    let skip = outcome.lines.len().saturating_sub(MAX_LINES);
    if skip > 0 {
        let _ = writeln!(text, "# {skip} lines before are left out.");
    }
    for line in outcome.lines.iter().skip(skip) {
        let _ = writeln!(text, "{}", line.text());
    }
    let _ = writeln!(text, "\n# {}: {}", failure.checker, failure.what);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(folder.join("story.txt"), text))
        .and_then(|()| {
            let diagram = diagram(&plan, &outcome.lines, failure);
            std::fs::write(folder.join("story.mmd"), diagram)
        })
        .and_then(|()| match outcome.recordings.get(&failure.node) {
            // What a scenario expects is nobody's fault alone.
            Some(recording) if failure.checker != "scenario" => {
                let title = format!(
                    "Replica {} in seed {seed} of the scenario {}, from its last start on. {}: {}",
                    failure.node + 1,
                    scenario.name,
                    failure.checker,
                    failure.what.replace('\n', " ")
                );
                let name = format!("replica-{}.txt", failure.node + 1);
                std::fs::write(folder.join(name), recording.text(&title))
            }
            _ => Ok(()),
        })
        .with_context(|| folder.display().to_string())?;
    Ok(format!(
        "{} of {entries} disturbances and {} lines",
        plan.schedule.len(),
        outcome.lines.len()
    ))
}

/// A plan in a few lines.
fn describe(plan: &Plan) -> String {
    let mut text = format!(
        "# {} voters, {} observers, voters in the log: {}, {:?}, hints {:?}\n# {:?}\n# {:?}\n# {:?}\n# clocks {:?}, wake-ups {:?}\n",
        plan.voters,
        plan.observers,
        plan.is_dynamic,
        plan.generations,
        plan.hints,
        plan.timeouts,
        plan.network,
        plan.disk,
        plan.clock_rates,
        plan.wake
    );
    let is_proposal = |action: &Action| matches!(action, Action::Propose { .. });
    let proposals = plan.schedule.iter().filter(|(_, action)| is_proposal(action)).count();
    let _ = writeln!(text, "# {proposals} proposals, and:");
    for (at, action) in plan.schedule.iter().filter(|(_, action)| !is_proposal(action)) {
        let _ = writeln!(text, "# {:>4}.{:06} {action:?}", at / 1_000_000, at % 1_000_000);
    }
    text
}

/// The end of the story as Mermaid draws it.
fn diagram(plan: &Plan, lines: &[Line], failure: &Failure) -> String {
    let mut text = "sequenceDiagram\n".to_owned();
    for node in 1..=plan.nodes() {
        let _ = writeln!(text, "    participant n{node}");
    }
    // What is heard was sent; the arrow stands where it left.
    let shown: Vec<&Line> = lines
        .iter()
        .filter(|line| !matches!(line.what, What::Hears { .. } | What::Disk(_)))
        .collect();
    let skip = shown.len().saturating_sub(MAX_ARROWS);
    for line in shown.into_iter().skip(skip) {
        let node = line.node + 1;
        let _ = match &line.what {
            What::Sends { to, text: what, lost } => {
                let arrow = if *lost { "-x" } else { "->>" };
                writeln!(text, "    n{node}{arrow}n{}: {}", to + 1, plain(what))
            }
            What::Write(what) | What::Event(what) | What::Note(what) | What::Disk(what) => {
                writeln!(text, "    Note over n{node}: {}", plain(what))
            }
            What::Hears { .. } => Ok(()),
        };
    }
    let _ = writeln!(text, "    Note over n1: {}: {}", failure.checker, plain(&failure.what));
    text
}

/// Mermaid takes `;` and `#` for its own.
fn plain(text: &str) -> String {
    text.replace([';', '#'], ",")
}
