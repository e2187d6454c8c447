//! The rows of a database of SQLite that differ between two recorded versions of it, or of its
//! write-ahead log.
//!
//! In: the keys of the versions. Out: an inspector's answer. Invariant: only stored contents are
//! read, and files that are still the recorded version.

use backstory_inspection::row_changes::DatabaseFiles;
use backstory_inspection::{Answer, FormatReader, Trouble};
use backstory_query as query;
use backstory_store::EntityKey;

use crate::error::Failure;
use crate::version_contents::VersionContents;

/// The answer about two versions of the file `name`. `None` without a log: the contents of the
/// versions then have all rows. `None` also if a content of one of the states is not available.
///
/// # Errors
/// The store fails.
pub fn between(
    contents: &VersionContents<'_>,
    formats: &FormatReader,
    name: &[u8],
    (old, new): (EntityKey, EntityKey),
) -> Result<Option<Result<Answer, Trouble>>, Failure> {
    let store = &contents.current().store;
    let state = |version| query::database_state_of(store, name, version);
    let (Some(before), Some(after)) = (state(old)?, state(new)?) else {
        return Ok(None);
    };
    if !before.has_log() && !after.has_log() {
        return Ok(None);
    }
    let read = |version| contents.read(version);
    let (Some(before), Some(after)) = (before.contents(read)?, after.contents(read)?) else {
        return Ok(None);
    };
    let states = (DatabaseFiles::of(&before), DatabaseFiles::of(&after));
    Ok(Some(formats.differing_rows(name, states.0, states.1)))
}

/// True if the answer says that a row or the schema differs.
pub fn has_changes(rows: &Answer) -> bool {
    let list = |name| rows.changes.get(name).and_then(|list| list.as_array());
    let changed = list("schema").is_some_and(|sentences| !sentences.is_empty());
    changed || list("steps").is_none_or(|steps| !steps.is_empty())
}
