//! The highest rate that a system keeps up with: found in short trials, and then held for longer.

use anyhow::Result;

use super::sample::{Sample, Window};
use crate::kill_loop::cluster::NODES;

/// p99 is to be below this, in microseconds.
const P99_US: f64 = 50_000.0;

/// A system that commits a smaller part of what is offered does not keep up, whatever it says of latencies.
const COMMITTED: f64 = 0.95;

/// Whether a system kept up with a rate.
pub(super) fn keeps_up(rate: u32, sample: &Sample) -> bool {
    let enough = sample.commits_per_second >= f64::from(rate) * COMMITTED;
    enough && sample.failed == 0 && sample.p99_us.is_some_and(|p99| p99 < P99_US)
}

/// The lowest and highest rates that are tried.
const LEAST: u32 = 100;
const MOST: u32 = 10_000_000;

/// How often the gap between a rate that is kept up with and one that is not is halved: to a factor of 2^(1/4).
const HALVINGS: i32 = 2;

/// Doubles or halves the first rate until one is kept up with and its double is not, and looks closer. 0 if none is.
pub(super) fn find(first: u32, mut holds: impl FnMut(u32) -> Result<bool>) -> Result<u32> {
    let mut rate = first.clamp(LEAST, MOST);
    let (mut below, mut above);
    if holds(rate)? {
        loop {
            below = rate;
            if rate >= MOST {
                return Ok(rate);
            }
            rate = rate.saturating_mul(2).min(MOST);
            if !holds(rate)? {
                above = rate;
                break;
            }
        }
    } else {
        loop {
            above = rate;
            if rate <= LEAST {
                return Ok(0);
            }
            rate = (rate / 2).max(LEAST);
            if holds(rate)? {
                below = rate;
                break;
            }
        }
    }
    for _ in 0..HALVINGS {
        let middle = rounded((f64::from(below) * f64::from(above)).sqrt());
        if holds(middle)? { below = middle } else { above = middle }
    }
    Ok(below)
}

/// Steps down from a rate that was found until one holds. 0 if none does.
pub(super) fn hold(found: u32, mut holds: impl FnMut(u32) -> Result<bool>) -> Result<u32> {
    let mut rate = found;
    while rate > 0 && !holds(rate)? {
        let below = rounded(f64::from(rate) / 2_f64.powf(0.5_f64.powi(HALVINGS)));
        rate = if rate > LEAST { below.max(LEAST) } else { 0 };
    }
    Ok(rate)
}

/// What three logs take at a rate, and half as much for what frames the records and for whoever else writes to the disk.
pub(super) fn disk_bytes(rate: u32, window: &Window) -> f64 {
    let seconds = (window.warm_up + window.length).as_secs_f64();
    f64::from(rate) * seconds * f64::from(window.record_bytes) * NODES as f64 * 1.5
}

/// A rate with two digits that are not 0.
fn rounded(rate: f64) -> u32 {
    let unit = 10_f64.powf((rate.log10().floor() - 1.0).max(0.0));
    let text = format!("{:.0}", (rate / unit).round() * unit);
    text.parse().unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn found(first: u32, limit: u32) -> (u32, usize) {
        let mut tried = 0;
        let found = find(first, |rate| {
            tried += 1;
            Ok(rate <= limit)
        });
        (found.expect("it never fails"), tried)
    }

    #[test]
    fn the_ceiling_is_found_from_below_and_from_above() {
        for first in [1000, 100_000] {
            let (rate, tried) = found(first, 30_000);
            assert!((25_000..=30_000).contains(&rate), "{rate} from {first}");
            assert!(tried <= 8, "{tried} from {first}");
        }
        assert_eq!(found(10_000, 50), (0, 8));
        assert_eq!(found(5_000_000, MOST).0, MOST);
    }

    #[test]
    fn what_does_not_hold_goes_a_step_down() {
        let held = |found: u32, limit: u32| {
            let mut tried = Vec::new();
            let rate = hold(found, |rate| {
                tried.push(rate);
                Ok(rate <= limit)
            });
            (rate.expect("it never fails"), tried)
        };
        assert_eq!(held(30_000, 30_000), (30_000, vec![30_000]));
        assert_eq!(held(30_000, 22_000), (21_000, vec![30_000, 25_000, 21_000]));
        assert_eq!(held(130, 50), (0, vec![130, 110, 100]));
        assert_eq!(held(0, 50), (0, vec![]));
    }

    #[test]
    fn a_long_trial_needs_room() {
        let window = Window {
            record_bytes: 256,
            batch: None,
            warm_up: Duration::from_secs(1),
            length: Duration::from_secs(30),
        };
        let gigabytes = disk_bytes(1_000_000, &window) / 1e9;
        assert!((30.0..40.0).contains(&gigabytes), "{gigabytes}");
    }

    #[test]
    fn what_falls_behind_does_not_keep_up() {
        let sample =
            Sample { commits_per_second: 960.0, p99_us: Some(49_000.0), ..Sample::default() };
        assert!(keeps_up(1000, &sample));
        assert!(!keeps_up(1100, &sample));
        assert!(!keeps_up(1000, &Sample { p99_us: Some(51_000.0), ..sample.clone() }));
        assert!(!keeps_up(1000, &Sample { failed: 1, ..sample }));
    }
}
