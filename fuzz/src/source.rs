//! Choices out of bytes, batches with right CRCs, and the bound on memory.

use allocation_counter::measure;
use quorate_wire::batch::HEADER_LEN;
use quorate_wire::crc::crc32c;

/// The input, read from its front. Past its end everything is zero.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    rest: &'a [u8],
}

impl<'a> Source<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Source<'a> {
        Source { rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// As many bytes, or what is left.
    pub(crate) fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(n.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.take(usize::MAX)
    }

    /// Two bytes say how many.
    pub(crate) fn take_counted(&mut self) -> &'a [u8] {
        let n = self.short();
        self.take(n.into())
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let taken = self.take(N);
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }

    pub(crate) fn byte(&mut self) -> u8 {
        u8::from_be_bytes(self.array())
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    pub(crate) fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.array())
    }

    pub(crate) fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.array())
    }

    /// A number below `n`, which is not zero.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// One of these, of which there is at least one.
    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// Gives every batch the CRC that its bytes have, which chance would never find.
pub(crate) fn mend_crcs(bytes: &mut [u8]) {
    let mut rest = bytes;
    while let Some(length) = rest.get(8..12).and_then(|length| length.first_chunk()) {
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let total = length.saturating_add(12);
        if total < HEADER_LEN || total > rest.len() {
            return;
        }
        let (batch, after) = rest.split_at_mut(total);
        let crc = crc32c(&batch[21..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
        rest = after;
    }
}

/// Does something with an input of `len` bytes, which must not take memory out of proportion to them.
pub(crate) fn within_bounds<T>(len: usize, fixed: u64, work: impl FnOnce() -> T) -> T {
    let mut result = None;
    let held = measure(|| result = Some(work())).bytes_max;
    // What the codec promises is 16 times the bytes and 64 KiB; a vector that grows has its old place too.
    let bound = 3 * 16 * u64::try_from(len).unwrap_or(u64::MAX) + fixed;
    assert!(held <= bound, "{len} bytes took {held} bytes of memory, more than {bound}");
    result.expect("the work is done")
}

/// The part of a decoder's bound that does not depend on the input.
pub(crate) const DECODER: u64 = 3 * 65_536;
