//! The contents that the file at a path had, one after the other.
//!
//! In: a store and a path. Out: each content once in a row, the oldest first, with the event that
//! left it. Invariant: two neighbours have different digests. Absent: the contents themselves.

use std::path::Path;

use backstory_files::Digest;
use backstory_graph::model::EntityKind;
use backstory_store::{EntityKey, Store};

use crate::history::{PathEvent, history};
use crate::{Result, known};

/// A content that a file had.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentState {
    /// The digest of the content.
    pub digest: Digest,
    /// The store of contents has it.
    pub kept: bool,
    /// The version that had it first.
    pub version: EntityKey,
    /// The event that left the content.
    pub event: PathEvent,
}

/// The contents that the file at a path had, the oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContentStates {
    /// Those whose digest is known.
    pub known: Vec<ContentState>,
    /// Versions whose digest is not known, and which cannot come back.
    pub unknown: Vec<EntityKey>,
}

/// The contents that the file at a path had, the oldest first.
///
/// # Errors
///
/// As [`history`].
pub fn content_states(store: &dyn Store, path: &Path) -> Result<ContentStates> {
    let mut states = ContentStates::default();
    for event in history(store, path)? {
        let Some(version) = event.version.filter(|_| event.change.leaves_file()) else {
            continue;
        };
        let Some((Some(digest), held)) = known(store, event.ident.as_ref())? else {
            if states.unknown.last() != Some(&version) {
                states.unknown.push(version);
            }
            continue;
        };
        let last = states.known.last();
        if last.is_none_or(|last| last.digest != digest) {
            states.known.push(ContentState {
                digest,
                kept: held.is_stored(),
                version,
                event,
            });
        }
    }
    Ok(states)
}

/// The content that the file had before it got the content of a version. `None` if no former
/// content is known, or if one of the two is not stored.
///
/// A version whose own content is not stored is found out before the history is read.
///
/// # Errors
///
/// As [`history`].
pub fn former_content(
    store: &dyn Store,
    path: &Path,
    version: EntityKey,
) -> Result<Option<ContentState>> {
    let entity = store.entity(version)?;
    if entity.kind != EntityKind::File {
        return Ok(None);
    }
    let Some((Some(digest), held)) = known(store, entity.ident.as_ref())? else {
        return Ok(None);
    };
    if !held.is_stored() {
        return Ok(None);
    }
    let former = state_before(store, path, version, digest)?;
    Ok(former.filter(|former| former.kept))
}

/// As [`former_content`], whether or not the two contents are stored. Their digests are known.
///
/// # Errors
///
/// As [`history`].
pub fn former_state(
    store: &dyn Store,
    path: &Path,
    version: EntityKey,
) -> Result<Option<ContentState>> {
    let ident = store.entity(version)?.ident;
    match known(store, ident.as_ref())? {
        Some((Some(digest), _)) => state_before(store, path, version, digest),
        _ => Ok(None),
    }
}

fn state_before(
    store: &dyn Store,
    path: &Path,
    version: EntityKey,
    digest: Digest,
) -> Result<Option<ContentState>> {
    let mut states = content_states(store, path)?.known;
    let own = states
        .iter()
        .position(|state| state.version == version)
        .or_else(|| states.iter().rposition(|state| state.digest == digest));
    let former = own.and_then(|own| own.checked_sub(1));
    Ok(former.map(|former| states.swap_remove(former)))
}
