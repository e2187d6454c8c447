//! The table of functions of each C library, behind types that keep the rules of
//! `c/ordered_map.h`.
//!
//! Assumptions of the unsafe code here:
//!
//! - The C files fill the table with functions of these signatures. The header declares both sides.
//! - A library copies keys and values before its function returns.
//! - A row that a cursor shows lives until the cursor moves. [`MapCursor`] lends it that long.
//! - A map may be used by several threads. A snapshot and a cursor move between threads, and are
//!   used by one at a time.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs::{File, TryLockError};
use std::io;
use std::marker::{PhantomData, PhantomPinned};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NOTHING: c_int = -1;
const DAMAGED: c_int = -2;

/// A failure of a library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Another process has the map.
    #[error("another process has the map open")]
    Locked,
    /// The files are damaged, or of something else.
    #[error("{0}")]
    Damaged(String),
    /// The system refused an operation.
    #[error("{0}")]
    System(io::Error),
    /// Any other failure, in the library's words.
    #[error("{0}")]
    Other(String),
}

/// A library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapLibrary {
    /// Berkeley DB: a B-tree with a log.
    #[cfg(feature = "berkeleydb")]
    BerkeleyDb,
    /// RocksDB: an LSM tree.
    #[cfg(feature = "rocksdb")]
    RocksDb,
}

/// A type of C whose fields only C knows.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)]
        struct $name {
            _fields: [u8; 0],
            _marker: PhantomData<(*mut u8, PhantomPinned)>,
        })*
    };
}

opaque! { CMap CSnapshot CCursor CChanges }

#[repr(C)]
struct CFailure {
    error: c_int,
    message: [c_char; 256],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CBytes {
    at: *const u8,
    length: usize,
}

/// `struct library` of `c/ordered_map.h`.
#[repr(C)]
struct CLibrary {
    open: unsafe extern "C" fn(*const c_char, usize, c_int, *mut *mut CMap, *mut CFailure) -> c_int,
    close: unsafe extern "C" fn(*mut CMap),
    take_snapshot: unsafe extern "C" fn(*mut CMap, *mut *mut CSnapshot, *mut CFailure) -> c_int,
    drop_snapshot: unsafe extern "C" fn(*mut CSnapshot),
    get: unsafe extern "C" fn(*mut CSnapshot, CBytes, *mut CBytes, *mut CFailure) -> c_int,
    drop_value: unsafe extern "C" fn(CBytes),
    open_cursor: unsafe extern "C" fn(*mut CSnapshot, *mut *mut CCursor, *mut CFailure) -> c_int,
    seek: unsafe extern "C" fn(*mut CCursor, CBytes, c_int, *mut CBytes, *mut CFailure) -> c_int,
    step: unsafe extern "C" fn(*mut CCursor, c_int, *mut CBytes, *mut CFailure) -> c_int,
    close_cursor: unsafe extern "C" fn(*mut CCursor),
    begin: unsafe extern "C" fn(*mut CMap, *mut *mut CChanges, *mut CFailure) -> c_int,
    put: unsafe extern "C" fn(*mut CChanges, CBytes, CBytes, *mut CFailure) -> c_int,
    erase: unsafe extern "C" fn(*mut CChanges, CBytes, *mut CFailure) -> c_int,
    commit: unsafe extern "C" fn(*mut CChanges, *mut CFailure) -> c_int,
    drop_changes: unsafe extern "C" fn(*mut CChanges),
    compact: unsafe extern "C" fn(*mut CMap, *mut CFailure) -> c_int,
}

unsafe extern "C" {
    #[cfg(feature = "berkeleydb")]
    static backstory_berkeleydb: CLibrary;
    #[cfg(feature = "rocksdb")]
    static backstory_rocksdb: CLibrary;
}

impl MapLibrary {
    fn functions(self) -> &'static CLibrary {
        match self {
            // SAFETY: the table is constant, and is linked as long as the process lives.
            #[cfg(feature = "berkeleydb")]
            MapLibrary::BerkeleyDb => unsafe { &backstory_berkeleydb },
            // SAFETY: as above.
            #[cfg(feature = "rocksdb")]
            MapLibrary::RocksDb => unsafe { &backstory_rocksdb },
        }
    }
}

type Result<T> = std::result::Result<T, LibraryError>;

impl CBytes {
    const EMPTY: CBytes = CBytes {
        at: ptr::null(),
        length: 0,
    };

    fn of(bytes: &[u8]) -> CBytes {
        CBytes {
            at: bytes.as_ptr(),
            length: bytes.len(),
        }
    }

    /// # Safety
    ///
    /// The bytes must live for `'a`.
    unsafe fn slice<'a>(self) -> &'a [u8] {
        match self.at.is_null() {
            true => &[],
            // SAFETY: the library's bytes begin there and have this length; the caller knows their
            // life.
            false => unsafe { std::slice::from_raw_parts(self.at, self.length) },
        }
    }
}

/// Calls a function that fills a failure. `None`: there is nothing.
fn called(call: impl FnOnce(*mut CFailure) -> c_int) -> Result<Option<()>> {
    let mut failure = CFailure {
        error: 0,
        message: [0; 256],
    };
    match call(&mut failure) {
        0 => return Ok(Some(())),
        NOTHING => return Ok(None),
        _ => (),
    }
    if let Some(end) = failure.message.last_mut() {
        *end = 0;
    }
    // SAFETY: the last byte is NUL, and the array lives to the end of this function.
    let message = unsafe { CStr::from_ptr(failure.message.as_ptr()) };
    let message = message.to_string_lossy().into_owned();
    Err(match failure.error {
        DAMAGED => LibraryError::Damaged(message),
        1.. => LibraryError::System(io::Error::from_raw_os_error(failure.error)),
        _ => LibraryError::Other(message),
    })
}

