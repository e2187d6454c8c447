//! A commit of git as the subject of a question: the file of its object.
//!
//! git writes a commit into the file `objects/AB/CDEF…`, whose path is the commit's hash. So the
//! version of that file stands for the commit. The command that wrote it is the command that
//! committed. The inputs of that command lead to the parents and to the files.
//!
//! In: `commit:HASH` or `git:HASH`, also by the beginning of the hash. Out: the object's versions.
//! Absent: objects that came in a pack (`clone`, `fetch`). They have no file of their own.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_graph::model::EntityKind;
use backstory_query::Checkout;
use backstory_store::{AnnotationKind, EntityKey, GraphStore, RunAnnotations};

use crate::checkout;
use crate::current_store::CurrentStore;
use crate::error::Failure;

/// The fewest digits of a hash, as in git.
const FEWEST: usize = 4;

/// The hash of the notation. `None` for other texts.
pub fn notation(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let hash = text
        .strip_prefix("commit:")
        .or_else(|| text.strip_prefix("git:"))?;
    let is_hash =
        (FEWEST..=64).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(hash)
}

/// The versions of an object, those that a run made first. With them its whole hash.
///
/// # Errors
///
/// No recorded run knows such an object, or several objects begin so.
pub fn versions(current: &CurrentStore, hash: &str) -> Result<(Vec<EntityKey>, String), Failure> {
    let hash = hash.to_ascii_lowercase();
    let (directory, rest) = hash.split_at(2);
    let mut hashes = BTreeSet::new();
    let mut found = Vec::new();
    for objects in object_directories(current)? {
        let prefix = [objects.join(directory).as_os_str().as_bytes(), b"/"].concat();
        let object = |path: &[u8]| -> Option<String> {
            let name = std::str::from_utf8(path.strip_prefix(&prefix[..])?).ok()?;
            let whole = format!("{directory}{name}");
            (name.starts_with(rest) && checkout::is_hash(&whole)).then_some(whole)
        };
        for key in current
            .store
            .below(&prefix, &|path| object(path).is_some())?
        {
            let entity = current.store.entity(key)?;
            let names = std::iter::once(&entity.path).chain(&entity.aliases);
            hashes.extend(names.filter_map(|name| object(name)));
            if entity.kind == EntityKind::File {
                found.push((entity.version == 0, key));
            }
        }
    }
    found.sort_unstable();
    let mut hashes = hashes.into_iter();
    match (hashes.next(), hashes.count()) {
        (Some(whole), 0) => Ok((found.into_iter().map(|(_, key)| key).collect(), whole)),
        (Some(_), more) => Err(Failure::not_found(format!(
            "{} recorded objects of git begin with {hash}: give more digits",
            more + 1
        ))),
        (None, _) => Err(Failure::not_found(format!(
            "no recorded run made or read the commit {hash} as a file of its own; a commit that \
             came by clone or fetch is part of a pack: ask `backstory of` about the pack"
        ))),
    }
}

/// The directories of objects: that of the current directory's repository, and those of the work
/// trees that recorded runs used.
fn object_directories(current: &CurrentStore) -> Result<BTreeSet<PathBuf>, Failure> {
    let mut found = BTreeSet::new();
    let here = std::env::current_dir().unwrap_or_default();
    found.extend(checkout::objects(&here));
    let all = current
        .store
        .annotations_of(AnnotationKind::Checkout, None)?;
    for checkout in all.iter().filter_map(Checkout::of) {
        let root = Path::new(&checkout.root);
        // The work tree may be gone; then its objects were in the usual place.
        let objects = checkout::objects(root);
        found.insert(objects.unwrap_or_else(|| root.join(".git/objects")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::notation;

    #[test]
    fn a_commit_is_written_with_its_kind() {
        assert_eq!(notation(b"commit:0a1B"), Some("0a1B"));
        assert_eq!(notation(b"git:0123456789"), Some("0123456789"));
        for other in ["0a1b", "commit:", "commit:0a1", "commit:main", "git:x0a1b"] {
            assert_eq!(notation(other.as_bytes()), None, "{other}");
        }
    }
}
