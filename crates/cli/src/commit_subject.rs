//! A commit of git as the subject of a question: the file of its object.
//!
//! git writes a commit into the file `objects/AB/CDEF…`, whose path is the commit's hash. So the
//! version of that file stands for the commit. The command that wrote it is the command that
//! committed. The inputs of that command lead to the parents and to the files.
//!
//! An object that came by `clone` or `fetch` has no file of its own: it is a part of a pack. The
//! index beside the pack has its hash, and the version of the pack stands for the commit.
//!
//! In: `commit:HASH` or `git:HASH`, also by the beginning of the hash. Out: the versions of the
//! object or of its pack. Indexes are read by the worker, from stored contents.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_eventlog::event::Bytes;
use backstory_git_objects::work_tree::is_hash;
use backstory_graph::model::EntityKind;
use backstory_inspection::file_parts::{NoPart, PartName};
use backstory_inspection::{FormatReader, Trouble};
use backstory_query::Checkout;
use backstory_store::{AnnotationKind, EntityKey, GraphStore, RunAnnotations};

use crate::checkout;
use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::text::line::printable;
use crate::version_contents::VersionContents;

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

/// The versions of the file that stands for an object.
#[derive(Debug)]
pub struct GitObject {
    /// Those that a run made come first.
    pub versions: Vec<EntityKey>,
    /// Its whole hash.
    pub hash: String,
    /// The file is a pack with other objects.
    pub is_packed: bool,
}

/// The object with this hash, which may be cut.
///
/// # Errors
///
/// No recorded run knows such an object, or several objects begin so.
pub fn object(current: &CurrentStore, hash: &str) -> Result<GitObject, Failure> {
    let hash = hash.to_ascii_lowercase();
    let mut found = loose(current, &hash)?;
    let (mut is_packed, mut unread) = (false, Vec::new());
    // A clone within the machine also reads the objects of the other repository.
    if !is_made(&found) {
        match packed(current, &hash) {
            Ok(packs) => {
                unread = packs.unread;
                if found.is_empty() || is_made(&packs.found) {
                    (found, is_packed) = (packs.found, true);
                }
            }
            Err(failure) if found.is_empty() => return Err(failure),
            Err(_) => {}
        }
    }
    let many = found.len();
    match found.pop_first() {
        Some((hash, mut versions)) if many == 1 => {
            versions.sort_unstable();
            Ok(GitObject {
                versions: versions.into_iter().map(|(_, key)| key).collect(),
                hash,
                is_packed,
            })
        }
        Some(_) => Err(several(many, &hash)),
        None => Err(absent(&hash, &unread)),
    }
}

/// `unread`: why indexes that may have the object were not read.
fn absent(hash: &str, unread: &[String]) -> Failure {
    let more = match unread {
        [] => String::new(),
        [one] => format!("; {one}"),
        [first, others @ ..] => {
            let count = others.len();
            format!("; {first}; further indexes that were not read: {count}")
        }
    };
    Failure::not_found(format!(
        "no recorded run made or read the commit {hash}, neither as a file of its own nor in a \
         pack whose index is stored{more}"
    ))
}

fn several(many: usize, hash: &str) -> Failure {
    Failure::not_found(format!(
        "{many} recorded objects of git begin with {hash}: give more digits"
    ))
}

/// Versions of the files of objects, by the objects' hashes. Those that no run made come last.
type ObjectFiles = BTreeMap<String, Vec<(bool, EntityKey)>>;

/// True if a run made one of the files.
fn is_made(files: &ObjectFiles) -> bool {
    files.values().flatten().any(|(is_found, _)| !is_found)
}

