//! Finds the parts that two sequences have in common, such as lines of texts or rows of tables.
//!
//! The algorithm is that of Myers. Its time grows with the lengths and with the number of changes,
//! so a hostile text could take hours. Three measures limit it:
//!
//! - Parts that only one sequence has are left out of the search, as in GNU diff.
//! - After [`PATIENCE`], what is left of the sequences counts as changed. The operations still make
//!   the second sequence from the first.
//! - More than [`TIDIED`] operations stay as they were found. Moving them together takes time in
//!   proportion to the square of their number.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, DiffHook, Replace, myers};
use similar::{DiffOp, DiffTag};

/// The time after which no more equal parts are searched for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most operations that are moved together.
const TIDIED: usize = 20_000;

/// The operations that make the second sequence from the first, in order.
pub fn operations<T: Hash + Eq>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    until(old, new, Instant::now() + PATIENCE)
}

fn until<T: Hash + Eq>(old: &[T], new: &[T], end: Instant) -> Vec<DiffOp> {
    let (old, new) = numbered(old, new);
    let matches = common(&old, &new, end);
    let found = between(&matches, old.len(), new.len());
    // The hooks never fail: `Capture` has no error.
    let mut replaced = Replace::new(Capture::new());
    if found.len() > TIDIED {
        let _ = found
            .iter()
            .try_for_each(|op| op.apply_to_hook(&mut replaced));
        let _ = replaced.finish();
    } else {
        let mut tidied = Compact::new(replaced, &old[..], &new[..]);
        let _ = found
            .iter()
            .try_for_each(|op| op.apply_to_hook(&mut tidied));
        let _ = tidied.finish();
        replaced = tidied.into_inner();
    }
    replaced.into_inner().into_ops()
}

/// Equal parts have the same number.
fn numbered<T: Hash + Eq>(old: &[T], new: &[T]) -> (Vec<u32>, Vec<u32>) {
    let mut numbers: HashMap<&T, u32> = HashMap::new();
    let mut number = |part| {
        let next = numbers.len() as u32;
        *numbers.entry(part).or_insert(next)
    };
    let first = old.iter().map(&mut number).collect();
    (first, new.iter().map(&mut number).collect())
}

/// The positions of parts that both sequences have in the same order.
fn common(old: &[u32], new: &[u32], end: Instant) -> Vec<(usize, usize)> {
    let (left, right) = (shared(old, new), shared(new, old));
    let numbers = |kept: &[u32], all: &[u32]| -> Vec<u32> {
        kept.iter().map(|at| all[*at as usize]).collect()
    };
    let (a, b) = (numbers(&left, old), numbers(&right, new));
    let mut found = Capture::new();
    let _ = myers::diff_deadline(&mut found, &a, 0..a.len(), &b, 0..b.len(), Some(end));
    let all = found.into_ops().into_iter();
    let equal = all.filter(|op| op.tag() == DiffTag::Equal);
    let pairs = equal.flat_map(|op| op.old_range().zip(op.new_range()));
    pairs
        .map(|(i, j)| (left[i] as usize, right[j] as usize))
        .collect()
}

/// The positions of the parts of one sequence that the other one has, too.
fn shared(one: &[u32], other: &[u32]) -> Vec<u32> {
    let most = one.iter().chain(other).max().map_or(0, |most| *most + 1);
    let mut has = vec![false; most as usize];
    other.iter().for_each(|number| has[*number as usize] = true);
    let positions = (0..).zip(one);
    positions
        .filter(|(_, number)| has[**number as usize])
        .map(|(at, _)| at)
        .collect()
}

/// The operations between equal parts, and the equal parts. The sequences have these lengths.
fn between(matches: &[(usize, usize)], old: usize, new: usize) -> Vec<DiffOp> {
    let mut all = Vec::new();
    let (mut x, mut y) = (0, 0);
    for (i, j) in matches.iter().copied().chain([(old, new)]) {
        if i > x {
            all.push(DiffOp::Delete {
                old_index: x,
                old_len: i - x,
                new_index: y,
            });
        }
        if j > y {
            all.push(DiffOp::Insert {
                old_index: i,
                new_index: y,
                new_len: j - y,
            });
        }
        match all.last_mut() {
            _ if i == old || j == new => {}
            Some(DiffOp::Equal { len, .. }) => *len += 1,
            _ => all.push(DiffOp::Equal {
                old_index: i,
                new_index: j,
                len: 1,
            }),
        }
        (x, y) = (i + 1, j + 1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second sequence, made from the first by the operations.
    fn applied(old: &[u8], new: &[u8], all: &[DiffOp]) -> Vec<u8> {
        let parts = all.iter().flat_map(|op| match op.tag() {
            DiffTag::Equal => old[op.old_range()].to_vec(),
            _ => new[op.new_range()].to_vec(),
        });
        parts.collect()
    }

    #[test]
    fn the_operations_make_the_second_sequence_from_the_first() {
        let mut seed = 88_172_645_463_325_252_u64;
        let mut next = |most: u64| {
            // Marsaglia's xorshift64.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % most
        };
        for _ in 0..500 {
            let letters = 1 + next(6);
            let word = |next: &mut dyn FnMut(u64) -> u64| -> Vec<u8> {
                (0..next(12)).map(|_| next(letters) as u8).collect()
            };
            let (old, new) = (word(&mut next), word(&mut next));
            let found = operations(&old, &new);
            assert_eq!(
                applied(&old, &new, &found),
                new,
                "{old:?} {new:?} {found:?}"
            );
            let plain = similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new);
            let equal = |all: &[DiffOp]| -> usize {
                let equal = all.iter().filter(|op| op.tag() == DiffTag::Equal);
                equal.map(|op| op.old_range().len()).sum()
            };
            assert_eq!(equal(&found), equal(&plain), "{old:?} {new:?}");
        }
    }

    #[test]
    fn sequences_without_common_parts_are_not_searched() {
        let (old, new): (Vec<u32>, Vec<u32>) =
            ((0..200_000).collect(), (200_000..400_000).collect());
        let far = Instant::now() + Duration::from_secs(3600);
        // Myers' algorithm alone would take 40,000,000,000 steps.
        assert_eq!(until(&old, &new, far).len(), 1);
    }

    #[test]
    fn a_search_that_takes_too_long_still_gives_right_operations() {
        let old: Vec<u8> = (0..5000_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 30) as u8)
            .collect();
        let new: Vec<u8> = old.iter().rev().copied().collect();
        let found = until(&old, &new, Instant::now());
        assert_eq!(applied(&old, &new, &found), new);
    }
}
