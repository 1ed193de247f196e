//! Times rounds of the core alone: `bench-core-time REPETITIONS MILLISECONDS RECORDS...`
//!
//! Prints for each number of records a round `RECORDS MEDIAN LOW HIGH` in nanoseconds a round, the last two being the
//! quartiles of so many repetitions of about so many milliseconds. The sizes take turns, so that what else the machine does
//! falls on all of them.

use std::time::{Duration, Instant};

use quorate_bench_core::Quorum;
use quorate_core::Replica;

struct Size {
    records: usize,
    quorum: Quorum,
    rounds: u32,
    nanoseconds: Vec<f64>,
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse().expect("a number"));
    let mut next = || arguments.next().expect("REPETITIONS MILLISECONDS RECORDS...");
    let (repetitions, repetition) = (next(), Duration::from_millis(next()));
    let mut sizes: Vec<Size> = arguments.map(|records| warm(records, repetition)).collect();
    for _ in 0..repetitions {
        for size in &mut sizes {
            let nanoseconds = time(&mut size.quorum, size.records, size.rounds);
            size.nanoseconds.push(nanoseconds / f64::from(size.rounds));
        }
    }
    for Size { records, mut nanoseconds, .. } in sizes {
        nanoseconds.sort_by(f64::total_cmp);
        let part = |of_four: usize| nanoseconds[(nanoseconds.len() - 1) * of_four / 4];
        println!("{records} {:.0} {:.0} {:.0}", part(2), part(1), part(3));
    }
}

/// A quorum that has run for a while, and how many rounds make a repetition.
fn warm(records: u64, repetition: Duration) -> Size {
    let records = usize::try_from(records).expect("small");
    let mut quorum = Quorum::new(Replica::step, |_| {});
    let mut rounds = 1;
    loop {
        let nanoseconds = time(&mut quorum, records, rounds);
        if nanoseconds >= repetition.as_nanos() as f64 {
            return Size { records, quorum, rounds, nanoseconds: Vec::new() };
        }
        rounds *= 2;
    }
}

fn time(quorum: &mut Quorum, records: usize, rounds: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..rounds {
        quorum.round(records);
    }
    start.elapsed().as_nanos() as f64
}
