//! Finds the entities that a path means.
//!
//! The path means the present file, by its identity, wherever it was when it was recorded. Without
//! one, it means the last file that had this path.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use backstory_graph::marks;
use backstory_graph::model::{Entity, EntityKind};
use backstory_store::{EntityKey, RunKey, Store, VersionMatch};

use crate::peers::{REPLY, is_address};
use crate::resources::{is_of_database, versions_of};
use crate::{Error, Result, now, undone};

/// A path in all forms in which it may have been recorded.
pub struct Asked {
    /// Absolute, with `.` and `..` resolved in the text only, and links not followed.
    pub absolute: PathBuf,
    /// Absolute, with links followed. `None` if nothing exists there.
    pub real: Option<PathBuf>,
}

/// Directories with all links followed, each looked up once for many paths in it. `None`: it does
/// not exist.
#[derive(Debug, Default)]
pub struct RealDirectories(HashMap<PathBuf, Option<PathBuf>>);

impl RealDirectories {
    /// The real path of a file that exists and is no link. `None` for any other path.
    fn plain_file(&mut self, path: &Path) -> Option<PathBuf> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        if !self.0.contains_key(parent) {
            self.0.insert(parent.to_owned(), parent.canonicalize().ok());
        }
        let real = self.0.get(parent)?.as_ref()?.join(name);
        let text = std::fs::read_link(&real);
        let is_no_link = |error: &std::io::Error| error.kind() == ErrorKind::InvalidInput;
        text.is_err_and(|error| is_no_link(&error)).then_some(real)
    }
}

impl Asked {
    /// Examines a path as the user gave it.
    pub fn new(path: &Path) -> Result<Asked> {
        Asked::among(path, &mut RealDirectories::default())
    }

    /// The same for one of many paths.
    pub fn among(path: &Path, directories: &mut RealDirectories) -> Result<Asked> {
        let absolute = std::path::absolute(path).map_err(|source| Error::NoDirectory {
            path: path.to_owned(),
            source,
        })?;
        let plain = directories.plain_file(&absolute);
        Ok(Asked {
            real: plain.or_else(|| real(&absolute)),
            absolute: without_dots(&absolute),
        })
    }

    /// The paths to look for, the likeliest first.
    pub fn names(&self) -> Vec<&[u8]> {
        let mut names = vec![self.absolute.as_os_str().as_bytes()];
        if let Some(real) = self
            .real
            .as_ref()
            .map(|real| real.as_os_str().as_bytes())
            .filter(|real| *real != names[0])
        {
            names.push(real);
        }
        names
    }

    fn is_named(&self, entity: &Entity) -> bool {
        let names = self.names();
        std::iter::once(&entity.path)
            .chain(&entity.aliases)
            .any(|path| names.contains(&&**path))
    }
}

/// The real path. For a missing file, that of the nearest existing directory above, and the rest.
fn real(path: &Path) -> Option<PathBuf> {
    let mut rest = Vec::<OsString>::new();
    let mut at = path;
    loop {
        if let Ok(real) = at.canonicalize() {
            return Some(
                rest.into_iter()
                    .rev()
                    .fold(real, |all, name| all.join(name)),
            );
        }
        rest.push(at.file_name()?.to_owned());
        at = at.parent()?;
    }
}

