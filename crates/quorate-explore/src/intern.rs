//! Values by number: equal values get the same one.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Two independent hashes of 64 bits: that two different values of a run share both does not happen.
pub(crate) type Fingerprint = (u64, u64);

/// The fingerprint of a value.
pub(crate) fn fingerprint(value: &impl Hash) -> Fingerprint {
    let mut twice = Twice::default();
    value.hash(&mut twice);
    twice.fingerprint()
}

/// Two hashes at once, by folded multiplication with different odd numbers.
pub(crate) struct Twice(u64, u64);

impl Default for Twice {
    fn default() -> Twice {
        Twice(0x2d35_8dcc_aa6c_78a5, 0x8bb8_4b93_962e_acc9)
    }
}

impl Twice {
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        (fold(self.0, 0xa076_1d64_78bd_642f), fold(self.1, 0xe703_7ed1_a0b4_28db))
    }
}

impl Hasher for Twice {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        // The additions keep a word that happens to cancel one half from silencing it.
        self.0 = fold(self.0 ^ word, 0x9e37_79b9_7f4a_7c15).wrapping_add(0x5851_f42d_4c95_7f2d);
        self.1 = fold(self.1 ^ word.rotate_left(32), 0xd6e8_feb8_6659_fd93)
            .wrapping_add(word)
            .wrapping_add(0x1405_7b7e_f767_814f);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let bytes = (u128::from(a) * u128::from(b)).to_le_bytes();
    let (low, high) = bytes.split_at(8);
    let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
    word(low) ^ word(high)
}

/// Hashes what is a hash already, or a small number.
#[derive(Default)]
pub(crate) struct Plain(u64);

impl Hasher for Plain {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // The table takes its index from one end of the word and its tag from the other.
        self.0 ^ (self.0 >> 32)
    }
}

pub(crate) type PlainBuild = BuildHasherDefault<Plain>;

/// Values with their numbers.
pub(crate) struct Interner<T> {
    values: Vec<T>,
    numbers: HashMap<Fingerprint, u32, PlainBuild>,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { values: Vec::new(), numbers: HashMap::default() }
    }
}

impl<T: Hash> Interner<T> {
    /// The number of a value.
    pub(crate) fn intern(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.values.len()).expect("fewer than 2^32 values");
        let number = *self.numbers.entry(fingerprint(&value)).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        number
    }

    /// The value of a number.
    pub(crate) fn get(&self, number: u32) -> &T {
        &self.values[usize::try_from(number).expect("a number of ours")]
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}
