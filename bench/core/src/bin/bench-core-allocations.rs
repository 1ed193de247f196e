//! Counts allocations in the steady state: `bench-core-allocations RECORDS...`
//!
//! Prints for each number of records a round `RECORDS CORE ALL STEPS`: allocations a round inside of steps, allocations a
//! round with what the caller hands in (each proposal's vector, each Fetch answer's batches), and which inputs
//! those inside of steps belong to.

use std::cell::Cell;

use allocation_counter::measure;
use quorate_bench_core::Quorum;
use quorate_core::io::{Input, Output};
use quorate_core::{Instant, Replica};

/// Rounds before anything is counted: buffers have their size then.
const WARM_UP: u64 = 1000;
const ROUNDS: u64 = 1000;

const INPUTS: [&str; 6] = ["propose", "tick", "durable", "request", "response", "other"];

thread_local! {
    /// Allocations by input, in the order of `INPUTS`.
    static COUNTS: Cell<[u64; INPUTS.len()]> = const { Cell::new([0; INPUTS.len()]) };
}

fn counted(replica: &mut Replica, now: Instant, input: Input, output: &mut Output) {
    let kind = match &input {
        Input::Propose { .. } => 0,
        Input::Tick => 1,
        Input::Durable { .. } => 2,
        Input::Request { .. } => 3,
        Input::Response { .. } => 4,
        Input::Resign { .. } | Input::Storage(_) | Input::Shutdown => 5,
    };
    let count = measure(|| replica.step(now, input, output)).count_total;
    let mut counts = COUNTS.get();
    counts[kind] += count;
    COUNTS.set(counts);
}

fn main() {
    let per_round = |count: u64| count as f64 / ROUNDS as f64;
    for records in std::env::args().skip(1) {
        let records: usize = records.parse().expect("a number");
        let mut quorum = Quorum::new(counted, |_| {});
        for _ in 0..WARM_UP {
            quorum.round(records);
        }
        COUNTS.set([0; INPUTS.len()]);
        let all = measure(|| (0..ROUNDS).for_each(|_| quorum.round(records))).count_total;
        let counts = COUNTS.get();
        let core: u64 = counts.iter().sum();
        let by_input = INPUTS.iter().zip(counts).filter(|(_, count)| *count > 0);
        let by_input: Vec<String> =
            by_input.map(|(input, count)| format!("{input}={:.2}", per_round(count))).collect();
        println!("{records} {:.2} {:.2} {}", per_round(core), per_round(all), by_input.join(" "));
    }
}
