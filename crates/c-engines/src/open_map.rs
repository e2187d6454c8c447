//! A map that is open: its library, its directory's lock, and who may change it.
//!
//! Assumption of the unsafe code here: the library lets several threads use a map.
#![allow(unsafe_code)]

use std::ffi::{CString, c_int};
use std::fs::{File, TryLockError};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Mutex;

use crate::library::{CLibrary, CMap, LibraryError, MapLibrary, Result, done, made};

/// The map of C. Closed when nothing uses it any more.
pub(crate) struct OpenMap {
    pub(crate) functions: &'static CLibrary,
    pub(crate) map: NonNull<CMap>,
    /// Held by the one who changes rows.
    pub(crate) changing: Mutex<()>,
    /// Dropped after the map was closed.
    _lock: File,
}

// SAFETY: the header says that a map may be used by any thread.
unsafe impl Send for OpenMap {}
// SAFETY: as above.
unsafe impl Sync for OpenMap {}

impl Drop for OpenMap {
    fn drop(&mut self) {
        // SAFETY: snapshots, cursors and changes borrow or share this object, so that none is left.
        unsafe { (self.functions.close)(self.map.as_ptr()) }
    }
}

impl OpenMap {
    /// Opens the map in a directory: see [`OrderedMap::open`](crate::OrderedMap::open).
    pub(crate) fn open(
        library: MapLibrary,
        directory: &Path,
        memory: usize,
        synced: bool,
    ) -> Result<OpenMap> {
        let mut lock = File::options();
        let lock = lock.read(true).write(true).create(true).truncate(false);
        let lock = lock.open(directory.join("lock"));
        let lock = lock.map_err(LibraryError::System)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => LibraryError::Locked,
            TryLockError::Error(error) => LibraryError::System(error),
        })?;
        let directory = CString::new(directory.as_os_str().as_bytes())
            .map_err(|error| LibraryError::System(error.into()))?;
        let functions = library.functions();
        let mut map = ptr::null_mut();
        done(|failure| {
            // SAFETY: the path is NUL-terminated, and all pointers are to locals that outlive the
            // call.
            unsafe {
                (functions.open)(
                    directory.as_ptr(),
                    memory,
                    c_int::from(synced),
                    &mut map,
                    failure,
                )
            }
        })?;
        Ok(OpenMap {
            functions,
            map: made(map)?,
            changing: Mutex::new(()),
            _lock: lock,
        })
    }
}
