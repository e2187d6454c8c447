//! Who touched which entities of a block: for each entity its activities, ascending.
//!
//! ```text
//! segment := previous-segment+1  (list* | COLUMNS how many lists  positions  lengths  activities)
//! list    := position in the block, delta  length in bytes  (activity, delta << 1 | generated)*
//! ```
//!
//! Where hardly any entity has more than one activity, the lists stand in three columns: positions (each as the difference to the one before - 1),
//! lengths (how many activities - 1), and what would stand in the lists, the first activity of each list as the zigzagged difference to that of
//! the list before.

use super::column::{self, Reader};
use super::{Put, Take, unzigzag, zigzag};
use crate::Result;

/// Stands where the first list's position would: a block has fewer entities.
const COLUMNS: u64 = 128;
/// Fewer lists than this are not worth columns.
const FEW: usize = 16;
const WHAT: &str = "list of activities";

/// One mention: position of the entity in its block, activity, whether it was generated.
pub type Mention = (u8, u32, bool);

/// Encodes mentions (any order, repeats allowed) into a segment.
pub fn encode(mentions: &mut Vec<Mention>, previous: Option<u32>) -> Vec<u8> {
    mentions.sort_unstable();
    mentions.dedup();
    let mut segment = Vec::with_capacity(mentions.len() * 2 + 4);
    segment.number(previous.map_or(0, |p| u64::from(p) + 1));
    if let Some(columns) = in_columns(mentions) {
        segment.number(COLUMNS);
        segment.extend_from_slice(&columns);
        return segment;
    }
    let (mut last, mut list) = (0u8, Vec::new());
    for group in mentions.chunk_by(|a, b| a.0 == b.0) {
        list.clear();
        let mut at = 0u32;
        for &(_, activity, generated) in group {
            list.number(u64::from(activity - at) << 1 | u64::from(generated));
            at = activity;
        }
        segment.number(u64::from(group[0].0 - last));
        segment.bytes(&list);
        last = group[0].0;
    }
    segment
}

/// Sorted mentions in columns, if they are many and mostly one for each entity: then all are soon read, and small.
fn in_columns(mentions: &[Mention]) -> Option<Vec<u8>> {
    let lists = mentions.chunk_by(|a, b| a.0 == b.0).count();
    if lists < FEW || mentions.len() > lists * 2 {
        return None;
    }
    let (mut positions, mut lengths, mut activities) = (Vec::new(), Vec::new(), Vec::new());
    let (mut next, mut first) = (0u8, 0u32);
    for group in mentions.chunk_by(|a, b| a.0 == b.0) {
        positions.push(u64::from(group[0].0 - next));
        next = group[0].0 + 1;
        lengths.push(group.len() as u64 - 1);
        let step = zigzag(i64::from(group[0].1) - i64::from(first));
        first = group[0].1;
        activities.push(step << 1 | u64::from(group[0].2));
        for pair in group.windows(2) {
            activities.push(u64::from(pair[1].1 - pair[0].1) << 1 | u64::from(pair[1].2));
        }
    }
    let mut out = Vec::new();
    out.number(lists as u64);
    for numbers in [&positions, &lengths, &activities] {
        column::put(&mut out, numbers);
    }
    Some(out)
}

/// The same as [`scan`], of lists in columns.
fn scan_columns(take: &mut Take<'_>, only: Option<u8>, into: &mut Vec<Mention>) -> Result<()> {
    let lists = take.small()? as usize;
    let mut positions = Reader::new(take, lists, WHAT)?;
    let lengths = column::take(take, lists)?;
    let count = lengths
        .iter()
        .fold(lists as u64, |all, length| all.saturating_add(*length));
    let mut activities = Reader::new(take, usize::try_from(count).unwrap_or(usize::MAX), WHAT)?;
    let (mut next, mut first) = (0u64, 0i64);
    for length in lengths {
        let at = next.saturating_add(positions.number()?);
        next = at.saturating_add(1);
        let at = position(at)?;
        let step = activities.number()?;
        first = first.saturating_add(unzigzag(step >> 1));
        let mut activity = first;
        let wanted = only.is_none_or(|only| only == at);
        if wanted {
            into.push((at, id(activity)?, step & 1 != 0));
        }
        for _ in 0..length {
            let step = activities.number()?;
            activity = activity.saturating_add((step >> 1) as i64);
            if wanted {
                into.push((at, id(activity)?, step & 1 != 0));
            }
        }
    }
    Ok(())
}

fn position(at: u64) -> Result<u8> {
    u8::try_from(at).map_err(|_| crate::Error::Damaged(WHAT))
}

fn id(activity: i64) -> Result<u32> {
    u32::try_from(activity).map_err(|_| crate::Error::Damaged(WHAT))
}

/// Adds the mentions of a segment to `into`, of all entities or of the one at a position; returns the number of the segment before
/// this one.
pub fn scan(segment: &[u8], only: Option<u8>, into: &mut Vec<Mention>) -> Result<Option<u32>> {
    let mut take = Take::new(segment, WHAT);
    let previous = take.small()?.checked_sub(1);
    if Take::new(take.rest(), WHAT).number().ok() == Some(COLUMNS) {
        take.number()?;
        scan_columns(&mut take, only, into)?;
        return Ok(previous);
    }
    let mut at = 0u64;
    while !take.is_empty() {
        at = at.saturating_add(take.number()?);
        let mut list = Take::new(take.bytes()?, WHAT);
        let at = position(at)?;
        if only.is_some_and(|only| only != at) {
            continue;
        }
        let mut activity = 0i64;
        while !list.is_empty() {
            let step = list.number()?;
            activity = activity.saturating_add((step >> 1) as i64);
            into.push((at, id(activity)?, step & 1 != 0));
        }
    }
    Ok(previous)
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
            let segment = encode(&mut encoded, None);
            let mut got = Vec::new();
            prop_assert_eq!(scan(&segment, None, &mut got).unwrap(), None);
            let mut wanted = mentions;
            wanted.sort_unstable();
            wanted.dedup();
            prop_assert_eq!(&got, &wanted);
            for position in 0..128 {
                got.clear();
                scan(&segment, Some(position), &mut got).unwrap();
                prop_assert!(got.iter().eq(wanted.iter().filter(|mention| mention.0 == position)));
            }
        }
    }
}
