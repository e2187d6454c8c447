//! Files of a lineage without a byte of each other, where the byte engine followed their run.
//!
//! In: an account. Out: the files behind a subject that gave it no byte, or the files made from it
//! that have no byte of it.
//!
//! Invariant: such a file stays in the view. A branch may have depended on it.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use backstory_account::{Account, PathNode};
use backstory_graph::model::EntityKind;
use backstory_query::{ByteSources, Direction, RefinedRuns};
use backstory_store::EntityKey;

/// The most results whose bytes are looked up.
const MOST: usize = 64;

/// The files of the chain, by their indexes, of which it is certain. The marks are an addition to
/// another answer, so a trouble is not reported.
pub fn without_bytes(runs: &mut RefinedRuns<'_>, account: &Account) -> BTreeSet<usize> {
    if runs.is_empty() {
        return BTreeSet::new();
    }
    let commands = || account.chain.iter().map(|&at| &account.commands[at]);
    let is_own = |at: &usize| account.files[*at].own && account.files[*at].kind == EntityKind::File;
    if account.direction == Direction::Forth {
        let roots = account.roots.iter();
        let subject: BTreeSet<Vec<u8>> =
            roots.map(|&at| account.files[at].path.to_vec()).into_tree();
        let made = commands().flat_map(|command| &command.writes).copied();
        let made: BTreeSet<usize> = made.filter(is_own).into_tree();
        let has_none = |at: &usize| {
            let sources = sources(runs, &account.files[*at]);
            sources.and_then(|sources| sources.has_bytes_of(&subject)) == Some(false)
        };
        return made.into_iter().take(MOST).filter(has_none).into_tree();
    }
    let subject = account.roots.first().map(|&at| &account.files[at]);
    let Some(sources) = subject.and_then(|subject| sources(runs, subject)) else {
        return BTreeSet::new();
    };
    // The engine counts the bytes of programs as constants.
    let programs = commands().flat_map(|command| &command.executes).copied();
    let programs: BTreeSet<usize> = programs.into_tree();
    let used = commands().flat_map(|command| &command.reads).copied();
    used.filter(|at| is_own(at) && !programs.contains(at))
        .filter(|&at| sources.has_none_of(&account.files[at].path))
        .into_tree()
}

/// The sources of the bytes of a version. The engine knows only the last one in a run.
fn sources(runs: &mut RefinedRuns<'_>, file: &PathNode) -> Option<ByteSources> {
    let version = EntityKey(file.entity);
    let is_last = runs.store().entity(version).ok()?.last;
    let sources = is_last.then(|| ByteSources::of_version(runs, version));
    sources?.ok().flatten()
}
