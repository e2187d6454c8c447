//! The options that recordings of one store have in common.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;

use backstory_session::Options;
use backstory_store::Home;

use crate::index;

/// The options of a recording of the user's: the indexer starts after it, and programs of other
/// users can load the library.
pub fn of_command(home: &Home, id: String) -> Options {
    Options {
        library_dir: library_dir(home),
        after: index::in_background(home),
        ..of_store(home, id)
    }
}

/// The options of a recording whose log another process of `backstory` reads.
pub fn of_store(home: &Home, id: String) -> Options {
    let (part, log) = (home.part_path(&id), home.log_path(&id));
    Options {
        verdicts: Some(home.verdicts_path()),
        ..Options::new(id, part, log, home.dir().join("lib"))
    }
}

/// The directory of the recorder's library. Commands of root often continue as other users (`su`,
/// `runuser`). These users could not read the library in root's private store, and their loader
/// would print an error.
fn library_dir(home: &Home) -> PathBuf {
    let own = home.dir().join("lib");
    if !rustix::process::geteuid().is_root() {
        return own;
    }
    let shared = PathBuf::from("/run/backstory");
    // The mode does not depend on the umask: a user who can write there decides what the programs
    // of root execute.
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(&shared);
    let private = fs::symlink_metadata(&shared)
        .is_ok_and(|m| m.is_dir() && m.uid() == 0 && m.permissions().mode() & 0o022 == 0);
    match made {
        Ok(()) if private => shared,
        _ => own,
    }
}
