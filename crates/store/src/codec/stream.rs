//! What an activity did: one short record per edge, each relative to the one before.
//!
//! ```text
//! segment := previous-segment+1 entry*
//! entry   := tag  [entity or activity, zigzag delta]  start, zigzag delta  [end - start]  [derived: from, zigzag to entity]
//! tag     := kind | POINT (end = start) | NEXT (entity is the last one + 1)
//! ```

use backstory_eventlog::event::{Time, Via};
use backstory_graph::model::{
    ActivityId, Certainty, Derived, Edge, EntityId, Inform, Informed, Interval, Relation,
};

use super::{Put, Take};
use crate::{Result, Stream};

const POINT: u8 = 64;
const NEXT: u8 = 128;
const KIND: u8 = 63;
const INFORMED_BY: u8 = 44;
const INFORMS: u8 = 48;
const DERIVED: u8 = 52;

/// Relations in the order of their stored numbers. Only ever appended to.
const RELATIONS: [Relation; 11] = [
    Relation::Read,
    Relation::Execute,
    Relation::Stat,
    Relation::List,
    Relation::Missing,
    Relation::Link,
    Relation::Write,
    Relation::Delete,
    Relation::Rename,
    Relation::Meta,
    Relation::Make,
];
const INFORMED: [Informed; 4] = [Informed::Fork, Informed::Exec, Informed::Wait, Informed::Signal];

fn relation_number(relation: Relation) -> u8 {
    use Relation::*;
    match relation {
        Read => 0,
        Execute => 1,
        Stat => 2,
        List => 3,
        Missing => 4,
        Link => 5,
        Write => 6,
        Delete => 7,
        Rename => 8,
        Meta => 9,
        Make => 10,
    }
}

fn informed_number(why: Informed) -> u8 {
    match why {
        Informed::Fork => 0,
        Informed::Exec => 1,
        Informed::Wait => 2,
        Informed::Signal => 3,
    }
}

/// Builds one segment.
#[derive(Debug, Default)]
pub struct Builder {
    bytes: Vec<u8>,
    entity: u32,
    activity: u32,
    time: Time,
}

impl Builder {
    /// A segment of `activity`'s, whose times are told relative to `base` (the run's start).
    pub fn new(activity: ActivityId, base: Time) -> Self {
        Builder {
            bytes: Vec::new(),
            entity: 0,
            activity: activity.0,
            time: base,
        }
    }

    /// True if nothing was put.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds an edge.
    pub fn edge(&mut self, edge: &Edge) {
        let kind = relation_number(edge.relation) * 4
            + u8::from(edge.certainty == Certainty::Seen) * 2
            + u8::from(edge.via == Via::Kernel);
        let point = if edge.interval.end == edge.interval.start {
            POINT
        } else {
            0
        };
        self.entity_entry(kind | point, edge.entity.0, edge.interval.start);
        if point == 0 {
            self.bytes
                .signed(edge.interval.end.wrapping_sub(edge.interval.start));
        }
    }

    fn entity_entry(&mut self, tag: u8, entity: u32, time: Time) {
        if entity == self.entity.wrapping_add(1) {
            self.bytes.push(tag | NEXT);
        } else {
            self.bytes.push(tag);
            self.bytes.signed(i64::from(entity) - i64::from(self.entity));
        }
        self.entity = entity;
        self.time_entry(time);
    }

    fn time_entry(&mut self, time: Time) {
        self.bytes.signed(time.wrapping_sub(self.time));
        self.time = time;
    }

    /// Adds what informed it.
    pub fn informed_by(&mut self, inform: &Inform) {
        self.inform_entry(
            INFORMED_BY + informed_number(inform.why),
            inform.from.0,
            inform.time,
        );
    }

    /// Adds what it informed.
    pub fn informs(&mut self, inform: &Inform) {
        self.inform_entry(INFORMS + informed_number(inform.why), inform.to.0, inform.time);
    }

    fn inform_entry(&mut self, tag: u8, other: u32, time: Time) {
        self.bytes.push(tag);
        self.bytes.signed(i64::from(other) - i64::from(self.activity));
        self.time_entry(time);
    }

    /// Adds a derivation.
    pub fn derived(&mut self, derived: &Derived) {
        self.entity_entry(DERIVED | POINT, derived.entity.0, derived.time);
        self.bytes
            .signed(i64::from(derived.from.0) - i64::from(derived.entity.0));
    }

