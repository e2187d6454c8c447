//! Sets of bytes, as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers. Invariant: its ranges are not empty, and neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// The end of each range by its start.
    ends: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// True if nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// How many numbers are in the set.
    pub fn count(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// True if the number is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let before = self.ends.range(..=number).next_back();
        before.is_some_and(|(_, &end)| number < end)
    }

    /// The parts of a range that are not in the set, in ascending order.
    pub fn lacking(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut at = range.start;
        let from = self.ends.range(..=at).next_back().map_or(at, |(&s, _)| s);
        for (&start, &end) in self.ends.range(from..range.end.max(from)) {
            if start > at {
                parts.push(at..start.min(range.end));
            }
            at = at.max(end);
        }
        if at < range.end {
            parts.push(at..range.end);
        }
        parts
    }

    /// The numbers that are in this set and not in the other.
    pub fn without(&self, other: &RangeSet) -> RangeSet {
        let mut rest = RangeSet::default();
        for part in self.iter().flat_map(|range| other.lacking(range)) {
            rest.insert(part);
        }
        rest
    }

    /// Adds a range, and returns the parts of it that were not in the set.
    pub fn insert(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        if range.is_empty() {
            return Vec::new();
        }
        let parts = self.lacking(range.clone());
        let (mut start, mut end) = (range.start, range.end);
        if let Some((&s, &e)) = self.ends.range(..=start).next_back()
            && e >= start
        {
            start = s;
            end = end.max(e);
        }
        let inside: Vec<u64> = self.ends.range(start..=end).map(|(&s, _)| s).collect();
        for s in inside {
            end = end.max(self.ends.remove(&s).unwrap_or(end));
        }
        self.ends.insert(start, end);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_ranges_has_what_a_set_of_numbers_has() {
        let mut seed = 1u64;
        let mut next = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..300 {
            let (mut set, mut oracle) = (RangeSet::default(), std::collections::BTreeSet::new());
            for _ in 0..12 {
                let start = next(60);
                let range = start..start + next(15);
                let new: Vec<u64> = range.clone().filter(|n| !oracle.contains(n)).collect();
                let parts: Vec<u64> = set.insert(range.clone()).into_iter().flatten().collect();
                assert_eq!(parts, new);
                oracle.extend(range);
                assert!(set.iter().flatten().eq(oracle.iter().copied()));
                assert_eq!(set.count(), oracle.len() as u64);
                assert!((0..80).all(|n| set.contains(n) == oracle.contains(&n)));
            }
            let (mut other, start) = (RangeSet::default(), next(60));
            other.insert(start..start + next(15));
            let rest = set.without(&other);
            assert!((0..80).all(|n| rest.contains(n) == (set.contains(n) && !other.contains(n))));
            let ranges: Vec<_> = set.iter().collect();
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
