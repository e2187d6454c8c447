//! Matches files beside the directories of two runs by their place: a run in `/a/build` and a run
//! in `/b/build` both write `../out/x`.
//!
//! In: two sides. Out: both sides, with names such as `../out/x` for the files, directories and
//! arguments that have the same place from the directories of both. An absolute name that both
//! sides have stays: both runs used the same file. Names of the system stay, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backstory_workflow::paths::is_system;

use super::DiffSide;
use super::random_names::shared;

/// Gives files at the same place beside the directories of both sides the same name.
pub(super) fn align(a: &mut DiffSide, b: &mut DiffSide) {
    let (old, new) = (absolute_names(a), absolute_names(b));
    let mut places: HashMap<Vec<u8>, &Vec<u8>> = HashMap::new();
    for name in old.difference(&new) {
        if let Some(place) = place(name, a.base(), b.base()) {
            places.insert(place, name);
        }
    }
    let (mut of_a, mut of_b) = (HashMap::new(), HashMap::new());
    for name in new.difference(&old) {
        if let Some(place) = place(name, b.base(), a.base())
            && let Some(theirs) = places.get(&place)
        {
            of_a.insert((*theirs).clone(), place.clone());
            of_b.insert(name.clone(), place);
        }
    }
    rename(a, &of_a);
    rename(b, &of_b);
}

/// The absolute names of files, directories and arguments.
fn absolute_names(side: &DiffSide) -> BTreeSet<Vec<u8>> {
    let files = side.inputs.keys().chain(side.outputs.keys());
    let arguments = side.commands.iter().flat_map(|command| &command.argv);
    let directories = side.commands.iter().map(|command| &command.cwd);
    let all = files.chain(side.listings.keys()).chain(arguments);
    let all = all.chain(directories);
    let absolute = all.filter(|name| name.starts_with(b"/") && !is_system(name));
    absolute.cloned().collect()
}

/// The path of `name` from the directory `base`, if both lie in a directory that is no parent of
/// the directory `other`.
fn place(name: &[u8], base: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let shared = shared_components(name, base);
    if shared <= shared_components(other, base) {
        return None;
    }
    let up = components(base).skip(shared).map(|_| &b".."[..]);
    let down = components(name).skip(shared);
    Some(up.chain(down).collect::<Vec<_>>().join(&b'/'))
}

/// The number of directories at the beginning that two paths share.
fn shared_components(one: &[u8], other: &[u8]) -> usize {
    let both = components(one).zip(components(other));
    both.take_while(|(one, other)| one == other).count()
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
        .filter(|part| !part.is_empty())
}

fn rename(side: &mut DiffSide, names: &HashMap<Vec<u8>, Vec<u8>>) {
    let new_name = |name: Vec<u8>| names.get(&name).cloned().unwrap_or(name);
    fn renamed<F>(
        files: &mut BTreeMap<Vec<u8>, F>,
        new_name: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> BTreeMap<Vec<u8>, F> {
        let files = std::mem::take(files).into_iter();
        files.map(|(name, file)| (new_name(name), file)).collect()
    }
    side.inputs = renamed(&mut side.inputs, new_name);
    side.outputs = renamed(&mut side.outputs, new_name);
    side.listings = renamed(&mut side.listings, new_name);
    // Random parts of an argument are replaced already.
    let shown = |name: &Vec<u8>| shared(name, &|_| false, &[]);
    let words: HashMap<Vec<u8>, &Vec<u8>> =
        names.iter().map(|(name, new)| (shown(name), new)).collect();
    for command in &mut side.commands {
        command.cwd = new_name(std::mem::take(&mut command.cwd));
        for word in &mut command.argv {
            if let Some(new) = words.get(word) {
                word.clone_from(new);
            }
        }
    }
}
