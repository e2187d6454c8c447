//! The results of a run: the files that it made and that existed when it ended.

use backstory_eventlog::event::Bytes;
use backstory_files::Digest;
use backstory_graph::model::EntityKind;
use backstory_store::Store;

use crate::Result;
use crate::runs::{is_path, record};

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
/// descriptors are no results: the shell opened them.
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
    let mut found = Vec::new();
    for entity in store.entities(record.key)? {
        let made = entity.kind == EntityKind::File && entity.version > 0 && entity.last;
        if !made || printed(&entity.path) || !is_path(&entity.path) || !wanted(&entity.path) {
            continue;
        }
        let known = crate::known(store, entity.ident.as_ref())?;
        found.push(RunResult {
            path: entity.path,
            digest: known.and_then(|(digest, _)| digest),
            size: entity.ident.map(|ident| ident.size),
        });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
