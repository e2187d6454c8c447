//! Segments of an activity's stream: its edges, informs and derivations in the order they were
//! appended. Segments of several activities are compressed together (`edge_lists`).
//!
//! ```text
//! segment := [previous segment + 1]  columns
//! columns := [number of entries]  tags  others  starts  lengths  froms
//! tag     := kind | POINT (the interval's end is its start)
//!          | NEXT (the entity is the last one + 1)
//! ```
//!
//! | column | a number for | the signed number is |
//! | --- | --- | --- |
//! | tags | each entry | (one byte each, see `tag`) |
//! | others | edges and derivations without `NEXT` | entity, as a difference to the last entity |
//! | | informs | the other activity, as a difference to this one |
//! | starts | each entry | time in ns, as a difference to the last time (at first, to the run's start) |
//! | lengths | edges without `POINT` | length of the interval in ns |
//! | froms | derivations | the old entity, as a difference to the new one |

mod read;
mod tag;
#[cfg(test)]
mod tests;

use backstory_eventlog::event::Time;
use backstory_graph::model::{ActivityId, Derived, Edge, Inform};

use super::RecordWriter;

pub use read::decode;
use tag::{DERIVED, INFORMED_BY, INFORMS, NEXT, POINT};

/// Builds one segment.
#[derive(Debug)]
pub struct Builder {
    activity: i64,
    /// The last entity.
    entity: u32,
    /// The last start.
    time: Time,
    tags: Vec<u8>,
    others: Vec<u8>,
    starts: Vec<u8>,
    lengths: Vec<u8>,
    froms: Vec<u8>,
}

impl Builder {
    /// A segment of `activity`'s stream. Times are relative to `base`, the run's start.
    pub fn new(activity: ActivityId, base: Time) -> Self {
        Builder {
            activity: i64::from(activity.0),
            entity: 0,
            time: base,
            tags: Vec::new(),
            others: Vec::new(),
            starts: Vec::new(),
            lengths: Vec::new(),
            froms: Vec::new(),
        }
    }

    /// Adds an edge.
    pub fn edge(&mut self, edge: &Edge) {
        let interval = edge.interval;
        let point = if interval.end == interval.start {
            POINT
        } else {
            0
        };
        self.entity(tag::of_edge(edge) | point, edge.entity.0);
        self.start(interval.start);
        if point == 0 {
            self.lengths
                .signed(interval.end.wrapping_sub(interval.start));
        }
    }

    /// Adds an inform of which this activity is the receiver.
    pub fn informed_by(&mut self, inform: &Inform) {
        self.inform(
            INFORMED_BY + tag::of_inform(inform.why),
            inform.from,
            inform.time,
        );
    }

    /// Adds an inform of which this activity is the sender.
    pub fn informs(&mut self, inform: &Inform) {
        self.inform(INFORMS + tag::of_inform(inform.why), inform.to, inform.time);
    }

    /// Adds a derivation.
    pub fn derived(&mut self, derived: &Derived) {
        self.entity(DERIVED | POINT, derived.entity.0);
        self.start(derived.time);
        self.froms
            .signed(i64::from(derived.from.0) - i64::from(derived.entity.0));
    }

    fn inform(&mut self, tag: u8, other: ActivityId, time: Time) {
        self.tags.push(tag);
        self.others.signed(i64::from(other.0) - self.activity);
        self.start(time);
    }

    fn entity(&mut self, tag: u8, entity: u32) {
        if entity == self.entity.wrapping_add(1) {
            self.tags.push(tag | NEXT);
        } else {
            self.tags.push(tag);
            self.others
                .signed(i64::from(entity) - i64::from(self.entity));
        }
        self.entity = entity;
    }

    fn start(&mut self, time: Time) {
        self.starts.signed(time.wrapping_sub(self.time));
        self.time = time;
    }

    /// The segment, which follows the segment numbered `previous`.
    pub fn finish(self, previous: Option<u32>) -> Vec<u8> {
        let columns = [
            &self.tags,
            &self.others,
            &self.starts,
            &self.lengths,
            &self.froms,
        ];
        let length: usize = columns.iter().map(|column| column.len()).sum();
        let mut segment = Vec::with_capacity(length + 20);
        segment.number(previous.map_or(0, |p| u64::from(p) + 1));
        segment.number(self.tags.len() as u64);
        columns
            .iter()
            .for_each(|column| segment.extend_from_slice(column));
        segment
    }
}
