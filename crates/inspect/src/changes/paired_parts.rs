//! Pairs the parts of two contents.

use std::collections::HashMap;

use backstory_comparison::operations;
use similar::DiffOp;

use crate::facts::{FilePart, PartList};

/// Parts of both contents that belong together, and parts that only one has.
#[derive(Default)]
pub(super) struct PairedParts<'p> {
    pub(super) removed: Vec<&'p FilePart>,
    pub(super) added: Vec<&'p FilePart>,
    pub(super) changed: Vec<(&'p FilePart, &'p FilePart)>,
    pub(super) is_moved: bool,
}

/// Pairs parts of lists whose names are unique.
pub(super) fn by_name<'p>(old: &'p PartList, new: &'p PartList) -> PairedParts<'p> {
    let before: HashMap<&str, (usize, &FilePart)> = old
        .parts
        .iter()
        .enumerate()
        .map(|(at, part)| (&*part.name, (at, part)))
        .collect();
    let after: HashMap<&str, ()> = new.parts.iter().map(|part| (&*part.name, ())).collect();
    let mut paired = PairedParts::default();
    let mut last = None;
    for part in &new.parts {
        match before.get(&*part.name) {
            None => paired.added.push(part),
            Some(&(at, other)) => {
                paired.is_moved |= last.is_some_and(|last| last > at);
                last = Some(at);
                if other.value != part.value {
                    paired.changed.push((other, part));
                }
            }
        }
    }
    let gone = old.parts.iter();
    paired.removed = gone
        .filter(|part| !after.contains_key(&*part.name))
        .collect();
    paired
}

/// Pairs parts of other lists by their values and places.
pub(super) fn by_value<'p>(old: &'p PartList, new: &'p PartList) -> PairedParts<'p> {
    let keys = |list: &PartList| -> Vec<String> {
        list.parts
            .iter()
            .map(|part| part.value.to_string())
            .collect()
    };
    let mut paired = PairedParts::default();
    for op in operations(&keys(old), &keys(new)) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (gone, come) = (&old.parts[op.old_range()], &new.parts[op.new_range()]);
        let both = gone.len().min(come.len());
        paired.changed.extend(gone.iter().zip(come));
        paired.removed.extend(&gone[both..]);
        paired.added.extend(&come[both..]);
    }
    paired
}
