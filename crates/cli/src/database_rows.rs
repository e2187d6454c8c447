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
    versions: (EntityKey, EntityKey),
) -> Result<Option<Result<Answer, Trouble>>, Failure> {
    let store = &contents.current().store;
    let read = |version| contents.read(version);
    let states = query::logged_states::<Failure>(store, name, versions, read)?;
    Ok(states.map(|[before, after]| {
        let (before, after) = (DatabaseFiles::of(&before), DatabaseFiles::of(&after));
        formats.differing_rows(name, before, after)
    }))
}

/// True if the answer says that a row or the schema differs.
pub fn has_changes(rows: &Answer) -> bool {
    let list = |name| rows.changes.get(name).and_then(|list| list.as_array());
    let changed = list("schema").is_some_and(|sentences| !sentences.is_empty());
    changed || list("steps").is_none_or(|steps| !steps.is_empty())
}
