//! Majorities: pure arithmetic.

use crate::ids::Offset;

/// The largest offset that a majority of voters holds; none if a majority's offsets are not known.
///
/// Takes one entry for each voter, in any order, and sorts them (KIP-595; Raft §5.3).
pub(crate) fn held_by_majority(ends: &mut [Option<Offset>]) -> Option<Offset> {
    // `None` sorts below every offset.
    ends.sort_unstable_by(|a, b| b.cmp(a));
    ends.get(ends.len() / 2).copied().flatten()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn naive(ends: &[Option<Offset>]) -> Option<Offset> {
        let majority = ends.len() / 2 + 1;
        ends.iter()
            .flatten()
            .filter(|end| ends.iter().filter(|other| *other >= &Some(**end)).count() >= majority)
            .max()
            .copied()
    }

    #[test]
    fn equals_the_naive_definition() {
        // All combinations of up to five voters with offsets unknown, 0, 1, 2 or 3.
        for voters in 0..=5usize {
            for code in 0..5usize.pow(u32::try_from(voters).unwrap()) {
                let mut rest = code;
                let ends: Vec<Option<Offset>> = (0..voters)
                    .map(|_| {
                        let digit = rest % 5;
                        rest /= 5;
                        (digit > 0).then(|| Offset::ZERO.plus(digit - 1))
                    })
                    .collect();
                assert_eq!(held_by_majority(&mut ends.clone()), naive(&ends), "{ends:?}");
            }
        }
    }
}
