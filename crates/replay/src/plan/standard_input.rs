//! The standard input of a replay.

use backstory_eventlog::run::RunHeader;
use backstory_query as query;
use backstory_store::Store;
use backstory_workflow::paths::to_path;
use serde::{Deserialize, Serialize};

use crate::Result;

/// The source of standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// The caller's standard input.
    Inherited,
    /// An empty input.
    Empty,
    /// A content of the store.
    Stored([u8; 32]),
}

/// The recorded standard input: a file's content if it is stored, an empty input if it was empty.
/// Otherwise the caller's input is used, and a note says so.
pub fn of(store: &dyn Store, header: &RunHeader, notes: &mut Vec<String>) -> Result<Stdin> {
    let Some(at) = header
        .descriptors
        .iter()
        .position(|(number, _)| *number == 0)
    else {
        return Ok(Stdin::Empty);
    };
    let target = &header.descriptors[at].1;
    if target == b"/dev/null" {
        return Ok(Stdin::Empty);
    }
    let Some(ident) = header.descriptor_files.get(at).copied().flatten() else {
        return Ok(Stdin::Inherited);
    };
    match query::known(store, Some(&ident))? {
        Some((Some(digest), held)) if held.is_stored() => Ok(Stdin::Stored(digest.0)),
        _ => {
            let path = to_path(target).display();
            notes.push(format!(
                "standard input was {path}, whose content is not kept: yours is used"
            ));
            Ok(Stdin::Inherited)
        }
    }
}
