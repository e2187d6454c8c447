//! How marks reach backstory: by a function of the recorder, or by open(2).
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr, c_char, c_int};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use crate::MarkPath;

/// The recorder's function: takes a mark, and returns 0 if the mark must be an open(2) instead.
type TakeMark = unsafe extern "C" fn(*const c_char) -> c_int;

#[derive(Debug, Clone, Copy)]
enum Route {
    /// The process is not recorded.
    Off,
    /// The recorder is loaded.
    Recorder(TakeMark),
    /// The process is recorded by the kernel's notifications alone: it is a static program.
    Open,
}

fn route() -> Route {
    static KNOWN: OnceLock<Route> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        // SAFETY: the name is a C string. `dlsym` has no other requirement.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"backstory_mark".as_ptr()) };
        if !found.is_null() {
            // SAFETY: only the recorder exports this name (crates/recorder/c/mark.c), as a function
            // of this type.
            return Route::Recorder(unsafe {
                std::mem::transmute::<*mut libc::c_void, TakeMark>(found)
            });
        }
        match std::env::var_os("BACKSTORY_ARENA") {
            Some(_) => Route::Open,
            None => Route::Off,
        }
    })
}

/// True if statements are recorded.
pub fn is_recorded() -> bool {
    !matches!(route(), Route::Off)
}

/// Makes a mark.
pub(crate) fn send(mark: &MarkPath) {
    let bytes = mark.as_bytes();
    if let (Route::Recorder(take), Ok(path)) = (route(), CString::new(bytes)) {
        // SAFETY: the path is a C string that lives during the call.
        if unsafe { take(path.as_ptr()) } != 0 {
            return;
        }
    }
    // The path exists nowhere. The attempt is the mark.
    let _ = File::open(OsStr::from_bytes(bytes));
}
