//! Changes of a map that are committed together.
//!
//! Assumption of the unsafe code here: a library copies keys and values before its function
//! returns.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::MutexGuard;

use crate::library::{CBytes, CChanges, Result, done};
use crate::open_map::OpenMap;

/// Changes that are committed together. Dropped, they change nothing.
pub struct MapChanges<'m> {
    /// `None` after the commit.
    pub(crate) changes: Option<NonNull<CChanges>>,
    pub(crate) open: &'m OpenMap,
    pub(crate) _alone: MutexGuard<'m, ()>,
}

impl Drop for MapChanges<'_> {
    fn drop(&mut self) {
        if let Some(changes) = self.changes.take() {
            // SAFETY: the map is open, and the changes were neither committed nor dropped.
            unsafe { (self.open.functions.drop_changes)(changes.as_ptr()) }
        }
    }
}

impl MapChanges<'_> {
    fn changes(&self) -> *mut CChanges {
        self.changes.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (key, value) = (CBytes::of(key), CBytes::of(value));
        // SAFETY: the changes are there until `commit`, which consumes them. The library copies.
        done(|failure| unsafe { (self.open.functions.put)(self.changes(), key, value, failure) })
    }

    /// Removes a key, if it is there.
    pub fn erase(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: as in `put`.
        done(|failure| unsafe {
            (self.open.functions.erase)(self.changes(), CBytes::of(key), failure)
        })
    }

    /// Applies all changes at once.
    pub fn commit(mut self) -> Result<()> {
        let Some(changes) = self.changes.take() else {
            return Ok(());
        };
        // SAFETY: the function frees the changes, and nothing has them any more.
        done(|failure| unsafe { (self.open.functions.commit)(changes.as_ptr(), failure) })
    }
}
