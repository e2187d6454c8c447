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
