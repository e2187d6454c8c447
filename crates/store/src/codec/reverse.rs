//! Who touched which entities of a block: for each entity its activities, ascending.
//!
//! ```text
//! segment := previous-segment+1  list*
//! list    := position in the block, delta  length in bytes  (activity, delta << 1 | generated)*
//! ```

use backstory_graph::model::ActivityId;

use super::{Put, Take};
use crate::Result;

/// One mention: position of the entity in its block, activity, whether it was generated.
pub type Mention = (u8, u32, bool);

/// Encodes mentions (any order, repeats allowed) into a segment.
pub fn encode(mentions: &mut Vec<Mention>, previous: Option<u32>) -> Vec<u8> {
    mentions.sort_unstable();
    mentions.dedup();
    let mut segment = Vec::with_capacity(mentions.len() * 2 + 4);
    segment.number(previous.map_or(0, |p| u64::from(p) + 1));
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

/// Adds the mentions of the entity at `position` to `into`; returns the number of the segment before this one.
pub fn of(segment: &[u8], position: u8, into: &mut Vec<(ActivityId, bool)>) -> Result<Option<u32>> {
    let mut take = Take::new(segment, "list of activities");
    let previous = take.small()?.checked_sub(1);
    let mut at = 0u64;
    while !take.is_empty() {
        at = at.saturating_add(take.number()?);
        let list = take.bytes()?;
        if at < u64::from(position) {
            continue;
        }
        if at == u64::from(position) {
            let mut take = Take::new(list, "list of activities");
            let mut activity = 0u64;
            while !take.is_empty() {
                let step = take.number()?;
                activity = activity.saturating_add(step >> 1);
                let id = u32::try_from(activity).map_err(|_| take.damaged())?;
                into.push((ActivityId(id), step & 1 != 0));
            }
        }
        break;
    }
    Ok(previous)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn mentions_come_back_once_each(mentions: Vec<(u8, u32, bool)>, position: u8) {
            let mut encoded = mentions.clone();
            let segment = encode(&mut encoded, None);
            let mut got = Vec::new();
            prop_assert_eq!(of(&segment, position, &mut got).unwrap(), None);
            let mut wanted: Vec<_> = mentions
                .iter()
                .filter(|m| m.0 == position)
                .map(|m| (ActivityId(m.1), m.2))
                .collect();
            wanted.sort_unstable();
            wanted.dedup();
            prop_assert_eq!(got, wanted);
        }
    }
}
