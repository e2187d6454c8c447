//! Files that were renamed because a directory above them was.
//!
//! In: a store and a path. Out: the recorded renames of directories above the path, as the renames
//! of the path itself that they were. A run that renames a directory need not have used the files
//! below it.

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Derived, Entity, Relation};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store, Stream, may_be_directory};

use crate::Result;

/// A rename of a directory above a path.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryMove {
    /// When the directory was renamed.
    pub time: Time,
    /// The activity that renamed it.
    pub doer: ActivityKey,
    /// The path before.
    pub from: Bytes,
    /// The path afterwards.
    pub to: Bytes,
}

/// True if an activity gave a version its name by the rename of a directory above it.
pub fn moved_with_directory(
    store: &dyn Store,
    run: RunKey,
    stream: &Stream,
    derived: &Derived,
) -> Result<bool> {
    let path = |entity| Result::Ok(store.entity(EntityKey::new(run, entity))?.path);
    let (from, to) = (path(derived.from)?, path(derived.entity)?);
    for edge in &stream.edges {
        // The renamed path may not be known to be a directory.
        if edge.relation == Relation::Rename
            && edge.entity != derived.entity
            && let Some(rest) = below(&to, &path(edge.entity)?)
            && from.ends_with(rest)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The renames of directories above a path, to it and away from it, in no order.
pub fn directory_moves(store: &dyn Store, path: &[u8]) -> Result<Vec<DirectoryMove>> {
    let mut found = Vec::new();
    let slashes = (1..path.len()).filter(|&at| path[at] == b'/');
    // Nearly every run looks at the directories in the root directory, and none renames them.
    for end in slashes.skip(1) {
        let (directory, rest) = path.split_at(end);
        for key in store.rename_candidates(directory)? {
            moves_of(store, key, rest, &mut found)?;
        }
    }
    Ok(found)
}

/// Adds the renames from and to one version of a directory.
fn moves_of(
    store: &dyn Store,
    key: EntityKey,
    rest: &[u8],
    found: &mut Vec<DirectoryMove>,
) -> Result<()> {
    let entity = |id| store.entity(EntityKey::new(key.run(), id));
    let may_be_directory = |one: &Entity| may_be_directory(one.kind, one.ident.as_ref());
    let moved = |directory: &Entity| -> Bytes { [&directory.path, rest].concat().into() };
    for activity in store.generators(key)? {
        let doer = ActivityKey::new(key.run(), activity);
        let stream = store.stream(doer)?;
        let is_it = |one: &&Derived| one.entity == key.local() || one.from == key.local();
        for derived in stream.derived.iter().filter(is_it) {
            let is_renamed = stream
                .edges
                .iter()
                .any(|edge| edge.entity == derived.entity && edge.relation == Relation::Rename);
            if !is_renamed {
                continue;
            }
            let (from, to) = (entity(derived.from)?, entity(derived.entity)?);
            if may_be_directory(&from) && may_be_directory(&to) {
                found.push(DirectoryMove {
                    time: derived.time,
                    doer,
                    from: moved(&from),
                    to: moved(&to),
                });
            }
        }
    }
    Ok(())
}

/// The part of a path below a directory, with the slash.
fn below<'p>(path: &'p [u8], directory: &[u8]) -> Option<&'p [u8]> {
    path.strip_prefix(directory)
        .filter(|rest| rest.starts_with(b"/"))
}
