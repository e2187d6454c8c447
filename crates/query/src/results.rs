//! The results of a run: the files that it made and that existed when it ended. If another run
//! replaced a result before its identity was taken, it is a result all the same.

use backstory_ordering::SmallSort;
use std::collections::{HashMap, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_graph::model::{ActivityId, Entity, EntityKind, Relation};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};

use crate::printed_files::{output_file, printed_files};
use crate::runs::{is_path, record};
use crate::{Result, replaced};

/// A result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    /// Its absolute path.
    pub path: Bytes,
    /// Its digest, if its content was read.
    pub digest: Option<Digest>,
    /// Its size in bytes, if its identity is known.
    pub size: Option<i64>,
}

/// The results of a run, by path. `wanted` says which paths are of interest. The files of inherited
/// descriptors are no results: the shell opened them. Without any other result, the file of the
/// standard output is the result.
pub fn results(
    store: &dyn Store,
    run: &str,
    wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<Vec<RunResult>> {
    let _one_state = store.reading()?;
    let record = record(store, run)?;
    let printed = |path: &[u8]| {
        let mut inherited = record.header.descriptors.iter();
        inherited.any(|(_, target)| target == path)
    };
    let redirected = output_file(&record.header);
    let (mut found, mut caught) = (Vec::new(), Vec::new());
    let entities = store.entities(record.key)?;
    let removed = removed(store, record.key, &entities)?;
    let left = replaced(&entities, |id| removed.contains(&id));
    for entity in entities {
        let lasts = entity.last || left.contains(&entity.id.0);
        let made = entity.kind == EntityKind::File && entity.version > 0 && lasts;
        if !made || !is_path(&entity.path) || !wanted(&entity.path) {
            continue;
        }
        let to = match printed(&entity.path) {
            true if redirected == Some(&*entity.path) => &mut caught,
            true => continue,
            false => &mut found,
        };
        let known = crate::known(store, entity.ident.as_ref())?;
        to.push(RunResult {
            path: entity.path,
            digest: known.and_then(|(digest, _)| digest),
            size: entity.ident.map(|ident| ident.size),
        });
    }
    if found.is_empty() {
        found = caught;
    }
    found.sort_small_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The regular files of the command's standard output and errors that are no outputs of the run,
/// although it wrote to them. Such a file belongs to the caller, like a terminal. `wanted` says
/// which paths are of interest as outputs.
pub fn callers_files(
    store: &dyn Store,
    run: &str,
    wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<Vec<Vec<u8>>> {
    let mut found = printed_files(&record(store, run)?.header);
    if !found.is_empty() {
        let left = results(store, run, wanted)?;
        found.retain(|path| !left.iter().any(|result| *result.path == **path));
    }
    Ok(found)
}

/// The numbers of the versions that the run removed or renamed, among those that are not the last.
fn removed(store: &dyn Store, run: RunKey, entities: &[Entity]) -> Result<HashSet<u32>> {
    let mut by: HashMap<ActivityId, HashSet<u32>> = HashMap::new();
    let mut found = HashSet::new();
    let files = entities.iter().filter(|one| one.kind == EntityKind::File);
    for entity in files.filter(|entity| !entity.last) {
        for (activity, generated) in store.touching(EntityKey::new(run, entity.id))? {
            if generated && !by.contains_key(&activity) {
                let stream = store.stream(ActivityKey::new(run, activity))?;
                let edges = stream.edges.iter();
                let deletes = edges.filter(|edge| edge.relation == Relation::Delete);
                by.insert(activity, deletes.map(|edge| edge.entity.0).collect());
            }
            let removes = by.get(&activity);
            if generated && removes.is_some_and(|removes| removes.contains(&entity.id.0)) {
                found.insert(entity.id.0);
            }
        }
    }
    Ok(found)
}
