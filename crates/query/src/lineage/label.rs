//! The order in which a search expands nodes.

use std::cmp::Reverse;

use backstory_eventlog::event::Time;

use crate::neighbours::Direction;

/// How a node was reached. More remaining time is better, and then fewer activities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label {
    /// Greater is better in either direction.
    pub(super) rank: Time,
    pub(super) depth: Reverse<usize>,
}

impl Label {
    /// True if the other label leads to nothing more.
    pub(super) fn covers(&self, other: &Label) -> bool {
        self.rank >= other.rank && self.depth >= other.depth
    }
}

/// The labels of a node, none of which covers another one.
#[derive(Debug, Default)]
pub(super) struct Labels {
    first: Option<Label>,
    /// Empty for nearly all nodes, and then without memory of its own.
    more: Vec<Label>,
}

impl Labels {
    /// All labels, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Label> {
        self.first.iter().chain(&self.more)
    }

    /// Adds a label in place of those that it covers. False if another label covers it.
    pub(super) fn add(&mut self, label: Label) -> bool {
        if self.iter().any(|known| known.covers(&label)) {
            return false;
        }
        self.more.retain(|known| !label.covers(known));
        match &self.first {
            Some(first) if !label.covers(first) => self.more.push(label),
            _ => self.first = Some(label),
        }
        true
    }
}

/// The rank of the time that matters at a node.
pub(super) fn rank_of(time: Time, direction: Direction) -> Time {
    match direction {
        Direction::Back => time,
        // The complement reverses the order, and exists for every time.
        Direction::Forth => !time,
    }
}

/// The time that has a rank.
pub(super) fn time_of(rank: Time, direction: Direction) -> Time {
    // The complement of the complement is the time.
    rank_of(rank, direction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_label_of_a_node_covers_another_one() {
        let label = |rank: Time, depth: usize| Label {
            rank,
            depth: Reverse(depth),
        };
        let mut labels = Labels::default();
        for (rank, depth, is_new) in [(5, 5, true), (3, 2, true), (5, 6, false), (3, 2, false)] {
            assert_eq!(labels.add(label(rank, depth)), is_new, "{rank} at {depth}");
        }
        assert!(labels.add(label(2, 1)), "fewer activities");
        assert_eq!(labels.iter().count(), 3);
        assert!(labels.add(label(4, 2)), "it covers the second one");
        let mut all: Vec<(Time, usize)> =
            labels.iter().map(|one| (one.rank, one.depth.0)).collect();
        all.sort_unstable();
        assert_eq!(all, [(2, 1), (4, 2), (5, 5)]);
        assert!(labels.add(label(9, 0)), "it covers all");
        assert_eq!(labels.iter().count(), 1);
    }
}
