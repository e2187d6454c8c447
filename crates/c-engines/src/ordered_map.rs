//! An ordered map of byte strings in a directory.
//!
//! Assumption of the unsafe code here: the functions of the table follow the rules of
//! `c/ordered_map.h`.
#![allow(unsafe_code)]

use std::path::Path;
use std::ptr;
use std::sync::{Arc, PoisonError};

use crate::changes::MapChanges;
use crate::library::{MapLibrary, Result, done, made};
use crate::open_map::OpenMap;
use crate::snapshot::MapSnapshot;

/// An ordered map in a directory. Its clones share it; the last one closes it.
#[derive(Clone)]
pub struct OrderedMap {
    open: Arc<OpenMap>,
}

impl OrderedMap {
    /// Opens the map in a directory, which exists, making it where needed. `memory`: bytes for
    /// caches. `synced`: each commit waits for the disk.
    ///
    /// Errors: [`LibraryError::Locked`] if another process has it.
    pub fn open(
        library: MapLibrary,
        directory: &Path,
        memory: usize,
        synced: bool,
    ) -> Result<OrderedMap> {
        let open = OpenMap::open(library, directory, memory, synced)?;
        Ok(OrderedMap {
            open: Arc::new(open),
        })
    }

    /// The state now.
    pub fn snapshot(&self) -> Result<MapSnapshot> {
        let mut snapshot = ptr::null_mut();
        let open = &self.open;
        // SAFETY: the map is open, and the pointers outlive the call.
        done(|failure| unsafe {
            (open.functions.take_snapshot)(open.map.as_ptr(), &mut snapshot, failure)
        })?;
        Ok(MapSnapshot {
            snapshot: made(snapshot)?,
            open: open.clone(),
        })
    }

    /// Begins changes that are committed together. Waits for other changes of this process.
    pub fn begin(&self) -> Result<MapChanges<'_>> {
        let open = &*self.open;
        let alone = open.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = ptr::null_mut();
        // SAFETY: the map is open, no other changes exist, and the pointers outlive the call.
        done(|failure| unsafe {
            (open.functions.begin)(open.map.as_ptr(), &mut changes, failure)
        })?;
        Ok(MapChanges {
            changes: Some(made(changes)?),
            open,
            _alone: alone,
        })
    }

    /// Gives the room of removed rows back to the file system.
    pub fn compact(&self) -> Result<()> {
        let open = &*self.open;
        let _alone = open.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the map is open.
        done(|failure| unsafe { (open.functions.compact)(open.map.as_ptr(), failure) })
    }
}
