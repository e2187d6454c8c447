//! Decodes segments of an activity's stream.

use backstory_eventlog::event::Time;
use backstory_graph::model::{ActivityId, Derived, Edge, EntityId, Inform, Interval};

use super::tag::{self, DERIVED, INFORMS, KIND, NEXT, POINT};
use crate::codec::RecordReader;
use crate::{Error, Result, Stream};

const WHAT: &str = "list of edges";

/// Appends the entries of a segment of `activity`'s stream to `into`. Returns the number of the
/// segment before it.
pub fn decode(
    segment: &[u8],
    activity: ActivityId,
    base: Time,
    into: &mut Stream,
) -> Result<Option<u32>> {
    let mut reader = RecordReader::new(segment, WHAT);
    let previous = reader.small()?.checked_sub(1);
    let count = reader.size()?;
    let tags = reader.exactly(count)?;
    let having = |has: fn(u8) -> bool| tags.iter().filter(|tag| has(**tag)).count();
    let mut entries = Entries {
        activity,
        entity: 0,
        time: base,
        others: reader.column(having(tag::has_other))?,
        starts: reader.column(count)?,
        lengths: reader.column(having(tag::has_length))?,
        froms: reader.column(having(tag::has_from))?,
    };
    into.edges.reserve(having(tag::is_edge));
    for tag in tags {
        entries.take(*tag, into)?;
    }
    Ok(previous)
}

/// The columns of a segment, each at the number of the next entry.
struct Entries<'b> {
    activity: ActivityId,
    /// The last entity.
    entity: u32,
    /// The last start.
    time: Time,
    others: RecordReader<'b>,
    starts: RecordReader<'b>,
    lengths: RecordReader<'b>,
    froms: RecordReader<'b>,
}

impl Entries<'_> {
    /// Decodes the next entry, whose tag is `tag`.
    #[inline]
    fn take(&mut self, tag: u8, into: &mut Stream) -> Result<()> {
        if tag::is_inform(tag) {
            return self.inform(tag, into);
        }
        self.entity = match tag & NEXT {
            0 => moved(self.entity, self.others.signed()?)?,
            _ => self.entity.wrapping_add(1),
        };
        let start = self.start()?;
        if tag & KIND == DERIVED {
            into.derived.push(Derived {
                entity: EntityId(self.entity),
                from: EntityId(moved(self.entity, self.froms.signed()?)?),
                activity: self.activity,
                time: start,
            });
            return Ok(());
        }
        let end = match tag & POINT {
            0 => start.wrapping_add(self.lengths.signed()?),
            _ => start,
        };
        let (relation, certainty, via) = tag::edge(tag).ok_or(Error::Damaged(WHAT))?;
        into.edges.push(Edge {
            activity: self.activity,
            entity: EntityId(self.entity),
            relation,
            interval: Interval { start, end },
            certainty,
            via,
        });
        Ok(())
    }

    fn inform(&mut self, tag: u8, into: &mut Stream) -> Result<()> {
        let other = ActivityId(moved(self.activity.0, self.others.signed()?)?);
        let (from, to, list) = match tag & KIND < INFORMS {
            true => (other, self.activity, &mut into.informed_by),
            false => (self.activity, other, &mut into.informs),
        };
        let why = tag::why(tag);
        self.time = self.time.wrapping_add(self.starts.signed()?);
        let time = self.time;
        list.push(Inform {
            from,
            to,
            why,
            time,
        });
        Ok(())
    }

    fn start(&mut self) -> Result<Time> {
        self.time = self.time.wrapping_add(self.starts.signed()?);
        Ok(self.time)
    }
}

fn moved(from: u32, step: i64) -> Result<u32> {
    let to = i64::from(from).checked_add(step);
    to.and_then(|to| u32::try_from(to).ok())
        .ok_or(Error::Damaged(WHAT))
}
