//! The standard input of a step that is executed again.
//!
//! A regular file is opened again, at its begin. Where the recorded input is gone, the user can
//! give one: `backstory rerun out < FILE`. Every other step reads nothing.

use std::fs::File;
use std::io;

use backstory_replay::rerun::unit_files::{OuterInput, UnitFiles};
use backstory_workflow::paths::to_path;
use rustix::fs::FileType;

/// The regular file that the user gives as standard input, at its begin.
pub fn given() -> Option<File> {
    let found = rustix::fs::fstat(rustix::stdio::stdin()).ok()?;
    let is_regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    // A file opened anew has an offset of its own.
    is_regular.then(|| File::open("/proc/self/fd/0").ok())?
}

/// The standard input of a step. `None`: it has none.
///
/// # Errors
///
/// If the recorded input cannot be opened.
pub fn of(unit: Option<&UnitFiles>) -> io::Result<Option<File>> {
    match unit.and_then(|unit| unit.input.as_ref()) {
        None => Ok(None),
        Some(OuterInput::File(path)) if to_path(path).exists() => {
            File::open(to_path(path)).map(Some)
        }
        Some(_) => Ok(given()),
    }
}
