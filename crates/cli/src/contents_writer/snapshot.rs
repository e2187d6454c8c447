//! The directories and symbolic links on the paths of files, for the directory snapshot of a run. A
//! replay needs them to resolve the paths.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use backstory_eventlog::event::Bytes;
use backstory_store::facts::{Listed, Looked, SnapshotEntry};

/// Symbolic links that are followed in one path, as many as the kernel follows.
const MOST_LINKS: usize = 40;

/// The entries of a directory with more than these are not stored.
const MOST_ENTRIES: usize = 10_000;

/// The directories and links on these paths, in the order of their bytes. The directories in
/// `listed` come with their entries, and the files in `looked` with their status.
pub fn around(
    paths: &[PathBuf],
    listed: &[PathBuf],
    looked: &HashSet<PathBuf>,
) -> Vec<SnapshotEntry> {
    let mut walk = PathWalk::default();
    for path in paths {
        walk.walk(path, looked.contains(path));
    }
    let mut found = walk.found;
    for (path, file) in walk.files {
        let directory = path.parent().unwrap_or(Path::new("/"));
        if let Some(place) = found.get_mut(directory.as_os_str().as_bytes()) {
            place.looked.push(file);
        }
    }
    // A directory with two names is listed once, so that its files are not counted as linked twice.
    let real: HashSet<PathBuf> = listed
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    for real in real {
        if let Some(place) = found.get_mut(real.as_os_str().as_bytes()) {
            place.listing = entries(&real);
        }
    }
    let mut listings = Vec::new();
    for place in found.values_mut() {
        let device = fs::metadata(OsStr::from_bytes(&place.path)).map_or(0, |meta| meta.dev());
        listings.extend(place.listing.as_mut().map(|entries| (device, entries)));
    }
    only_shared(&mut listings);
    found.into_values().collect()
}

/// The entries of a directory, in the order of the file system. `None` if it cannot be listed or
/// has too many entries.
fn entries(directory: &Path) -> Option<Vec<Listed>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        if entries.len() == MOST_ENTRIES {
            return None;
        }
        let kind = entry.file_type().map_or(0, |kind| match () {
            () if kind.is_dir() => 0o040_000,
            () if kind.is_symlink() => 0o120_000,
            () if kind.is_file() => 0o100_000,
            () => 0,
        });
        entries.push(Listed {
            name: entry.file_name().into_vec().into(),
            kind,
            shared: entry.ino(),
        });
    }
    Some(entries)
}

fn as_it_is(path: &Path, meta: &fs::Metadata) -> Option<Looked> {
    Some(Looked {
        name: path.file_name()?.as_bytes().into(),
        mode: meta.mode(),
        size: meta.len(),
        mtime: time(meta),
    })
}

fn time(meta: &fs::Metadata) -> i64 {
    meta.mtime() * 1_000_000_000 + meta.mtime_nsec()
}

/// Clears the inode numbers of files that have only one name in all of these directories.
fn only_shared(listings: &mut [(u64, &mut Vec<Listed>)]) {
    let mut names: HashMap<(u64, u64), u32> = HashMap::new();
    for (device, entries) in &*listings {
        for entry in &**entries {
            *names.entry((*device, entry.shared)).or_default() += 1;
        }
    }
    for (device, entries) in listings {
        for entry in &mut **entries {
            if names[&(*device, entry.shared)] == 1 {
                entry.shared = 0;
            }
        }
    }
}

/// The directories, links and files that were found.
#[derive(Default)]
struct PathWalk {
    found: BTreeMap<Bytes, SnapshotEntry>,
    seen: HashSet<PathBuf>,
    /// Files at the end of a path, with their status.
    files: BTreeMap<PathBuf, Looked>,
}