    /// The segment, following the segment numbered `previous`; nothing if nothing was put.
    pub fn finish(self, previous: Option<u32>) -> Option<Vec<u8>> {
        if self.bytes.is_empty() {
            return None;
        }
        let mut segment = Vec::with_capacity(self.bytes.len() + 2);
        segment.number(previous.map_or(0, |p| u64::from(p) + 1));
        segment.extend_from_slice(&self.bytes);
        Some(segment)
    }
}

/// Decodes a segment of `activity`'s onto the end of `into`; returns the number of the segment before it.
pub fn decode(segment: &[u8], activity: ActivityId, base: Time, into: &mut Stream) -> Result<Option<u32>> {
    let mut take = Take::new(segment, "edge list");
    let previous = take.small()?.checked_sub(1);
    let (mut entity, mut time) = (0u32, base);
    while !take.is_empty() {
        let tag = take.byte()?;
        let kind = tag & KIND;
        if (INFORMED_BY..DERIVED).contains(&kind) {
            let other = ActivityId(moved(&mut take, activity.0)?);
            time = time.wrapping_add(take.signed()?);
            let why = INFORMED[usize::from(kind & 3)];
            if kind < INFORMS {
                into.informed_by.push(Inform {
                    from: other,
                    to: activity,
                    why,
                    time,
                });
            } else {
                into.informs.push(Inform {
                    from: activity,
                    to: other,
                    why,
                    time,
                });
            }
            continue;
        }
        entity = if tag & NEXT != 0 {
            entity.wrapping_add(1)
        } else {
            moved(&mut take, entity)?
        };
        time = time.wrapping_add(take.signed()?);
        if kind == DERIVED {
            let from = EntityId(moved(&mut take, entity)?);
            into.derived.push(Derived {
                entity: EntityId(entity),
                from,
                activity,
                time,
            });
            continue;
        }
        let end = if tag & POINT != 0 {
            time
        } else {
            time.wrapping_add(take.signed()?)
        };
        into.edges.push(Edge {
            activity,
            entity: EntityId(entity),
            relation: *RELATIONS
                .get(usize::from(kind / 4))
                .ok_or_else(|| take.damaged())?,
            interval: Interval { start: time, end },
            certainty: if kind & 2 != 0 {
                Certainty::Seen
            } else {
                Certainty::Possible
            },
            via: if kind & 1 != 0 { Via::Kernel } else { Via::Library },
        });
    }
    Ok(previous)
}

fn moved(take: &mut Take<'_>, from: u32) -> Result<u32> {
    let to = i64::from(from)
        .checked_add(take.signed()?)
        .ok_or_else(|| take.damaged())?;
    u32::try_from(to).map_err(|_| take.damaged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edges() -> impl Strategy<Value = Vec<Edge>> {
        let edge = (
            0usize..11,
            any::<u32>(),
            any::<i64>(),
            any::<i64>(),
            any::<bool>(),
            any::<bool>(),
        );
        proptest::collection::vec(edge, 0..20).prop_map(|list| {
            list.into_iter()
                .map(|(relation, entity, start, end, seen, kernel)| Edge {
                    activity: ActivityId(5),
                    entity: EntityId(entity),
                    relation: RELATIONS[relation],
                    interval: Interval { start, end },
                    certainty: if seen {
                        Certainty::Seen
                    } else {
                        Certainty::Possible
                    },
                    via: if kernel { Via::Kernel } else { Via::Library },
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn a_stream_comes_back_as_it_was(edges in edges(), other: u32, time: i64, base: i64) {
            let me = ActivityId(5);
            let mut builder = Builder::new(me, base);
            let by = Inform { from: ActivityId(other), to: me, why: Informed::Wait, time };
            let to = Inform { from: me, to: ActivityId(other), why: Informed::Signal, time };
            let derived = Derived { entity: EntityId(other), from: EntityId(7), activity: me, time };
            builder.informed_by(&by);
            for edge in &edges {
                builder.edge(edge);
            }
            builder.derived(&derived);
            builder.informs(&to);
            let segment = builder.finish(Some(8)).unwrap();
            let mut stream = Stream::default();
            prop_assert_eq!(decode(&segment, me, base, &mut stream).unwrap(), Some(8));
            prop_assert_eq!(stream, Stream { edges, informed_by: vec![by], informs: vec![to], derived: vec![derived] });
        }
    }

    #[test]
    fn relations_keep_their_numbers() {
        for (number, relation) in RELATIONS.iter().enumerate() {
            assert_eq!(usize::from(relation_number(*relation)), number);
        }
        for (number, why) in INFORMED.iter().enumerate() {
            assert_eq!(usize::from(informed_number(*why)), number);
        }
    }
}
