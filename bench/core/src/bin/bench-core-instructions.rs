//! Does one thing so many times, for valgrind to count: `bench-core-instructions WHAT TIMES`
//!
//! All preparation is the same whatever `TIMES` is, so that the difference of two runs is that of their loops alone.

use quorate_bench_core::Quorum;
use quorate_core::Replica;

/// `TIMES` is at most this.
const MOST: usize = 4000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().expect("WHAT TIMES");
    let times: usize = arguments.next().and_then(|times| times.parse().ok()).expect("WHAT TIMES");
    assert!(times <= MOST, "at most {MOST} times");
    // Nobody acknowledges what is appended alone.
    let mut quorum = Quorum::new(Replica::step, |config| config.max_uncommitted_bytes = usize::MAX);
    match what.as_str() {
        "append" => {
            for _ in 0..times {
                quorum.append();
            }
        }
        "fetch" => {
            let start = quorum.log_end();
            for _ in 0..=MOST {
                quorum.append();
            }
            for i in 0..times {
                quorum.fetch(start.plus(i));
            }
        }
        "round" => {
            for _ in 0..times {
                quorum.round(1);
            }
        }
        "round-of-64" => {
            for _ in 0..times {
                quorum.round(64);
            }
        }
        _ => panic!("append, fetch, round or round-of-64, not {what}"),
    }
}