impl PathWalk {
    /// Visits every prefix of the path and of the targets of its links. With `file`, also a file at
    /// the end.
    fn walk(&mut self, path: &Path, file: bool) {
        let mut rest: Vec<PathBuf> = vec![path.to_owned()];
        let mut links = 0;
        while let Some(path) = rest.pop() {
            let mut at = PathBuf::from("/");
            let components: Vec<Component<'_>> = path.components().collect();
            for (number, component) in components.iter().enumerate() {
                match component {
                    Component::Normal(name) => at.push(name),
                    Component::ParentDir => drop(at.pop()),
                    _ => continue,
                }
                if let Some(target) = self.look(&at, file) {
                    links += 1;
                    if links > MOST_LINKS {
                        return;
                    }
                    let dir = at.parent().unwrap_or(Path::new("/"));
                    let behind: PathBuf = components[number + 1..].iter().collect();
                    let mut led = dir.join(target);
                    if behind.components().next().is_some() {
                        led.push(behind);
                    }
                    rest.push(led);
                    break;
                }
            }
        }
    }

    /// Records the directory, the link or, with `file`, the file at `path`. Returns the target of a
    /// link.
    fn look(&mut self, path: &Path, file: bool) -> Option<PathBuf> {
        let key: Bytes = path.as_os_str().as_bytes().into();
        if let Some(place) = self.found.get(&key) {
            let target = place.target.as_ref()?;
            return Some(OsStr::from_bytes(target).into());
        }
        if !self.seen.insert(path.to_owned()) {
            return None;
        }
        let meta = fs::symlink_metadata(path).ok()?;
        if meta.is_file() && file {
            self.files.insert(path.to_owned(), as_it_is(path, &meta)?);
        }
        if !meta.is_dir() && !meta.is_symlink() {
            return None;
        }
        let target = match meta.is_symlink() {
            true => Some(fs::read_link(path).ok()?),
            false => None,
        };
        let place = SnapshotEntry {
            path: key.clone(),
            mode: meta.mode(),
            target: target
                .clone()
                .map(|target| target.into_os_string().into_vec().into()),
            mtime: if meta.is_symlink() { time(&meta) } else { 0 },
            listing: None,
            looked: Vec::new(),
        };
        self.found.insert(key, place);
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_directory_and_link_on_a_path_is_found() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        fs::create_dir_all(dir.join("real/sub")).unwrap();
        fs::write(dir.join("real/sub/f"), "four").unwrap();
        symlink("real", dir.join("link")).unwrap();
        symlink("../real/sub/f", dir.join("real/g")).unwrap();
        symlink("round", dir.join("round")).unwrap();
        let places = around(
            &[dir.join("link/g"), dir.join("round/x"), dir.join("none/x")],
            &[dir.join("real")],
            &HashSet::from([dir.join("link/g")]),
        );
        let real = places
            .iter()
            .find(|place| place.path.ends_with(b"/real"))
            .unwrap();
        let mut names: Vec<&[u8]> = real
            .listing
            .iter()
            .flatten()
            .map(|entry| &*entry.name)
            .collect();
        names.sort();
        let sub = places
            .iter()
            .find(|place| place.path.ends_with(b"/real/sub"));
        let looked = sub.and_then(|place| place.looked.first()).unwrap();
        assert!(*looked.name == *b"f" && looked.size == 4, "{looked:?}");
        assert_eq!(names, [&b"g"[..], b"sub"]);
        let below: Vec<(PathBuf, Option<Bytes>)> = places
            .iter()
            .map(|place| {
                (
                    PathBuf::from(OsStr::from_bytes(&place.path)),
                    place.target.clone(),
                )
            })
            .filter_map(|(path, target)| Some((path.strip_prefix(dir).ok()?.to_owned(), target)))
            .collect();
        let link = |to: &str| Some(Bytes::from(to.as_bytes()));
        let expected = [
            ("", None),
            ("link", link("real")),
            ("real", None),
            ("real/g", link("../real/sub/f")),
            ("real/sub", None),
            ("round", link("round")),
        ];
        assert_eq!(
            below,
            expected.map(|(path, target)| (PathBuf::from(path), target))
        );
        assert!(places.is_sorted_by(|a, b| a.path < b.path));
    }
}
