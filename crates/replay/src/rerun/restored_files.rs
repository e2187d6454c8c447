//! Notes on files that a failed `rerun` put back.
//!
//! A file that is put back can have another inode and another status-change time than the version
//! that was recorded. The note says that it is nevertheless that version, and no work of a person.
//!
//! In: the directory of what is put aside, and a path. Out: whether the file there is still the one
//! that was put back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use backstory_contents::digest_of;
use backstory_workflow::paths::to_path;

use super::inode_state::InodeState;

/// The directory of the notes, below the store's.
const DIRECTORY: &str = "restored";

/// Notes that the file at a path was put back. `aside`: the directory of one step's outputs.
pub fn note(aside: &Path, path: &[u8]) {
    let Some(store) = aside.parent().and_then(Path::parent) else {
        return;
    };
    // Without the note, the file counts as changed, which is safe.
    let _ = write(store, path);
}

fn write(store: &Path, path: &[u8]) -> io::Result<()> {
    let file = file(store, path)?;
    fs::create_dir_all(file.parent().unwrap_or(store))?;
    fs::write(
        file,
        InodeState::of(&to_path(path).symlink_metadata()?).text(),
    )
}

/// True if the file at the path is as it was put back. `store`: the store's directory.
pub fn is_as_put_back(store: &Path, path: &[u8]) -> bool {
    let noted = || -> io::Result<bool> {
        let noted = InodeState::parse(&fs::read(file(store, path)?)?);
        let now = InodeState::of(&to_path(path).symlink_metadata()?);
        Ok(noted == Some(now))
    };
    noted().unwrap_or(false)
}

fn file(store: &Path, path: &[u8]) -> io::Result<PathBuf> {
    let mut name = path;
    Ok(store
        .join(DIRECTORY)
        .join(digest_of(&mut name)?.0.to_string()))
}
