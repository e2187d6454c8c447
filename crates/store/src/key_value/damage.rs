//! Turns what an engine says about its files into errors that name the file.
//!
//! Engines check most of what they read, but not all: on some damaged files they panic. A program
//! that aborts on a panic reports the damage before: see
//! [`damaged_by_panic`](crate::damaged_by_panic).

use std::io::{self, ErrorKind};
#[cfg(feature = "rust-engine")]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

#[cfg(feature = "rust-engine")]
use crate::engine_panics;
use crate::{Error, Result};

/// How long to wait for another process that has the database.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two attempts to get the database.
const PAUSE: Duration = Duration::from_millis(5);

/// Does the work of an engine in Rust. A panic is [`Error::Corrupt`].
#[cfg(feature = "rust-engine")]
pub fn caught<R>(path: &Path, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let _working = engine_panics::working_on(path);
    // A database that has panicked is only closed, or fails again.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(corrupt(path, engine_panics::message(&*panic).to_owned())))
}

/// The error of a damaged file.
pub fn corrupt(path: &Path, detail: String) -> Error {
    Error::Corrupt {
        path: path.to_owned(),
        detail,
    }
}

/// The error of a failed operation of the system.
pub fn failed_io(doing: &'static str, path: &Path, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::Full(path.to_owned()),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Error::NotWritable {
            dir: path.to_owned(),
            reason: error.to_string(),
        },
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => corrupt(path, error.to_string()),
        _ => Error::io(doing, path, error),
    }
}

/// Tries again while another process has the database: [`Error::Busy`].
pub fn patiently<R>(mut attempt: impl FnMut() -> Result<R>) -> Result<R> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(Error::Busy(_)) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}
