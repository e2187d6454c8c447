//! The version that was found, in words: for people who did not name it by its path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_files::Digest;
use backstory_graph::model::EntityKind;
use backstory_query::PathEvent;
use backstory_store::{EntityKey, GraphStore};

use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::paths::shown;
use crate::text::when::moment;

/// Contents with fewer bytes are equal by coincidence: empty files, `OK`, version numbers.
const TELLING: u64 = 64;

/// `notes.txt@{2 days ago}` in words: which version it is.
pub fn said_at(current: &CurrentStore, event: &PathEvent) -> Result<String, Failure> {
    let run = match event.run {
        Some(run) => current.store.run_id(run)?,
        None => None,
    };
    let run = run.map_or(String::new(), |run| format!(", run {run}"));
    Ok(format!(
        "the version of {} of {}{run}",
        shown(&event.path),
        moment(event.time)
    ))
}

/// The version of a file that no run has seen under its own name.
pub fn said_equal(
    current: &CurrentStore,
    wanted: &OsStr,
    path: &Path,
    keys: &[EntityKey],
) -> Result<String, Failure> {
    let size = path.metadata().map_or(0, |meta| meta.len());
    let doubt = match size < TELLING {
        true => format!(" (only {size} bytes, so perhaps by coincidence)"),
        false => String::new(),
    };
    Ok(format!(
        "no run has seen {}; it has the same content as {}{doubt}",
        shown(wanted.as_bytes()),
        name_of(current, keys)?
    ))
}

/// The version with a content that is named by its digest.
pub fn said_content(
    current: &CurrentStore,
    digest: &Digest,
    keys: &[EntityKey],
) -> Result<String, Failure> {
    let digits: String = digest.to_string().chars().take(12).collect();
    Ok(format!(
        "the content {digits}… is that of {}",
        name_of(current, keys)?
    ))
}

/// The path and run of the first version, and the number of other paths.
pub fn name_of(current: &CurrentStore, keys: &[EntityKey]) -> Result<String, Failure> {
    let mut paths = Vec::new();
    for key in keys {
        let entity = current.store.entity(*key)?;
        if entity.kind == EntityKind::File && !paths.contains(&entity.path) {
            paths.push(entity.path);
        }
    }
    let run = match keys.first() {
        Some(key) => current.store.run_id(key.run())?.unwrap_or_default(),
        None => String::new(),
    };
    let first = paths.first().map(|path| shown(path)).unwrap_or_default();
    Ok(match paths.len() {
        0 | 1 => format!("{first} (run {run})"),
        2 => format!("{first} (run {run}), and of {}", shown(&paths[1])),
        more => format!("{first} (run {run}), and of {} other paths", more - 1),
    })
}