/// The same for a function that always finds something.
fn done(call: impl FnOnce(*mut CFailure) -> c_int) -> Result<()> {
    let nothing = || LibraryError::Other("the library found nothing".to_owned());
    called(call)?.ok_or_else(nothing)
}

/// The object that a successful call has made.
fn made<T>(object: *mut T) -> Result<NonNull<T>> {
    let nothing = || LibraryError::Other("the library made nothing".to_owned());
    NonNull::new(object).ok_or_else(nothing)
}

/// The map of C. Closed when nothing uses it any more.
struct OpenMap {
    functions: &'static CLibrary,
    map: NonNull<CMap>,
    /// Held by the one who changes rows.
    changing: Mutex<()>,
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
        Ok(OrderedMap {
            open: Arc::new(OpenMap {
                functions,
                map: made(map)?,
                changing: Mutex::new(()),
                _lock: lock,
            }),
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

/// One state of a map.
pub struct MapSnapshot {
    snapshot: NonNull<CSnapshot>,
    /// Keeps the map open.
    open: Arc<OpenMap>,
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

/// Changes that are committed together. Dropped, they change nothing.
pub struct MapChanges<'m> {
    /// `None` after the commit.
    changes: Option<NonNull<CChanges>>,
    open: &'m OpenMap,
    _alone: MutexGuard<'m, ()>,
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

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARIES: &[MapLibrary] = &[
        #[cfg(feature = "berkeleydb")]
        MapLibrary::BerkeleyDb,
        #[cfg(feature = "rocksdb")]
        MapLibrary::RocksDb,
    ];

    fn keys(snapshot: &MapSnapshot, from: &[u8], backwards: bool) -> Vec<Vec<u8>> {
        let mut cursor = snapshot.cursor().unwrap();
        let mut found = Vec::new();
        let mut row = cursor.seek(from, backwards).unwrap();
        while let Some((key, value)) = row {
            assert_eq!(value, [key, b"!"].concat());
            found.push(key.to_vec());
            row = cursor.step(backwards).unwrap();
        }
        found
    }

    fn put(map: &OrderedMap, all: &[&[u8]]) {
        let mut changes = map.begin().unwrap();
        for key in all {
            changes.put(key, &[key, &b"!"[..]].concat()).unwrap();
        }
        changes.commit().unwrap();
    }

    #[test]
    fn a_snapshot_shows_its_state_in_order_in_both_directions() {
        for &library in LIBRARIES {
            let tmp = tempfile::tempdir().unwrap();
            let map = OrderedMap::open(library, tmp.path(), 8 << 20, false).unwrap();
            put(&map, &[b"b", b"d", b"a", b"c\0"]);
            let before = map.snapshot().unwrap();
            put(&map, &[b"c", b"e"]);
            let mut changes = map.begin().unwrap();
            changes.erase(b"a").unwrap();
            changes.erase(b"not there").unwrap();
            changes.commit().unwrap();
            assert_eq!(keys(&before, b"", false), [&b"a"[..], b"b", b"c\0", b"d"]);
            assert_eq!(keys(&before, b"c", false), [&b"c\0"[..], b"d"]);
            assert_eq!(keys(&before, b"d", true), [&b"c\0"[..], b"b", b"a"]);
            assert_eq!(keys(&before, b"zz", true), [&b"d"[..], b"c\0", b"b", b"a"]);
            assert_eq!(before.get(b"e").unwrap(), None);
            let now = map.snapshot().unwrap();
            assert_eq!(keys(&now, b"c", false), [&b"c"[..], b"c\0", b"d", b"e"]);
            assert_eq!(now.get(b"e").unwrap().unwrap(), b"e!");
            assert_eq!(keys(&now, b"b", true), [b""; 0]);
        }
    }

    #[test]
    fn changes_that_were_dropped_changed_nothing_and_committed_ones_are_there_again() {
        for &library in LIBRARIES {
            let tmp = tempfile::tempdir().unwrap();
            let map = OrderedMap::open(library, tmp.path(), 8 << 20, true).unwrap();
            put(&map, &[b"kept"]);
            map.begin().unwrap().put(b"dropped", b"").unwrap();
            let other = OrderedMap::open(library, tmp.path(), 8 << 20, true);
            assert!(matches!(other.map(drop), Err(LibraryError::Locked)));
            let snapshot = map.snapshot().unwrap();
            drop(map);
            assert_eq!(keys(&snapshot, b"", false), [b"kept"]);
            drop(snapshot);
            let again = OrderedMap::open(library, tmp.path(), 8 << 20, false).unwrap();
            assert_eq!(keys(&again.snapshot().unwrap(), b"", false), [b"kept"]);
            again.compact().unwrap();
        }
    }

    #[test]
    fn a_value_of_megabytes_comes_back() {
        for &library in LIBRARIES {
            let tmp = tempfile::tempdir().unwrap();
            let map = OrderedMap::open(library, tmp.path(), 8 << 20, false).unwrap();
            let value: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
            let mut changes = map.begin().unwrap();
            changes.put(b"long", &value).unwrap();
            changes.put(b"empty", b"").unwrap();
            changes.commit().unwrap();
            let snapshot = map.snapshot().unwrap();
            assert_eq!(snapshot.get(b"long").unwrap().unwrap(), value);
            assert_eq!(snapshot.get(b"empty").unwrap().unwrap(), b"");
        }
    }
}
