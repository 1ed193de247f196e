//! Chance from a seed, and digests. The streams of xoshiro are part of its contract, so seeds last.

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// A stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// An index below `len`; 0 if that is 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(u64::try_from(len).unwrap_or(u64::MAX))).unwrap_or(0)
    }

    /// A number in `from..=to`.
    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from).saturating_add(1))
    }

    /// True this many times in a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// True this many times in a thousand.
    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    /// One of these.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }
}

/// A number that depends on a seed and a few other numbers alone: what happens to one message does not change
/// because another was left out.
pub(crate) fn keyed(seed: u64, key: [u64; 4]) -> Random {
    let mut state = seed;
    for part in key {
        state =
            SplitMix64::seed_from_u64(state ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64();
    }
    Random::new(state)
}

/// A digest of all that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Digest(u64);

impl Digest {
    /// Adds a number.
    pub fn add(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0xff51_afd7_ed55_8ccd);
        self.0 = mixed ^ (mixed >> 32);
    }

    /// Adds bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.add(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        let mut last = [0; 8];
        let rest = words.remainder();
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last));
        self.add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }

    /// The number.
    pub fn value(self) -> u64 {
        self.0
    }

    /// The digest of these bytes after `before`.
    pub(crate) fn chain(before: u64, bytes: &[u8]) -> u64 {
        let mut digest = Digest(before ^ 0x5bd1_e995);
        digest.add_bytes(bytes);
        digest.0
    }
}
