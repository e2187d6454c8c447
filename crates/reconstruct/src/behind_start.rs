//! Rules for the state of a record behind a start.
//!
//! In: the state of one part before the start (`fresh`) and after it (`left`), and that of another
//! part (`other`). Out: the other state behind the same start, or nothing if a rule does not hold.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A state of which a start changed nothing, or which was the same in both parts.
pub(crate) fn state<T: Clone + PartialEq>(fresh: &T, left: &T, other: &T) -> Option<T> {
    if left == fresh {
        return Some(other.clone());
    }
    (other == fresh).then(|| left.clone())
}

/// A state that decides about the beginning of a program: both parts have the same.
pub(crate) fn same<T: Clone + PartialEq>(fresh: &T, left: &T, other: &T) -> Option<T> {
    (other == fresh).then(|| left.clone())
}

/// A queue, from whose front a start took.
pub(crate) fn queue<T: Clone + PartialEq>(
    fresh: &VecDeque<T>,
    left: &VecDeque<T>,
    other: &VecDeque<T>,
) -> Option<VecDeque<T>> {
    if let Some(found) = state(fresh, left, other) {
        return Some(found);
    }
    let taken = fresh.len().checked_sub(left.len())?;
    let took_front = fresh.iter().skip(taken).eq(left);
    let has_same = other.len() >= taken && fresh.iter().take(taken).eq(other.iter().take(taken));
    (took_front && has_same).then(|| other.iter().skip(taken).cloned().collect())
}

/// A number that became less by what a start took.
pub(crate) fn sum(fresh: u64, left: u64, other: u64) -> Option<u64> {
    other.checked_sub(fresh.checked_sub(left)?)
}

/// A map, each of whose values follows a rule.
pub(crate) fn map<K: Clone + Eq + Hash, V: Clone + PartialEq>(
    fresh: &HashMap<K, V>,
    left: &HashMap<K, V>,
    other: &HashMap<K, V>,
    rule: impl Fn(&V, &V, &V) -> Option<V>,
) -> Option<HashMap<K, V>> {
    if let Some(found) = state(fresh, left, other) {
        return Some(found);
    }
    let mut found = HashMap::new();
    for key in fresh.keys().chain(left.keys()).chain(other.keys()) {
        if found.contains_key(key) {
            continue;
        }
        let value = match (fresh.get(key), left.get(key), other.get(key)) {
            (Some(fresh), Some(left), Some(other)) => Some(rule(fresh, left, other)?),
            (fresh, left, other) => state(&fresh, &left, &other)?.cloned(),
        };
        found.extend(value.map(|value| (key.clone(), value)));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{map, queue, state};
    use std::collections::{HashMap, VecDeque};

    fn of(numbers: &[u64]) -> VecDeque<u64> {
        numbers.iter().copied().collect()
    }

    #[test]
    fn entries_that_a_start_took_are_gone_from_another_part_that_has_them_in_front() {
        for (fresh, left, other, found) in [
            (
                &[1, 2, 9][..],
                &[2, 9][..],
                &[1, 2, 5, 9][..],
                Some(&[2, 5, 9][..]),
            ),
            // Nothing was taken, or both parts are the same.
            (&[1, 9], &[1, 9], &[3], Some(&[3])),
            (&[1, 2, 9], &[1, 9], &[1, 2, 9], Some(&[1, 9])),
            // Another part has other entries in front, too few, or the start took from the middle.
            (&[1, 2, 9], &[2, 9], &[3, 2, 9], None),
            (&[1, 2, 9], &[9], &[1], None),
            (&[1, 2, 9], &[1, 9], &[1, 2, 5], None),
            // The start added one.
            (&[1], &[1, 2], &[5], None),
        ] {
            let behind = queue(&of(fresh), &of(left), &of(other));
            assert_eq!(behind, found.map(of), "{fresh:?} {left:?} {other:?}");
        }
    }

    #[test]
    fn a_state_that_a_start_changed_must_have_been_the_same_in_both_parts() {
        assert_eq!(state(&1, &1, &5), Some(5));
        assert_eq!(state(&1, &2, &1), Some(2));
        assert_eq!(state(&1, &2, &5), None);
        let one = |key: u32, numbers: &[u64]| HashMap::from([(key, of(numbers))]);
        // The start made an entry that the other part lacks, or that it has itself.
        let empty = HashMap::new();
        let made = map(&empty, &one(7, &[]), &one(8, &[3]), queue);
        let both: HashMap<_, _> = one(7, &[]).into_iter().chain(one(8, &[3])).collect();
        assert_eq!(made, Some(both));
        assert_eq!(map(&empty, &one(7, &[]), &one(7, &[3]), queue), None);
        // It took from one that the other part lacks.
        assert_eq!(map(&one(7, &[1, 2]), &one(7, &[2]), &empty, queue), None);
    }
}
