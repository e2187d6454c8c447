//! Versions that no recorded run can explain: an earlier run made another version at the path.
//!
//! In: a store and the graph of one of its runs. Out: the versions which that run found, at whose
//! path an earlier run had left another content. Something outside of all recordings changed or
//! replaced them.
//!
//! Three things explain a version. A recorded run made it. A recorded run made its content
//! elsewhere. Or it was written while a run that wrote the file was in progress: a reader may meet
//! any state in between. A file that no run ever made is a source, and needs no explanation.

use std::collections::HashSet;

use backstory_files::Ident;
use backstory_graph::model::{Entity, EntityId, EntityKind};
use backstory_store::{Result, RunKey, Store, VersionMatch, same_version};

/// The versions of `entities`, which are those of `run`, that nothing explains.
pub(crate) fn versions(
    store: &dyn Store,
    run: RunKey,
    entities: &[Entity],
) -> Result<HashSet<EntityId>> {
    let mut found = HashSet::new();
    for entity in entities {
        let is_found = entity.kind == EntityKind::File && entity.version == 0;
        if let Some(ident) = entity.ident.filter(|_| is_found)
            && is_unexplained(store, run, entity, &ident)?
        {
            found.insert(entity.id);
        }
    }
    Ok(found)
}

fn is_unexplained(store: &dyn Store, run: RunKey, entity: &Entity, ident: &Ident) -> Result<bool> {
    let mut is_output = false;
    for key in store.at_path(&entity.path)? {
        if key.run() >= run {
            continue;
        }
        let other = store.entity(key)?;
        if other.version == 0 || other.kind != EntityKind::File {
            continue;
        }
        is_output = true;
        let is_same = |other| same_version(other, ident);
        if other.ident.as_ref().is_some_and(is_same) || was_running(store, key.run(), ident)? {
            return Ok(false);
        }
    }
    Ok(is_output && !is_made_elsewhere(store, ident)?)
}

/// True if the version was written while the run was in progress.
fn was_running(store: &dyn Store, run: RunKey, ident: &Ident) -> Result<bool> {
    let Some(record) = store.run_by_key(run)? else {
        return Ok(false);
    };
    Ok((record.header.started..=record.end.ended).contains(&ident.mtime))
}

/// True if a recorded run made this version under another name, or its content in another file.
fn is_made_elsewhere(store: &dyn Store, ident: &Ident) -> Result<bool> {
    if !store.same(ident, VersionMatch::Made)?.is_empty() {
        return Ok(true);
    }
    let Some(digest) = store.fact(ident)?.and_then(|fact| fact.digest) else {
        return Ok(false);
    };
    for other in store.with_content(&digest)? {
        if !store.same(&other, VersionMatch::Made)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