fn without_dots(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The newest version of the file that `path` means.
pub fn find(store: &dyn Store, path: &Path, run: Option<RunKey>) -> Result<(EntityKey, Entity)> {
    let address = path.as_os_str().as_bytes();
    if is_address(address) {
        let key = at_address(store, address, run)?.pop();
        let key = key.ok_or_else(|| no_peer(address))?;
        return Ok((key, store.entity(key)?));
    }
    if is_of_database(address) {
        let newest = versions_of(store, address, run)?.into_iter().next();
        let key = newest.ok_or_else(|| Error::NotFound(path.to_owned()))?;
        return Ok((key, store.entity(key)?));
    }
    let asked = Asked::new(path)?;
    let found = match identified(store, &asked, run)? {
        Some(found) => Some(found),
        None => named(store, &asked, run)?,
    };
    if let Some(found) = found {
        return Ok(found);
    }
    // A file may have the name of a thing that a program named, and is meant first.
    let thing = match marks::is_name(address) {
        true => versions_of(store, address, run)?.into_iter().next(),
        false => None,
    };
    let key = thing.ok_or(Error::NotFound(asked.absolute))?;
    Ok((key, store.entity(key)?))
}

/// The newest version of the file that `path` means, and the same version in all other runs, latest
/// run first.
pub fn find_all(store: &dyn Store, path: &Path, run: Option<RunKey>) -> Result<Vec<EntityKey>> {
    let address = path.as_os_str().as_bytes();
    if is_address(address) {
        let mut keys = at_address(store, address, run)?;
        keys.reverse();
        if keys.is_empty() {
            return Err(no_peer(address));
        }
        return Ok(keys);
    }
    let (newest, entity) = find(store, path, run)?;
    let mut found = vec![newest];
    if let (Some(ident), None) = (entity.ident, run) {
        let mut same = store.same(&ident, VersionMatch::Any)?;
        same.sort_unstable();
        same.retain(|key| key.run() != newest.run());
        found.extend(same.into_iter().rev());
    }
    Ok(found)
}

/// Both directions of all connections to an address, those of the latest run last.
pub(crate) fn at_address(
    store: &dyn Store,
    address: &[u8],
    run: Option<RunKey>,
) -> Result<Vec<EntityKey>> {
    let mut keys = store.at_path(&[address, REPLY].concat())?;
    keys.extend(store.at_path(address)?);
    keys.retain(|key| run.is_none_or(|run| key.run() == run));
    keys.sort_unstable_by_key(|key| (key.run(), Reverse(*key)));
    Ok(keys)
}

pub(crate) fn no_peer(address: &[u8]) -> Error {
    Error::NoPeer(String::from_utf8_lossy(address).into_owned())
}

/// Finds the present file by identity in the latest run that knew it, preferably by one of the
/// names.
fn identified(
    store: &dyn Store,
    asked: &Asked,
    run: Option<RunKey>,
) -> Result<Option<(EntityKey, Entity)>> {
    let Some(ident) = now::ident(&asked.absolute, true) else {
        return Ok(None);
    };
    for role in [VersionMatch::Made, VersionMatch::Any] {
        let mut keys = store.same(&ident, role)?;
        if run.is_none() && role == VersionMatch::Made {
            undone::leave_out(store, &mut keys)?;
        }
        keys.sort_unstable_by_key(|key| Reverse(*key));
        let mut otherwise = None;
        // Run by run, the latest first: a file that every run has read is not examined in each of
        // them.
        for keys in keys.chunk_by(|a, b| a.run() == b.run()) {
            let found = best(store, keys.to_vec(), run, |key, entity| {
                (asked.is_named(entity), entity.last, key)
            })?;
            match &found {
                Some((_, entity)) if asked.is_named(entity) => return Ok(found),
                _ => otherwise = otherwise.or(found),
            }
        }
        if otherwise.is_some() {
            return Ok(otherwise);
        }
    }
    Ok(None)
}

/// Finds the last file that had this path. A version that a run made is preferred to one of which
/// only the path is known.
fn named(
    store: &dyn Store,
    asked: &Asked,
    run: Option<RunKey>,
) -> Result<Option<(EntityKey, Entity)>> {
    let mut keys = Vec::new();
    for name in asked.names() {
        keys.extend(store.at_path(name)?);
    }
    keys.sort_unstable();
    keys.dedup();
    if run.is_none() {
        undone::leave_out(store, &mut keys)?;
    }
    best(store, keys, run, |key, entity| {
        let there = entity.kind != EntityKind::Missing;
        (
            there,
            there && (entity.version > 0 || entity.ident.is_some()),
            key.run(),
            entity.last,
            entity.version,
            key,
        )
    })
}

/// The element with the greatest rank.
fn best<R: Ord>(
    store: &dyn Store,
    keys: Vec<EntityKey>,
    run: Option<RunKey>,
    rank: impl Fn(EntityKey, &Entity) -> R,
) -> Result<Option<(EntityKey, Entity)>> {
    let mut best: Option<(R, EntityKey, Entity)> = None;
    for key in keys
        .into_iter()
        .filter(|key| run.is_none_or(|run| key.run() == run))
    {
        let entity = store.entity(key)?;
        let rank = rank(key, &entity);
        if best.as_ref().is_none_or(|(most, ..)| rank > *most) {
            best = Some((rank, key, entity));
        }
    }
    Ok(best.map(|(_, key, entity)| (key, entity)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_absolute_and_looked_for_by_its_real_name_too() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().canonicalize().unwrap();
        std::fs::create_dir(dir.join("d")).unwrap();
        std::os::unix::fs::symlink("d", dir.join("l")).unwrap();
        std::fs::write(dir.join("d/f"), "").unwrap();
        let asked = Asked::new(&dir.join("d/./../l/f")).unwrap();
        assert_eq!(asked.absolute, dir.join("l/f"));
        assert_eq!(asked.real.as_deref(), Some(&*dir.join("d/f")));
        // One table for many paths gives the same answers.
        std::os::unix::fs::symlink("f", dir.join("d/m")).unwrap();
        let mut directories = RealDirectories::default();
        for name in ["l/f", "l/m", "d/f", "d/m", "d/../l/f"] {
            let asked = Asked::among(&dir.join(name), &mut directories).unwrap();
            assert_eq!(asked.real.as_deref(), Some(&*dir.join("d/f")), "{name}");
        }
        let gone = Asked::new(&dir.join("l/no/where")).unwrap();
        assert_eq!(gone.real.as_deref(), Some(&*dir.join("d/no/where")));
    }
}
