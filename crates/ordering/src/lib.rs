//! Sorts and collects short lists with little code.
//!
//! In: a slice. Out: the same slice in order. The standard library's sort is compiled once for each
//! type and comparison, and takes about 6 kB each time. This one sorts the positions instead, so
//! that all types share one sort; a type adds only its comparison and the exchange of elements.
//!
//! Invariant: the order is that of the standard library's stable sort.
//! Absent: sorting of lists with a row for each event or edge. The crates that read logs and blocks
//! use the standard library.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::cmp::Ordering;

/// Stable sorts of a slice, for lists that a person reads.
pub trait SmallSort<T> {
    /// Sorts by the elements' own order.
    fn sort_small(&mut self)
    where
        T: Ord;

    /// Sorts by a comparison.
    fn sort_small_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key, which is computed for each comparison.
    fn sort_small_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

/// Collects into ordered sets and maps with little code.
///
/// The standard library's `collect` sorts the elements first, with a sort for each type.
pub trait SmallCollect: IntoIterator {
    /// The elements, inserted one by one. Of equal keys, the last one's value stays.
    fn into_tree<C: Default + Extend<Self::Item>>(self) -> C;
}

impl<I: IntoIterator> SmallCollect for I {
    fn into_tree<C: Default + Extend<I::Item>>(self) -> C {
        let mut tree = C::default();
        tree.extend(self);
        tree
    }
}

impl<T> SmallSort<T> for [T] {
    fn sort_small(&mut self)
    where
        T: Ord,
    {
        self.sort_small_by(T::cmp);
    }

    fn sort_small_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = sorted_positions(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        arrange(self, order);
    }

    fn sort_small_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_small_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// The positions of the elements in the order of a comparison.
#[inline(never)]
fn sorted_positions(
    length: usize,
    compare: &mut dyn FnMut(usize, usize) -> Ordering,
) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..length).collect();
    positions.sort_by(|&a, &b| compare(a, b));
    positions
}

/// Moves the element at `order[i]` to `i`, for each `i`. Each cycle of moves is followed once.
fn arrange<T>(elements: &mut [T], mut order: Vec<usize>) {
    for start in 0..order.len() {
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut order[at], at);
            if from == start || from == at {
                break;
            }
            elements.swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of all lengths to 40, with equal keys.
    fn lists() -> impl Iterator<Item = Vec<(u32, usize)>> {
        let mut state = 7_u32;
        (0..40_usize).flat_map(move |length| {
            let mut list = Vec::new();
            for _ in 0..20 {
                let random = |at| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 27, at)
                };
                list.push((0..length).map(random).collect());
            }
            list
        })
    }

    #[test]
    fn the_order_is_that_of_the_stable_sort_of_the_standard_library() {
        for list in lists() {
            let (mut expected, mut found) = (list.clone(), list.clone());
            expected.sort_by_key(|element| element.0);
            found.sort_small_by_key(|element| element.0);
            assert_eq!(found, expected);
            expected.sort_by(|a, b| b.cmp(a));
            found.sort_small_by(|a, b| b.cmp(a));
            assert_eq!(found, expected);
            expected.sort();
            found.sort_small();
            assert_eq!(found, expected);
        }
    }
}
