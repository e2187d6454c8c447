//! Matches files of two sides whose names differ each time.
//!
//! In: two sides. Out: the second side with the names of the first in its files and arguments. Only
//! names that one side alone has are matched: by their form, and in order of time.

use std::collections::{BTreeMap, HashMap};

use backstory_eventlog::event::Time;

use super::random_names::mask;
use super::{DiffSide, SideFile};

/// Gives the files of `b` the names that they have in `a`.
pub(super) fn align(a: &DiffSide, b: &mut DiffSide) {
    let mut renamed: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for is_output in [false, true] {
        let of = |side: &DiffSide| match is_output {
            true => side.outputs.clone(),
            false => side.inputs.clone(),
        };
        let (old, new) = (of(a), of(b));
        let by_form = |own: &BTreeMap<_, _>, other: &BTreeMap<_, _>, side: &DiffSide| {
            forms(own, other, &|name| mask(name, &side.processes))
        };
        let matching = by_form(&old, &new, a);
        for (form, names) in by_form(&new, &old, b) {
            let theirs = matching.get(&form).into_iter().flatten();
            for ((_, theirs), (_, own)) in theirs.zip(names) {
                renamed.insert(own, theirs.clone());
            }
        }
    }
    for files in [&mut b.inputs, &mut b.outputs] {
        for (own, theirs) in &renamed {
            if let Some(file) = files.remove(own) {
                files.insert(theirs.clone(), file);
            }
        }
    }
    if renamed.is_empty() {
        return;
    }
    for command in &mut b.commands {
        for arg in &mut command.argv {
            let start = if arg.starts_with(b"./") { 2 } else { 0 };
            if let Some(theirs) = renamed.get(&arg[start..]) {
                arg.splice(start.., theirs.iter().copied());
            }
        }
    }
}

/// The names that only `own` has, by their form, in order of time.
fn forms(
    own: &BTreeMap<Vec<u8>, SideFile>,
    other: &BTreeMap<Vec<u8>, SideFile>,
    mask: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
) -> BTreeMap<Vec<u8>, Vec<(Time, Vec<u8>)>> {
    let mut forms: BTreeMap<Vec<u8>, Vec<(Time, Vec<u8>)>> = BTreeMap::new();
    let alone = own.iter().filter(|(name, _)| !other.contains_key(*name));
    for (name, file) in alone {
        if let Some(form) = mask(name) {
            forms.entry(form).or_default().push((file.at, name.clone()));
        }
    }
    forms.values_mut().for_each(|names| names.sort());
    forms
}
