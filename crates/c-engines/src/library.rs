//! The table of functions of each C library.
//!
//! In: calls by the types of `c/ordered_map.h`. Out: their results, and failures as errors.
//!
//! Assumption of the unsafe code here: the C files fill the table with functions of these
//! signatures. The header declares both sides.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::marker::{PhantomData, PhantomPinned};
use std::ptr::{self, NonNull};

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
        pub(crate) struct $name {
            _fields: [u8; 0],
            _marker: PhantomData<(*mut u8, PhantomPinned)>,
        })*
    };
}

opaque! { CMap CSnapshot CCursor CChanges }

#[repr(C)]
pub(crate) struct CFailure {
    error: c_int,
    message: [c_char; 256],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CBytes {
    at: *const u8,
    length: usize,
}

/// `struct library` of `c/ordered_map.h`.
#[repr(C)]
pub(crate) struct CLibrary {
    pub(crate) open:
        unsafe extern "C" fn(*const c_char, usize, c_int, *mut *mut CMap, *mut CFailure) -> c_int,
    pub(crate) close: unsafe extern "C" fn(*mut CMap),
    pub(crate) take_snapshot:
        unsafe extern "C" fn(*mut CMap, *mut *mut CSnapshot, *mut CFailure) -> c_int,
    pub(crate) drop_snapshot: unsafe extern "C" fn(*mut CSnapshot),
    pub(crate) get:
        unsafe extern "C" fn(*mut CSnapshot, CBytes, *mut CBytes, *mut CFailure) -> c_int,
    pub(crate) drop_value: unsafe extern "C" fn(CBytes),
    pub(crate) open_cursor:
        unsafe extern "C" fn(*mut CSnapshot, *mut *mut CCursor, *mut CFailure) -> c_int,
    pub(crate) seek:
        unsafe extern "C" fn(*mut CCursor, CBytes, c_int, *mut CBytes, *mut CFailure) -> c_int,
    pub(crate) step: unsafe extern "C" fn(*mut CCursor, c_int, *mut CBytes, *mut CFailure) -> c_int,
    pub(crate) close_cursor: unsafe extern "C" fn(*mut CCursor),
    pub(crate) begin: unsafe extern "C" fn(*mut CMap, *mut *mut CChanges, *mut CFailure) -> c_int,
    pub(crate) put: unsafe extern "C" fn(*mut CChanges, CBytes, CBytes, *mut CFailure) -> c_int,
    pub(crate) erase: unsafe extern "C" fn(*mut CChanges, CBytes, *mut CFailure) -> c_int,
    pub(crate) commit: unsafe extern "C" fn(*mut CChanges, *mut CFailure) -> c_int,
    pub(crate) drop_changes: unsafe extern "C" fn(*mut CChanges),
    pub(crate) compact: unsafe extern "C" fn(*mut CMap, *mut CFailure) -> c_int,
}

unsafe extern "C" {
    #[cfg(feature = "berkeleydb")]
    static backstory_berkeleydb: CLibrary;
    #[cfg(feature = "rocksdb")]
    static backstory_rocksdb: CLibrary;
}

impl MapLibrary {
    pub(crate) fn functions(self) -> &'static CLibrary {
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

pub(crate) type Result<T> = std::result::Result<T, LibraryError>;

impl CBytes {
    pub(crate) const EMPTY: CBytes = CBytes {
        at: ptr::null(),
        length: 0,
    };

    pub(crate) fn of(bytes: &[u8]) -> CBytes {
        CBytes {
            at: bytes.as_ptr(),
            length: bytes.len(),
        }
    }

    /// # Safety
    ///
    /// The bytes must live for `'a`.
    pub(crate) unsafe fn slice<'a>(self) -> &'a [u8] {
        match self.at.is_null() {
            true => &[],
            // SAFETY: the library's bytes begin there and have this length; the caller knows their
            // life.
            false => unsafe { std::slice::from_raw_parts(self.at, self.length) },
        }
    }
}

/// Calls a function that fills a failure. `None`: there is nothing.
pub(crate) fn called(call: impl FnOnce(*mut CFailure) -> c_int) -> Result<Option<()>> {
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
pub(crate) fn done(call: impl FnOnce(*mut CFailure) -> c_int) -> Result<()> {
    let nothing = || LibraryError::Other("the library found nothing".to_owned());
    called(call)?.ok_or_else(nothing)
}

/// The object that a successful call has made.
pub(crate) fn made<T>(object: *mut T) -> Result<NonNull<T>> {
    let nothing = || LibraryError::Other("the library made nothing".to_owned());
    NonNull::new(object).ok_or_else(nothing)
}
