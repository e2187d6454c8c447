//! Compares the indexes of a store with the rows that they lead to.
//!
//! A seal does not cover indexes, since an engine may make them anew. But a changed index could
//! hide a row from a question.
//!
//! Absent: indexes that only save space (`text_keys`), and that no question reads.

use std::collections::{BTreeMap, BTreeSet};

use backstory_graph::model::{Entity, EntityKind, Relation};
use backstory_store::facts::Fact;
use backstory_store::{
    ActivityKey, EntityKey, Result, RunRecord, Store, Stream, VersionMatch, may_be_directory,
};

/// The first index that does not lead to a row of the run. `None` if all do.
pub fn broken(store: &dyn Store, run: &RunRecord) -> Result<Option<String>> {
    let entities = store.entities(run.key)?;
    // For each entity: the activities that touched it, and whether they generated it.
    let mut touched: Vec<BTreeMap<u32, bool>> = vec![BTreeMap::new(); entities.len()];
    let mut made = vec![false; entities.len()];
    let mut renamed = vec![false; entities.len()];
    for activity in store.activities(run.key)? {
        let stream = store.stream(ActivityKey::new(run.key, activity.id))?;
        let mut note = |entity: u32, generated: bool| {
            if let Some(list) = touched.get_mut(entity as usize) {
                *list.entry(activity.id.0).or_default() |= generated;
            }
        };
        for edge in &stream.edges {
            note(edge.entity.0, !edge.relation.is_use());
        }
        for derived in &stream.derived {
            note(derived.entity.0, true);
            note(derived.from.0, false);
        }
        for end in renamed_directories(&entities, &stream) {
            renamed[end] = true;
        }
        let makes = |relation| {
            matches!(
                relation,
                Relation::Write | Relation::Make | Relation::Rename
            )
        };
        let edges = stream.edges.iter().filter(|edge| makes(edge.relation));
        let ends = edges.map(|edge| edge.entity.0);
        for entity in ends.chain(stream.derived.iter().map(|derived| derived.entity.0)) {
            if let Some(made) = made.get_mut(entity as usize) {
                *made = true;
            }
        }
    }
    for (at, entity) in entities.iter().enumerate() {
        let key = EntityKey::new(run.key, entity.id);
        let mut found: BTreeMap<u32, bool> = BTreeMap::new();
        for (by, generated) in store.touching(key)? {
            *found.entry(by.0).or_default() |= generated;
        }
        let missing = match () {
            () if found != touched[at] => Some("the processes that touched it"),
            () if !is_found_by_path(store, key, entity)? => Some("its path"),
            () if renamed[at] && !is_rename_found(store, key, entity)? => Some("its rename"),
            () if !is_found_by_version(store, key, entity, made[at])? => Some("its version"),
            () => None,
        };
        if let Some(missing) = missing {
            let path = String::from_utf8_lossy(&entity.path);
            return Ok(Some(format!("the index of {missing} is wrong for {path}")));
        }
    }
    Ok(None)
}

/// Whether a search for the digest of a fact finds its version. True for a fact without a digest.
pub fn finds_by_digest(store: &dyn Store, fact: &Fact) -> Result<bool> {
    match &fact.digest {
        Some(digest) => Ok(store.with_content(digest)?.contains(&fact.ident)),
        None => Ok(true),
    }
}

fn is_found_by_path(store: &dyn Store, key: EntityKey, entity: &Entity) -> Result<bool> {
    Ok(store.at_path(&entity.path)?.contains(&key))
}

/// The positions of versions that an activity renamed and that may be those of directories, and of
/// the versions before them.
fn renamed_directories(entities: &[Entity], stream: &Stream) -> Vec<usize> {
    let renames = stream.edges.iter();
    let renames = renames.filter(|edge| edge.relation == Relation::Rename);
    let renamed: BTreeSet<u32> = renames.map(|edge| edge.entity.0).collect();
    let derived = stream.derived.iter();
    let derived = derived.filter(|one| renamed.contains(&one.entity.0));
    let ends = derived.map(|one| [one.entity.0 as usize, one.from.0 as usize]);
    let are_directories = |ends: &[usize; 2]| {
        ends.iter().all(|end| {
            let entity = entities.get(*end);
            entity.is_some_and(|one| may_be_directory(one.kind, one.ident.as_ref()))
        })
    };
    ends.filter(are_directories).flatten().collect()
}

fn is_rename_found(store: &dyn Store, key: EntityKey, entity: &Entity) -> Result<bool> {
    Ok(store.rename_candidates(&entity.path)?.contains(&key))
}

fn is_found_by_version(
    store: &dyn Store,
    key: EntityKey,
    entity: &Entity,
    made: bool,
) -> Result<bool> {
    let has_versions = matches!(
        entity.kind,
        EntityKind::File | EntityKind::Directory | EntityKind::Symlink
    );
    let Some(ident) = entity.ident.filter(|_| has_versions) else {
        return Ok(true);
    };
    let all = store.same(&ident, VersionMatch::Any)?.contains(&key);
    let own = store.same(&ident, VersionMatch::Made)?.contains(&key);
    Ok(all && own == made)
}
