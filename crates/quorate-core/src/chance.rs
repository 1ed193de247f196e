//! Chance with a seed: SplitMix64 (Steele, Lea, Flood 2014).

use core::hash::{Hash, Hasher};
use core::time::Duration;

/// A stream of numbers that depends on its seed alone.
///
/// Never hashed: it chooses when a deadline passes, which is not hashed either, and which of several bootstrap
/// servers is asked first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chance(u64);

impl Hash for Chance {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// A time in [0, `bound`), in microseconds.
    pub(crate) fn up_to(&mut self, bound: Duration) -> Duration {
        self.spread(bound).saturating_sub(bound)
    }

    /// A time in [`base`, 2 `base`), in microseconds.
    pub(crate) fn spread(&mut self, base: Duration) -> Duration {
        let micros = u64::try_from(base.as_micros()).unwrap_or(u64::MAX);
        if micros == 0 {
            return Duration::ZERO;
        }
        base + Duration::from_micros(self.next() % micros)
    }
}
