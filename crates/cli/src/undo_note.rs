//! The note that `undo` and `redo` leave for a file in the store's directory. It names the content
//! that they put back, and its place in the file's history.
//!
//! Invariant: a note counts only while the file has the content that it names.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_files::Digest;

use crate::subject;

/// The note of one file.
pub struct UndoNote {
    file: PathBuf,
}

impl UndoNote {
    /// The note of the file at an absolute path. `store`: the store's directory.
    ///
    /// # Errors
    /// If the name has no digest.
    pub fn of(store: &Path, path: &Path) -> io::Result<UndoNote> {
        let name = digest_of(path.as_os_str().as_bytes())?.to_string();
        Ok(UndoNote {
            file: store.join("undone").join(name),
        })
    }

    /// The digest of the content, and its place.
    pub fn read(&self) -> Option<(Digest, usize)> {
        let text = fs::read_to_string(&self.file).ok()?;
        let (digest, at) = text.trim().split_once(' ')?;
        Some((digest.parse().ok()?, at.parse().ok()?))
    }

    /// Without the note, the newest of equal contents is meant.
    pub fn write(&self, digest: Digest, at: usize) {
        let directory = self.file.parent().unwrap_or(Path::new("/"));
        let _ = fs::create_dir_all(directory)
            .and_then(|()| fs::write(&self.file, format!("{digest} {at}\n")));
    }
}

/// True if the file has the content that `undo` or `redo` put there.
pub fn is_put_back(store: &Path, path: &Path) -> bool {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let note = UndoNote::of(store, &path).ok().and_then(|note| note.read());
    note.is_some_and(|(digest, _)| subject::digest_of_file(&path) == Some(digest))
}

/// The digest of a content in memory.
///
/// # Errors
/// As [`backstory_contents::digest_of`].
pub fn digest_of(mut content: &[u8]) -> io::Result<Digest> {
    backstory_contents::digest_of(&mut content).map(|(digest, _)| digest)
}