/// The objects that have files of their own.
fn loose(current: &CurrentStore, hash: &str) -> Result<ObjectFiles, Failure> {
    let (directory, rest) = hash.split_at(2);
    let mut found = ObjectFiles::new();
    for objects in object_directories(current)? {
        let prefix = [objects.join(directory).as_os_str().as_bytes(), b"/"].concat();
        let object = |path: &[u8]| -> Option<String> {
            let name = std::str::from_utf8(path.strip_prefix(&prefix[..])?).ok()?;
            let whole = format!("{directory}{name}");
            (name.starts_with(rest) && is_hash(&whole)).then_some(whole)
        };
        for key in current
            .store
            .below(&prefix, &|path| object(path).is_some())?
        {
            let entity = current.store.entity(key)?;
            if entity.kind != EntityKind::File {
                continue;
            }
            let names = std::iter::once(&entity.path).chain(&entity.aliases);
            for whole in names.filter_map(|name| object(name)) {
                let files = found.entry(whole).or_default();
                files.push((entity.version == 0, key));
            }
        }
    }
    Ok(found)
}

/// The objects in packs.
struct PackedObjects {
    found: ObjectFiles,
    /// Why an index that is available was not read: a sentence for each.
    unread: Vec<String>,
}

/// The objects that are in packs of recorded repositories.
fn packed(current: &CurrentStore, hash: &str) -> Result<PackedObjects, Failure> {
    let contents = VersionContents::new(current);
    let reader = FormatReader::new();
    let wanted = PartName::Member(hash.to_owned());
    let (mut found, mut unread) = (ObjectFiles::new(), Vec::new());
    for (path, keys) in indexes(current)? {
        let mut newest = keys.iter().rev();
        let Some(index) = newest.find_map(|key| contents.read(*key).ok().flatten()) else {
            if keys.iter().any(|key| contents.is_too_large(*key)) {
                let object = printable(&path);
                unread.push(Trouble::TooLarge { object }.to_string());
            }
            continue;
        };
        let Some(format) = reader.format_of(&path, &index) else {
            continue;
        };
        let place = match reader.part(format, &path, &index, &wanted) {
            Ok(Ok(place)) => place,
            Ok(Err(NoPart::Misnamed(_))) => return Err(several(2, hash)),
            Ok(Err(NoPart::Unreadable(why))) => {
                unread.push(format!("cannot read {}: {why}", printable(&path)));
                continue;
            }
            Ok(Err(_)) => continue,
            Err(trouble @ Trouble::NoWorker { .. }) => return Err(Failure::not_found(trouble)),
            Err(trouble) => {
                unread.push(trouble.to_string());
                continue;
            }
        };
        let Some(whole) = place.name.filter(|whole| is_hash(whole)) else {
            continue;
        };
        let pack = [path.strip_suffix(INDEX).unwrap_or(&path), PACK].concat();
        for key in current.store.at_path(&pack)? {
            let entity = current.store.entity(key)?;
            if entity.kind == EntityKind::File {
                let packs = found.entry(whole.clone()).or_default();
                packs.push((entity.version == 0, key));
            }
        }
    }
    Ok(PackedObjects { found, unread })
}

/// The ends of the names of an index and of its pack, and the part of a path before its name.
const INDEX: &[u8] = b".idx";
const PACK: &[u8] = b".pack";
const PACKS: &[u8] = b"/objects/pack/pack-";

/// The recorded indexes of packs, with their versions.
fn indexes(current: &CurrentStore) -> Result<BTreeMap<Bytes, Vec<EntityKey>>, Failure> {
    let is_index =
        |path: &[u8]| path.ends_with(INDEX) && path.windows(PACKS.len()).any(|part| part == PACKS);
    let mut found: BTreeMap<Bytes, Vec<EntityKey>> = BTreeMap::new();
    for key in current.store.below(b"/", &is_index)? {
        let entity = current.store.entity(key)?;
        let names = std::iter::once(&entity.path).chain(&entity.aliases);
        if let Some(name) = names.into_iter().find(|name| is_index(name)) {
            found.entry(name.clone()).or_default().push(key);
        }
    }
    Ok(found)
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
