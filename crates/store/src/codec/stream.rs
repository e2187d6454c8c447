//! What an activity did: one short record per edge, each relative to the one before.
//!
//! ```text
//! segment := previous-segment+1  (entry* | COLUMNS frame*)
//! entry   := tag  [entity or activity, zigzag delta]  start, zigzag delta  [end - start]  [derived: from, zigzag to entity]
//! tag     := kind | POINT (end = start) | NEXT (entity is the last one + 1)
//! frame   := how many entries  tags  entities or activities  starts  lengths  froms        a column each
//! ```
//!
//! A segment is kept as entries or in frames of up to [`FRAME`] entries, whichever is smaller. A frame's columns have the numbers that its
//! entries would have; a tag there is what it differs in (exclusive or) from the tag that followed the same tag last time.

use backstory_eventlog::event::{Time, Via};
use backstory_graph::model::{
    ActivityId, Certainty, Derived, Edge, EntityId, Inform, Informed, Interval, Relation,
};

use super::{Put, Take, column, unzigzag};
use crate::{Error, Result, Stream};

/// Stands where the first entry's tag would: no kind has this number.
const COLUMNS: u8 = 63;
/// Entries in a frame.
const FRAME: usize = 128;
/// Fewer entries than this are not worth columns.
const FEW: usize = 16;

const POINT: u8 = 64;
const NEXT: u8 = 128;
const KIND: u8 = 63;
const INFORMED_BY: u8 = 44;
const INFORMS: u8 = 48;
const DERIVED: u8 = 52;

/// In the order of their stored numbers. Only ever appended to.
const INFORMED: [Informed; 4] = [
    Informed::Fork,
    Informed::Exec,
    Informed::Wait,
    Informed::Signal,
];

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
        let kind = edge.relation.number() * 4
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
            self.bytes
                .signed(i64::from(entity) - i64::from(self.entity));
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
        self.inform_entry(
            INFORMS + informed_number(inform.why),
            inform.to.0,
            inform.time,
        );
    }

    fn inform_entry(&mut self, tag: u8, other: u32, time: Time) {
        self.bytes.push(tag);
        self.bytes
            .signed(i64::from(other) - i64::from(self.activity));
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
        let mut segment = Vec::with_capacity(self.bytes.len() + 5);
        segment.number(previous.map_or(0, |p| u64::from(p) + 1));
        match in_columns(&self.bytes) {
            Some(columns) => {
                segment.push(COLUMNS);
                segment.extend_from_slice(&columns);
            }
            None => segment.extend_from_slice(&self.bytes),
        }
        Some(segment)
    }
}

/// Which numbers an entry has besides its tag and its start.
struct Shape {
    other: bool,
    length: bool,
    from: bool,
}

impl Shape {
    fn of(tag: u8) -> Shape {
        let kind = tag & KIND;
        let informs = (INFORMED_BY..DERIVED).contains(&kind);
        Shape {
            other: informs || tag & NEXT == 0,
            length: !informs && tag & POINT == 0,
            from: kind == DERIVED,
        }
    }
}

/// Foretells tags: programs do the same things in the same order again and again.
struct Foretold {
    followers: [u8; 256],
    last: u8,
}

impl Foretold {
    fn new() -> Foretold {
        Foretold {
            followers: [0; 256],
            last: 0,
        }
    }

    /// From a tag to what it differs in from the foretold one.
    fn difference(&mut self, tag: u8) -> u8 {
        let difference = tag ^ self.followers[usize::from(self.last)];
        self.followers[usize::from(self.last)] = tag;
        self.last = tag;
        difference
    }

    /// And back.
    fn tag(&mut self, difference: u8) -> u8 {
        let tag = difference ^ self.followers[usize::from(self.last)];
        self.followers[usize::from(self.last)] = tag;
        self.last = tag;
        tag
    }
}

/// The numbers of a frame.
#[derive(Default)]
struct Frame {
    tags: Vec<u64>,
    others: Vec<u64>,
    starts: Vec<u64>,
    lengths: Vec<u64>,
    froms: Vec<u64>,
}

impl Frame {
    fn put(&mut self, out: &mut Vec<u8>) {
        if self.tags.is_empty() {
            return;
        }
        out.number(self.tags.len() as u64);
        for numbers in [
            &mut self.tags,
            &mut self.others,
            &mut self.starts,
            &mut self.lengths,
            &mut self.froms,
        ] {
            column::put(out, numbers);
            numbers.clear();
        }
    }
}

