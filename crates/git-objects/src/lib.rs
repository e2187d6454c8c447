//! Reads the committed files of git repositories: which blob a file has, and the blob's content.
//!
//! In: paths of files, and of objects. Out: ids of blobs, and bytes. git itself is not used. The
//! configuration of a repository can name programs, and git starts them, for example to fetch a
//! missing object.
//!
//! Invariants:
//!
//! - No program is started, and nothing is written.
//! - An object takes at most three times [`LARGEST`] bytes of memory, also if its file is damaged.
//! - Bytes are not compared with the id that names them. A caller that needs certainty compares the
//!   content with its own digest.
//!
//! Absent: the index of git. A file that only the index has is lost with the next `git reset` or
//! `git gc`. Also absent: objects that a repository borrows from another one (`alternates`),
//! references in a reftable, indexes of packs of version 1, and filters of contents.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod committed;
pub mod delta;
mod loose;
mod object;
mod object_id;
mod pack;
#[cfg(test)]
mod tests;
pub mod work_tree;

use std::io::{self, ErrorKind};
use std::path::Path;

pub use committed::{CommittedBlob, CommittedFiles};
pub use object::{Kind, LARGEST, Object};
pub use object_id::ObjectId;

/// A repository in words, as a part of a sentence.
pub const STORE: &str = "a git repository";

/// Opens an object in a directory of objects. A crash can leave an empty file of an object that a
/// pack has, too.
///
/// # Errors
/// `NotFound` if the directory does not have it. `InvalidData` and others if it cannot be read.
pub fn open(objects: &Path, id: &ObjectId) -> io::Result<Object> {
    let damage = match loose::open(&id.path_in(objects)) {
        Ok(object) => return Ok(object),
        Err(error) => Some(error).filter(|error| !is_absent(error)),
    };
    let packed = pack::open(objects, id);
    packed.map_err(|error| damage.filter(|_| is_absent(&error)).unwrap_or(error))
}

/// Opens a blob by the path that it has as a loose object, `objects/ab/REST`. It may be in a pack.
///
/// # Errors
/// As [`open`], and `InvalidData` for other objects.
pub fn open_blob(path: &Path) -> io::Result<Object> {
    let (objects, id) = ObjectId::of_path(path)
        .ok_or_else(|| object::damaged("the path does not name an object of git"))?;
    let object = open(objects, &id)?;
    match object.kind() {
        Kind::Blob => Ok(object),
        _ => Err(object::damaged("the object of git is no blob")),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
