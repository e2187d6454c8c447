//! The tags of a stream's entries, and the numbers of what they stand for.

use backstory_eventlog::event::Via;
use backstory_graph::model::{Certainty, Edge, Informed, Relation};

/// The interval's end is its start.
pub const POINT: u8 = 64;
/// The entity is the last one + 1.
pub const NEXT: u8 = 128;

/// The bits of the kind: an edge (relation * 4 + seen * 2 + kernel), or one of the following.
pub const KIND: u8 = 63;
/// This activity was informed: the first of four kinds.
pub const INFORMED_BY: u8 = 44;
/// This activity informed another one: the first of four kinds.
pub const INFORMS: u8 = 48;
/// A derivation.
pub const DERIVED: u8 = 52;

/// In the order of their stored numbers. New ones are only ever appended.
const INFORMED: [Informed; 4] = [
    Informed::Fork,
    Informed::Exec,
    Informed::Wait,
    Informed::Signal,
];

/// The stored number of a reason.
pub fn of_inform(why: Informed) -> u8 {
    match why {
        Informed::Fork => 0,
        Informed::Exec => 1,
        Informed::Wait => 2,
        Informed::Signal => 3,
    }
}

/// The reason of an inform's tag.
pub fn why(tag: u8) -> Informed {
    INFORMED[usize::from(tag & 3)]
}

/// The kind of an edge.
pub fn of_edge(edge: &Edge) -> u8 {
    edge.relation.number() * 4
        + u8::from(edge.certainty == Certainty::Seen) * 2
        + u8::from(edge.via == Via::Kernel)
}

/// Relation, certainty and observer of an edge's tag. `None` if there is no such relation.
pub fn edge(tag: u8) -> Option<(Relation, Certainty, Via)> {
    let kind = tag & KIND;
    let certainty = match kind & 2 {
        0 => Certainty::Possible,
        _ => Certainty::Seen,
    };
    let via = match kind & 1 {
        0 => Via::Library,
        _ => Via::Kernel,
    };
    let relation = Relation::ALL.get(usize::from(kind / 4));
    relation.map(|relation| (*relation, certainty, via))
}

/// True if the tag is one of an inform, of either side.
pub fn is_inform(tag: u8) -> bool {
    (INFORMED_BY..DERIVED).contains(&(tag & KIND))
}

/// True if the tag is one of an edge.
pub fn is_edge(tag: u8) -> bool {
    tag & KIND < INFORMED_BY
}

/// True if the entry has a number among the `others`.
pub fn has_other(tag: u8) -> bool {
    is_inform(tag) || tag & NEXT == 0
}

/// True if the entry has a number among the `lengths`.
pub fn has_length(tag: u8) -> bool {
    !is_inform(tag) && tag & POINT == 0
}

/// True if the entry has a number among the `froms`.
pub fn has_from(tag: u8) -> bool {
    tag & KIND == DERIVED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_of_an_inform_keeps_its_number() {
        for (number, reason) in INFORMED.iter().enumerate() {
            assert_eq!(usize::from(of_inform(*reason)), number);
        }
    }

    #[test]
    fn no_relation_has_the_kind_of_an_inform() {
        assert!(Relation::ALL.len() * 4 <= usize::from(INFORMED_BY));
    }
}