/// Entries as frames, if that is smaller.
fn in_columns(entries: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(entries.len() / 2);
    let mut take = Take::new(entries, "edge list");
    let (mut frame, mut foretold, mut count) = (Frame::default(), Foretold::new(), 0);
    while !take.is_empty() {
        let tag = take.byte().ok()?;
        let shape = Shape::of(tag);
        frame.tags.push(u64::from(foretold.difference(tag)));
        if shape.other {
            frame.others.push(take.number().ok()?);
        }
        frame.starts.push(take.number().ok()?);
        if shape.length {
            frame.lengths.push(take.number().ok()?);
        }
        if shape.from {
            frame.froms.push(take.number().ok()?);
        }
        count += 1;
        if frame.tags.len() == FRAME {
            frame.put(&mut out);
        }
    }
    frame.put(&mut out);
    (count >= FEW && out.len() < entries.len()).then_some(out)
}

/// Where a segment's numbers come from.
trait Numbers {
    /// The next entry's tag; none after the last.
    fn tag(&mut self) -> Result<Option<u8>>;
    fn other(&mut self) -> Result<i64>;
    fn start(&mut self) -> Result<i64>;
    fn length(&mut self) -> Result<i64>;
    fn from(&mut self) -> Result<i64>;
}

impl Numbers for Take<'_> {
    fn tag(&mut self) -> Result<Option<u8>> {
        if self.is_empty() {
            return Ok(None);
        }
        self.byte().map(Some)
    }

    fn other(&mut self) -> Result<i64> {
        self.signed()
    }

    fn start(&mut self) -> Result<i64> {
        self.signed()
    }

    fn length(&mut self) -> Result<i64> {
        self.signed()
    }

    fn from(&mut self) -> Result<i64> {
        self.signed()
    }
}

/// A segment in frames, being read.
struct Frames<'b> {
    rest: Take<'b>,
    foretold: Foretold,
    tags: std::vec::IntoIter<u8>,
    others: std::vec::IntoIter<u64>,
    starts: std::vec::IntoIter<u64>,
    lengths: std::vec::IntoIter<u64>,
    froms: std::vec::IntoIter<u64>,
}

impl<'b> Frames<'b> {
    fn new(rest: Take<'b>) -> Self {
        Frames {
            rest,
            foretold: Foretold::new(),
            tags: Vec::new().into_iter(),
            others: Vec::new().into_iter(),
            starts: Vec::new().into_iter(),
            lengths: Vec::new().into_iter(),
            froms: Vec::new().into_iter(),
        }
    }

    fn next_frame(&mut self) -> Result<()> {
        let count = self.rest.small()? as usize;
        let differences = column::take(&mut self.rest, count)?;
        let tags: Vec<u8> = differences
            .into_iter()
            .map(|difference| self.foretold.tag(difference as u8))
            .collect();
        let having =
            |has: fn(&Shape) -> bool| tags.iter().filter(|tag| has(&Shape::of(**tag))).count();
        self.others = column::take(&mut self.rest, having(|shape| shape.other))?.into_iter();
        self.starts = column::take(&mut self.rest, count)?.into_iter();
        self.lengths = column::take(&mut self.rest, having(|shape| shape.length))?.into_iter();
        self.froms = column::take(&mut self.rest, having(|shape| shape.from))?.into_iter();
        self.tags = tags.into_iter();
        Ok(())
    }

    fn signed(&self, number: Option<u64>) -> Result<i64> {
        number.map(unzigzag).ok_or_else(|| self.rest.damaged())
    }
}

impl Numbers for Frames<'_> {
    fn tag(&mut self) -> Result<Option<u8>> {
        if let Some(tag) = self.tags.next() {
            return Ok(Some(tag));
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.next_frame()?;
        Ok(self.tags.next())
    }

    fn other(&mut self) -> Result<i64> {
        let number = self.others.next();
        self.signed(number)
    }

    fn start(&mut self) -> Result<i64> {
        let number = self.starts.next();
        self.signed(number)
    }

    fn length(&mut self) -> Result<i64> {
        let number = self.lengths.next();
        self.signed(number)
    }

    fn from(&mut self) -> Result<i64> {
        let number = self.froms.next();
        self.signed(number)
    }
}

/// Decodes a segment of `activity`'s onto the end of `into`; returns the number of the segment before it.
pub fn decode(
    segment: &[u8],
    activity: ActivityId,
    base: Time,
    into: &mut Stream,
) -> Result<Option<u32>> {
    let mut take = Take::new(segment, "edge list");
    let previous = take.small()?.checked_sub(1);
    if take.peek() == Some(COLUMNS) {
        take.byte()?;
        entries(Frames::new(take), activity, base, into)?;
    } else {
        entries(take, activity, base, into)?;
    }
    Ok(previous)
}

