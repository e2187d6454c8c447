//! Segments that list, for each entity of a block, the activities that used, generated or derived
//! from it.
//!
//! ```text
//! segment := [previous segment + 1]  block of columns
//! columns := [number of entities]  positions  counts  first activities  further activities
//! ```
//!
//! | column | a number for | the number is |
//! | --- | --- | --- |
//! | positions | each entity | its position in its block, as the difference to the position before, less 1 |
//! | counts | each entity | how many further activities |
//! | first activities | each entity | the lowest activity, as a signed difference to that of the entity before |
//! | further activities | each of them, ascending | the difference to the activity before |
//!
//! The lowest bit of an activity's number says whether the activity generated the entity.

use super::{RecordReader, RecordWriter, block, unzigzag, zigzag};
use crate::{Error, Result};

const WHAT: &str = "list of activities";

/// One mention: position of the entity in its block, activity, whether the activity generated the
/// entity.
pub type Mention = (u8, u32, bool);

/// The mentions that a question needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mentioned {
    /// Every activity.
    All,
    /// Those that generated the entity: for a library, few of thousands.
    Generated,
}

/// Encodes mentions (in any order, repeats allowed) as a segment. Sorts `mentions`.
pub fn encode(mentions: &mut Vec<Mention>, previous: Option<u32>) -> Vec<u8> {
    mentions.sort_unstable();
    mentions.dedup();
    let mut columns = [const { Vec::new() }; 4];
    let [positions, counts, firsts, further] = &mut columns;
    let (mut next, mut last, mut entities) = (0, 0, 0u64);
    for group in mentions.chunk_by(|a, b| a.0 == b.0) {
        let (position, activity, generated) = group[0];
        positions.number(u64::from(position - next));
        next = position + 1;
        counts.number(group.len() as u64 - 1);
        let step = zigzag(i64::from(activity) - last);
        last = i64::from(activity);
        firsts.number(step << 1 | u64::from(generated));
        for pair in group.windows(2) {
            further.number(u64::from(pair[1].1 - pair[0].1) << 1 | u64::from(pair[1].2));
        }
        entities += 1;
    }
    let mut record = Vec::with_capacity(mentions.len() * 2 + 10);
    record.number(entities);
    columns
        .iter()
        .for_each(|column| record.extend_from_slice(column));
    let mut segment = Vec::with_capacity(record.len());
    segment.number(previous.map_or(0, |p| u64::from(p) + 1));
    block::put(&mut segment, &record);
    segment
}

/// Adds the mentions of a segment to `into`: of all entities, or of the one at position `only`.
/// Returns the number of the segment before this one.
pub fn scan(
    segment: &[u8],
    only: Option<u8>,
    which: Mentioned,
    into: &mut Vec<Mention>,
) -> Result<Option<u32>> {
    let wanted = |step: u64| which == Mentioned::All || step & 1 != 0;
    let mut reader = RecordReader::new(segment, WHAT);
    let previous = reader.small()?.checked_sub(1);
    let record = block::take(&mut reader)?;
    let mut reader = RecordReader::new(&record, WHAT);
    let entities = reader.size()?;
    let mut positions = reader.column(entities)?;
    let mut counts = reader.column(entities)?;
    let mut firsts = reader.column(entities)?;
    let mut further = reader;
    if only.is_none() && which == Mentioned::All {
        into.reserve(entities);
    }
    let (mut next, mut first, mut skipped) = (0u64, 0i64, 0usize);
    for _ in 0..entities {
        let position = next.saturating_add(positions.number()?);
        next = position.saturating_add(1);
        let position = u8::try_from(position).map_err(|_| positions.damaged())?;
        let count = counts.size()?;
        let step = firsts.number()?;
        first = first.saturating_add(unzigzag(step >> 1));
        if only.is_some_and(|only| only < position) {
            break;
        }
        if only.is_some_and(|only| only != position) {
            skipped = skipped.saturating_add(count);
            continue;
        }
        further.column(std::mem::take(&mut skipped))?;
        if wanted(step) {
            into.push((position, activity(first)?, step & 1 != 0));
        }
        let mut last = first;
        for _ in 0..count {
            let step = further.number()?;
            last = last.saturating_add((step >> 1) as i64);
            if wanted(step) {
                into.push((position, activity(last)?, step & 1 != 0));
            }
        }
    }
    Ok(previous)
}

fn activity(id: i64) -> Result<u32> {
    u32::try_from(id).map_err(|_| Error::Damaged(WHAT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn mentions_come_back_once_each(
            mentions in proptest::collection::vec((0u8..128, prop_oneof![0u32..4, any::<u32>()], any::<bool>()), 0..300),
            once: bool,
        ) {
            let mut mentions = mentions;
            if once {
                mentions.sort_unstable();
                mentions.dedup_by_key(|mention| mention.0);
            }
            let mut encoded = mentions.clone();
            let segment = encode(&mut encoded, Some(7));
            let mut got = Vec::new();
            prop_assert_eq!(scan(&segment, None, Mentioned::All, &mut got).unwrap(), Some(7));
            let mut wanted = mentions;
            wanted.sort_unstable();
            wanted.dedup();
            prop_assert_eq!(&got, &wanted);
            for position in 0..128 {
                got.clear();
                scan(&segment, Some(position), Mentioned::All, &mut got).unwrap();
                prop_assert!(got.iter().eq(wanted.iter().filter(|mention| mention.0 == position)));
            }
            got.clear();
            scan(&segment, None, Mentioned::Generated, &mut got).unwrap();
            prop_assert!(got.iter().eq(wanted.iter().filter(|mention| mention.2)));
        }
    }
}
