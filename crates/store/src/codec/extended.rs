//! Blocks of extended records: what applications and the fold say about activities.
//!
//! ```text
//! record := [number of records]  activities  times  kinds  lengths  kinds' lengths
//!           the kinds' bytes  the payloads' bytes
//! ```
//!
//! | column | a number for each record | the number is |
//! | --- | --- | --- |
//! | activities | the activity | a signed difference to the one before |
//! | times | the time in ns | a signed difference to the time before, at first to the run's start |
//! | kinds | the kind | 0: the next kind of the block; n: its kind numbered n - 1 |
//! | lengths | the payload | its bytes |

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::ActivityId;

use super::{RecordReader, RecordWriter, block};
use crate::Result;

/// Most records in a block.
pub const BLOCK: u32 = 1024;

/// A block with so many bytes of payloads is full.
const FULL: usize = 64 << 10;

/// The word for a block in messages about damage.
const WHAT: &str = "list of extended records";

/// An extended record: its activity, its time, its kind and its payload.
pub type ExtendedRecord = (ActivityId, Time, Bytes, Bytes);

/// Builds a block.
pub struct Builder {
    /// Activities, times, kinds, lengths.
    columns: [Vec<u8>; 4],
    kinds: Vec<Bytes>,
    payloads: Vec<u8>,
    count: u32,
    activity: u32,
    time: Time,
}

impl Builder {
    /// A block of a run that started at `base`.
    pub fn new(base: Time) -> Builder {
        Builder {
            columns: Default::default(),
            kinds: Vec::new(),
            payloads: Vec::new(),
            count: 0,
            activity: 0,
            time: base,
        }
    }

    /// Adds a record.
    pub fn push(&mut self, activity: ActivityId, time: Time, kind: &[u8], payload: &[u8]) {
        let [activities, times, kinds, lengths] = &mut self.columns;
        activities.signed(i64::from(activity.0) - i64::from(self.activity));
        times.signed(time.wrapping_sub(self.time));
        (self.activity, self.time) = (activity.0, time);
        match self.kinds.iter().position(|known| **known == *kind) {
            Some(known) => kinds.number(known as u64 + 1),
            None => {
                kinds.number(0);
                self.kinds.push(kind.into());
            }
        }
        lengths.number(payload.len() as u64);
        self.payloads.extend_from_slice(payload);
        self.count += 1;
    }

    /// The number of records.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether the next record belongs into another block.
    pub fn is_full(&self) -> bool {
        self.count == BLOCK || self.payloads.len() >= FULL
    }

    /// The block.
    pub fn finish(self) -> Vec<u8> {
        let mut record = Vec::with_capacity(self.payloads.len() * 2);
        record.number(u64::from(self.count));
        for column in &self.columns {
            record.extend_from_slice(column);
        }
        let kinds = self.kinds.iter();
        kinds
            .clone()
            .for_each(|kind| record.number(kind.len() as u64));
        kinds.for_each(|kind| record.extend_from_slice(kind));
        record.extend_from_slice(&self.payloads);
        let mut out = Vec::with_capacity(record.len() / 2);
        block::put(&mut out, &record);
        out
    }
}

/// Decodes a block of a run that started at `base`.
pub fn decode(block: &[u8], base: Time) -> Result<Vec<ExtendedRecord>> {
    let record = block::take(&mut RecordReader::new(block, WHAT))?;
    let mut reader = RecordReader::new(&record, WHAT);
    let count = reader.size()?;
    if count > BLOCK as usize {
        return Err(reader.damaged());
    }
    let mut activities = reader.column(count)?;
    let mut times = reader.column(count)?;
    let mut kind_column = reader.column(count)?;
    let mut lengths = reader.column(count)?;
    let kinds = kinds(&mut reader, kind_column, count)?;
    let (mut activity, mut time, mut next) = (0i64, base, 0);
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        activity = activity.wrapping_add(activities.signed()?);
        time = time.wrapping_add(times.signed()?);
        let kind = match kind_column.size()? {
            0 => {
                next += 1;
                next - 1
            }
            known => known - 1,
        };
        let kind = kinds.get(kind).ok_or_else(|| reader.damaged())?.clone();
        let payload = reader.exactly(lengths.size()?)?;
        let id = u32::try_from(activity).map_err(|_| reader.damaged())?;
        found.push((ActivityId(id), time, kind, payload.into()));
    }
    Ok(found)
}

/// Takes off the kinds of a block.
fn kinds(
    reader: &mut RecordReader<'_>,
    column: RecordReader<'_>,
    count: usize,
) -> Result<Vec<Bytes>> {
    let mut column = column;
    let mut new = 0;
    for _ in 0..count {
        new += usize::from(column.number()? == 0);
    }
    let mut lengths = reader.column(new)?;
    (0..new)
        .map(|_| Ok(reader.exactly(lengths.size()?)?.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_come_back_as_they_were(
            records in proptest::collection::vec(
                (any::<u32>(), any::<i64>(), prop_oneof![Just("kind"), Just(""), Just("other")], any::<Vec<u8>>()),
                0..50,
            ),
            base: i64,
        ) {
            let mut builder = Builder::new(base);
            for (activity, time, kind, payload) in &records {
                builder.push(ActivityId(*activity), *time, kind.as_bytes(), payload);
            }
            prop_assert_eq!(builder.count() as usize, records.len());
            let back = decode(&builder.finish(), base).unwrap();
            prop_assert_eq!(back.len(), records.len());
            for (got, wanted) in back.iter().zip(&records) {
                let (activity, time, kind, payload) = wanted;
                prop_assert_eq!((got.0, got.1), (ActivityId(*activity), *time));
                prop_assert_eq!((&*got.2, &*got.3), (kind.as_bytes(), &payload[..]));
            }
        }
    }
}
