//! Runs seeds.

use quorate_sim::{run, scenarios, workload::Ledger};

fn main() {
    let from: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    let to: u64 = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(from + 1);
    for seed in from..to {
        let plan = scenarios::ALL[0].draw(seed);
        let start = std::time::Instant::now();
        let outcome = run::run(&plan, seed, &Ledger);
        println!(
            "{seed} {:?} {} s {} events, {} committed {:x} in {:?}",
            outcome.failure,
            outcome.time / 1000000,
            outcome.events,
            outcome.history.committed,
            outcome.digest,
            start.elapsed()
        );
    }
}
