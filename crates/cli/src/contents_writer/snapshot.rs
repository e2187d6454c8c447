//! The directories and symbolic links on the paths of files, for the directory snapshot of a run. A
//! replay needs them to resolve the paths.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use backstory_eventlog::event::Bytes;
use backstory_files::NearDirectories;
use backstory_store::facts::{Listed, Looked, SnapshotEntry};
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{AtFlags, FileType, StatxFlags};

/// Symbolic links that are followed in one path, as many as the kernel follows.
const MOST_LINKS: usize = 40;

/// The entries of a directory with more than these are not stored.
const MOST_ENTRIES: usize = 10_000;

/// The paths that a run used.
pub struct UsedPaths<'a> {
    pub all: &'a [Bytes],
    /// Directories whose listings are stored.
    pub listed: &'a [PathBuf],
    /// Files whose status is stored.
    pub looked: &'a FxHashSet<Bytes>,
    /// Files that were just opened without following a link.
    pub opened: &'a FxHashSet<Bytes>,
}

/// The directories and links on these paths, in the order of their bytes.
pub fn around(used: &UsedPaths<'_>) -> Vec<SnapshotEntry> {
    let mut walk = PathWalk::default();
    for path in used.all {
        let looked = used.looked.contains(path);
        // The directory matters, and not the file.
        if looked || !used.opened.contains(path) || !walk.is_in_plain_directory(path) {
            walk.walk(path, looked);
        }
    }
    let mut found = walk.found;
    walk.files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    for (path, file) in walk.files {
        let directory = match directory_of(&path) {
            b"" => b"/",
            directory => directory,
        };
        if let Some(place) = found.get_mut(directory) {
            place.looked.push(file);
        }
    }
    // A directory with two names is listed once, so that its files are not counted as linked twice.
    let real: HashSet<PathBuf> = used
        .listed
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let mut listings = Vec::new();
    for real in real {
        if let Some(place) = found.get_mut(real.as_os_str().as_bytes())
            && let Some(entries) = entries(&real)
        {
            // The time after the names: a change in between makes the listing one of unknown age.
            let meta = fs::metadata(&real).ok();
            place.mtime = meta.as_ref().map_or(0, modified);
            let device = meta.map_or(0, |meta| meta.dev());
            listings.push((device, place.path.clone(), entries));
        }
    }
    only_shared(&mut listings);
    for (_, path, entries) in listings {
        if let Some(place) = found.get_mut(&path) {
            place.listing = Some(entries);
        }
    }
    found.into_values().collect()
}

/// The modification time in ns since 1970.
fn modified(meta: &fs::Metadata) -> i64 {
    meta.mtime() * 1_000_000_000 + meta.mtime_nsec()
}

/// The directory of an absolute path; empty for the root directory.
fn directory_of(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    &path[..slash.unwrap_or(0)]
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

/// Clears the inode numbers of files that have only one name in all of these directories.
fn only_shared(listings: &mut [(u64, Bytes, Vec<Listed>)]) {
    let mut names: FxHashMap<(u64, u64), u32> = FxHashMap::default();
    for (device, _, entries) in &*listings {
        for entry in entries {
            *names.entry((*device, entry.shared)).or_default() += 1;
        }
    }
    for (device, _, entries) in listings {
        for entry in entries {
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
    seen: FxHashSet<Bytes>,
    /// Directories whose paths have no link, and are as short as they can be.
    plain: FxHashSet<Bytes>,
    near: NearDirectories,
    /// Files at the end of a path, with their status.
    files: Vec<(Bytes, Looked)>,
}

impl PathWalk {
    /// True if nothing but the last name of the path is left to look at.
    fn is_in_plain_directory(&self, path: &[u8]) -> bool {
        let directory = directory_of(path);
        let name = path.get(directory.len() + 1..).unwrap_or_default();
        !matches!(name, b"" | b"." | b"..") && self.plain.contains(directory)
    }

    /// Visits every prefix of the path and of the targets of its links. With `file`, also a file at
    /// the end.
    fn walk(&mut self, path: &[u8], file: bool) {
        if self.is_in_plain_directory(path) && self.look(path, file).is_none() {
            return;
        }
        let mut rest: Vec<PathBuf> = vec![OsStr::from_bytes(path).into()];
        let mut links = 0;
        while let Some(path) = rest.pop() {
            let Some(led) = self.follow(&path, file) else {
                continue;
            };
            links += 1;
            if links > MOST_LINKS {
                return;
            }
            rest.push(led);
        }
    }

    /// Visits every prefix of the path up to the first link. Returns where the link leads.
    fn follow(&mut self, path: &Path, file: bool) -> Option<PathBuf> {
        let mut at = PathBuf::from("/");
        let components: Vec<Component<'_>> = path.components().collect();
        for (number, component) in components.iter().enumerate() {
            match component {
                Component::Normal(name) => at.push(name),
                Component::ParentDir => drop(at.pop()),
                _ => continue,
            }
            if let Some(target) = self.look(at.as_os_str().as_bytes(), file) {
                let dir = at.parent().unwrap_or(Path::new("/"));
                let behind: PathBuf = components[number + 1..].iter().collect();
                let mut led = dir.join(target);
                if behind.components().next().is_some() {
                    led.push(behind);
                }
                return Some(led);
            }
        }
        let directory = directory_of(path.as_os_str().as_bytes());
        if at.as_os_str() == path.as_os_str() && self.found.contains_key(directory) {
            self.plain.insert(directory.into());
        }
        None
    }

    /// Records the directory, the link or, with `file`, the file at `path`. Returns the target of a
    /// link.
    fn look(&mut self, path: &[u8], file: bool) -> Option<PathBuf> {
        if let Some(place) = self.found.get(path) {
            let target = place.target.as_ref()?;
            return Some(OsStr::from_bytes(target).into());
        }
        if !self.seen.insert(path.into()) {
            return None;
        }
        let (directory, name) = self.near.locate(path);
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let meta = rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS).ok()?;
        let kind = FileType::from_raw_mode(meta.stx_mode.into());
        let modified = meta.stx_mtime.tv_sec * 1_000_000_000 + i64::from(meta.stx_mtime.tv_nsec);
        let (is_link, mode) = (kind == FileType::Symlink, u32::from(meta.stx_mode));
        if kind == FileType::RegularFile && file {
            let name = path.get(directory_of(path).len() + 1..)?.into();
            let looked = Looked {
                name,
                mode,
                size: meta.stx_size,
                mtime: modified,
            };
            self.files.push((path.into(), looked));
        }
        if kind != FileType::Directory && !is_link {
            return None;
        }
        let target = match is_link {
            true => Some(fs::read_link(OsStr::from_bytes(path)).ok()?),
            false => None,
        };
        let text = target.as_ref().map(|target| target.as_os_str().as_bytes());
        let place = SnapshotEntry {
            path: path.into(),
            mode,
            target: text.map(Into::into),
            mtime: if is_link { modified } else { 0 },
            listing: None,
            looked: Vec::new(),
        };
        self.found.insert(path.into(), place);
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
        let bytes = |name: &str| Bytes::from(dir.join(name).as_os_str().as_bytes());
        let opened = ["real/opened", "sub/opened", "real/opened"].map(bytes);
        let ways = ["link/g", "round/x", "none/x", "real/sub/../g"].map(bytes);
        let places = around(&UsedPaths {
            all: &[&ways[..], &opened].concat(),
            listed: &[dir.join("real")],
            looked: &FxHashSet::from_iter([bytes("link/g")]),
            opened: &opened.into_iter().collect(),
        });
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
