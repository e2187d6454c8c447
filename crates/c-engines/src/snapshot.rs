//! One state of a map, and positions in it.
//!
//! Assumptions of the unsafe code here:
//!
//! - A row that a cursor shows lives until the cursor moves. [`MapCursor`] lends it that long.
//! - A snapshot and a cursor move between threads, and are used by one at a time.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::library::{CBytes, CCursor, CFailure, CLibrary, CSnapshot, Result, called, done, made};
use crate::open_map::OpenMap;

/// One state of a map.
pub struct MapSnapshot {
    pub(crate) snapshot: NonNull<CSnapshot>,
    /// Keeps the map open.
    pub(crate) open: Arc<OpenMap>,
}

// SAFETY: the header says that a snapshot is used by one thread at a time, not by which. It is not
// `Sync`.
unsafe impl Send for MapSnapshot {}

impl Drop for MapSnapshot {
    fn drop(&mut self) {
        // SAFETY: the map is open, and cursors borrow the snapshot, so that none is left.
        unsafe { (self.open.functions.drop_snapshot)(self.snapshot.as_ptr()) }
    }
}

impl MapSnapshot {
    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let functions = self.open.functions;
        let mut value = CBytes::EMPTY;
        // SAFETY: the snapshot lives, and key and value outlive the call.
        let found = called(|failure| unsafe {
            (functions.get)(self.snapshot.as_ptr(), CBytes::of(key), &mut value, failure)
        })?;
        if found.is_none() {
            return Ok(None);
        }
        // SAFETY: the value lives until it is dropped below.
        let copy = unsafe { value.slice() }.to_vec();
        // SAFETY: the library has made the value, and nothing refers to it any more.
        unsafe { (functions.drop_value)(value) };
        Ok(Some(copy))
    }

    /// A cursor that is at no row yet.
    pub fn cursor(&self) -> Result<MapCursor<'_>> {
        let mut cursor = ptr::null_mut();
        // SAFETY: the snapshot lives, and the pointers outlive the call.
        done(|failure| unsafe {
            (self.open.functions.open_cursor)(self.snapshot.as_ptr(), &mut cursor, failure)
        })?;
        Ok(MapCursor {
            cursor: made(cursor)?,
            snapshot: self,
        })
    }
}

/// Key and value of a row, lent until the cursor moves.
pub type MapRow<'a> = Option<(&'a [u8], &'a [u8])>;

/// A position in a snapshot.
pub struct MapCursor<'s> {
    cursor: NonNull<CCursor>,
    snapshot: &'s MapSnapshot,
}

impl Drop for MapCursor<'_> {
    fn drop(&mut self) {
        // SAFETY: the snapshot lives, and nothing else has the cursor.
        unsafe { (self.snapshot.open.functions.close_cursor)(self.cursor.as_ptr()) }
    }
}

impl MapCursor<'_> {
    fn moved(
        &mut self,
        go: impl FnOnce(&CLibrary, *mut CCursor, *mut CBytes, *mut CFailure) -> c_int,
    ) -> Result<MapRow<'_>> {
        let functions = self.snapshot.open.functions;
        let mut row = [CBytes::EMPTY; 2];
        let found =
            called(|failure| go(functions, self.cursor.as_ptr(), row.as_mut_ptr(), failure))?;
        let [key, value] = row;
        // SAFETY: both live until the cursor moves, and it moves by `&mut self` only.
        Ok(found.map(|()| unsafe { (key.slice(), value.slice()) }))
    }

    /// Goes to the first row whose key is not less than this one. Backwards: to the last row before
    /// it.
    pub fn seek(&mut self, key: &[u8], backwards: bool) -> Result<MapRow<'_>> {
        let key = CBytes::of(key);
        self.moved(|functions, cursor, row, failure| {
            // SAFETY: the cursor lives; the row has room for two; all outlive the call.
            unsafe { (functions.seek)(cursor, key, c_int::from(backwards), row, failure) }
        })
    }

    /// Goes to the next row. Backwards: to the one before.
    pub fn step(&mut self, backwards: bool) -> Result<MapRow<'_>> {
        self.moved(|functions, cursor, row, failure| {
            // SAFETY: as in `seek`.
            unsafe { (functions.step)(cursor, c_int::from(backwards), row, failure) }
        })
    }
}
