//! The rows of a database of SQLite that differ between two versions of it, or of its write-ahead
//! log.
//!
//! In: the keys of the versions. Out: an inspector's answer. The contents of the database, of its
//! log and of its journal at both moments must be stored.

use backstory_inspection::row_changes::DatabaseFiles;
use backstory_inspection::{Answer as InspectorAnswer, FormatReader};
use backstory_query as query;
use backstory_store::EntityKey;

use crate::problem::Answer;
use crate::readers::Reading;
use crate::version_bytes::VersionBytes;

/// The most bytes of a file of the database.
const LARGEST: u64 = 64 << 20;

/// The answer. `None` without a log: the contents of the versions then have all rows. `None` also
/// if a content is missing.
///
/// # Errors
///
/// The store fails.
pub fn between(
    reading: &Reading<'_>,
    formats: &FormatReader,
    name: &[u8],
    versions: (EntityKey, EntityKey),
) -> Answer<Option<InspectorAnswer>> {
    let read = |version| -> Answer<Option<Vec<u8>>> {
        let content = VersionBytes::open(reading, version).ok();
        content.map_or(Ok(None), |content| content.read_all(LARGEST))
    };
    let states = query::logged_states(reading.store, name, versions, read)?;
    Ok(states.and_then(|[before, after]| {
        let (before, after) = (DatabaseFiles::of(&before), DatabaseFiles::of(&after));
        formats.differing_rows(name, before, after).ok()
    }))
}
