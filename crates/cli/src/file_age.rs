//! The age of a file, by its time of modification. An empty file of the store serves as a mark: its
//! age is the time since a piece of work was last done.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use backstory_files::regular;

/// True if the file was modified less than `age` ago. False if it does not exist.
pub fn is_younger(file: &Path, age: Duration) -> bool {
    let modified = file.metadata().and_then(|meta| meta.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|passed| passed < age))
}

/// Gives a mark the present time. Makes it if it is missing.
pub fn mark(file: &Path) -> io::Result<()> {
    regular::open_private(file)?.set_modified(SystemTime::now())
}
