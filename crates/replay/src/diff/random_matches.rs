//! Matches files of two sides whose names differ each time.
//!
//! In: two sides. Out: the second side with the names of the first in its files and arguments. Only
//! names that one side alone has are matched: by their form, then by their shape, and in order of
//! time.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use backstory_eventlog::event::Time;

use super::random_names::{is_alike, mask, shape};
use super::{DiffSide, SideFile};

/// Gives the files of `b` the names that they have in `a`.
pub(super) fn align(a: &DiffSide, b: &mut DiffSide) {
    let mut renamed: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let kinds = [(&a.inputs, &b.inputs), (&a.outputs, &b.outputs)];
    for (old, new) in kinds {
        let (mut theirs, mut own) = (alone(old, new), alone(new, old));
        for (name, of) in same_forms(&own, &b.processes, &theirs, &a.processes) {
            renamed.insert(name, of);
        }
        let matched: HashSet<&[u8]> = renamed.values().map(Vec::as_slice).collect();
        theirs.retain(|(_, name)| !matched.contains(name));
        own.retain(|(_, name)| !renamed.contains_key(*name));
        let rest = same_shapes(&own, &theirs);
        renamed.extend(rest);
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

/// A name and when the file was first used.
type NameAt<'a> = (Time, &'a [u8]);

/// The names that only `own` has, in order of time.
fn alone<'a>(
    own: &'a BTreeMap<Vec<u8>, SideFile>,
    other: &BTreeMap<Vec<u8>, SideFile>,
) -> Vec<NameAt<'a>> {
    let alone = own.iter().filter(|(name, _)| !other.contains_key(*name));
    let mut names: Vec<NameAt> = alone.map(|(name, file)| (file.at, &**name)).collect();
    names.sort_small();
    names
}

/// Pairs of an own name and another's of the same form, each form in order of time.
fn same_forms(
    own: &[NameAt],
    own_processes: &HashSet<u32>,
    theirs: &[NameAt],
    their_processes: &HashSet<u32>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut by_form: HashMap<Vec<u8>, VecDeque<&[u8]>> = HashMap::new();
    for (_, name) in theirs {
        if let Some(form) = mask(name, their_processes) {
            by_form.entry(form).or_default().push_back(name);
        }
    }
    let pair = |(_, name): &NameAt| {
        let theirs = by_form.get_mut(&mask(name, own_processes)?)?.pop_front()?;
        Some((name.to_vec(), theirs.to_vec()))
    };
    own.iter().filter_map(pair).collect()
}

/// Pairs of an own name and another's, of which only one shows that it is random.
fn same_shapes(own: &[NameAt], theirs: &[NameAt]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut by_shape: HashMap<Vec<u8>, Vec<&[u8]>> = HashMap::new();
    for (_, name) in theirs {
        by_shape.entry(shape(name)).or_default().push(name);
    }
    let pair = |(_, name): &NameAt| {
        let theirs = by_shape.get_mut(&shape(name))?;
        let at = theirs.iter().position(|theirs| is_alike(name, theirs))?;
        Some((name.to_vec(), theirs.remove(at).to_vec()))
    };
    own.iter().filter_map(pair).collect()
}