fn entries(
    mut take: impl Numbers,
    activity: ActivityId,
    base: Time,
    into: &mut Stream,
) -> Result<()> {
    let (mut entity, mut time) = (0u32, base);
    while let Some(tag) = take.tag()? {
        let kind = tag & KIND;
        if (INFORMED_BY..DERIVED).contains(&kind) {
            let other = ActivityId(moved(activity.0, take.other()?)?);
            time = time.wrapping_add(take.start()?);
            let why = INFORMED[usize::from(kind & 3)];
            let (from, to, list) = if kind < INFORMS {
                (other, activity, &mut into.informed_by)
            } else {
                (activity, other, &mut into.informs)
            };
            list.push(Inform {
                from,
                to,
                why,
                time,
            });
            continue;
        }
        entity = if tag & NEXT != 0 {
            entity.wrapping_add(1)
        } else {
            moved(entity, take.other()?)?
        };
        time = time.wrapping_add(take.start()?);
        if kind == DERIVED {
            into.derived.push(Derived {
                entity: EntityId(entity),
                from: EntityId(moved(entity, take.from()?)?),
                activity,
                time,
            });
            continue;
        }
        let end = match tag & POINT {
            0 => time.wrapping_add(take.length()?),
            _ => time,
        };
        into.edges.push(Edge {
            activity,
            entity: EntityId(entity),
            relation: *Relation::ALL
                .get(usize::from(kind / 4))
                .ok_or_else(|| Error::Damaged("edge list"))?,
            interval: Interval { start: time, end },
            certainty: if kind & 2 != 0 {
                Certainty::Seen
            } else {
                Certainty::Possible
            },
            via: if kind & 1 != 0 {
                Via::Kernel
            } else {
                Via::Library
            },
        });
    }
    Ok(())
}

fn moved(from: u32, step: i64) -> Result<u32> {
    let to = i64::from(from).checked_add(step);
    to.and_then(|to| u32::try_from(to).ok())
        .ok_or_else(|| Error::Damaged("edge list"))
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
        proptest::collection::vec(edge, 0..300).prop_map(|list| {
            list.into_iter()
                .map(|(relation, entity, start, end, seen, kernel)| Edge {
                    activity: ActivityId(5),
                    entity: EntityId(entity),
                    relation: Relation::ALL[relation],
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
    fn what_goes_on_evenly_takes_less_than_its_entries() {
        let me = ActivityId(0);
        let mut builder = Builder::new(me, 0);
        let edges: Vec<Edge> = (0..1000u32)
            .map(|i| Edge {
                activity: me,
                entity: EntityId(i),
                relation: if i % 2 == 0 {
                    Relation::Read
                } else {
                    Relation::Write
                },
                interval: Interval {
                    start: i64::from(i) * 20_000,
                    end: i64::from(i) * 20_000 + 9_000,
                },
                certainty: Certainty::Seen,
                via: Via::Library,
            })
            .collect();
        edges.iter().for_each(|edge| builder.edge(edge));
        let entries = builder.bytes.len();
        let segment = builder.finish(None).unwrap();
        assert!(
            segment.len() * 10 < entries,
            "{} of {entries}",
            segment.len()
        );
        let mut stream = Stream::default();
        decode(&segment, me, 0, &mut stream).unwrap();
        assert_eq!(stream.edges, edges);
    }

    #[test]
    fn segments_of_the_first_schema_are_still_read() {
        // Two reads, of entities 7 and 8, the second one for 5 ns.
        let segment = [3, 2 | POINT, 14, 20, 2 | NEXT, 2, 10];
        let mut stream = Stream::default();
        assert_eq!(
            decode(&segment, ActivityId(0), 100, &mut stream).unwrap(),
            Some(2)
        );
        let seen: Vec<_> = stream
            .edges
            .iter()
            .map(|e| (e.entity.0, e.interval.start, e.interval.end))
            .collect();
        assert_eq!(seen, [(7, 110, 110), (8, 111, 116)]);
    }

    #[test]
    fn relations_keep_their_numbers() {
        for (number, relation) in Relation::ALL.iter().enumerate() {
            assert_eq!(usize::from(relation.number()), number);
        }
        for (number, why) in INFORMED.iter().enumerate() {
            assert_eq!(usize::from(informed_number(*why)), number);
        }
    }
}
