//! The content of a directory: names, types, modes, contents, and which names are one file. Times
//! and inode numbers are left out.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// One name of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// Type and permission bits.
    pub mode: u32,
    /// Contents, or a link's text.
    pub contents: Vec<u8>,
    /// The first name (in order) of the same file, if this is a further one.
    pub same_as: Option<Vec<u8>>,
}

/// Everything below a directory, by relative path.
pub type Snapshot = BTreeMap<Vec<u8>, Thing>;

/// Takes a snapshot of `directory`.
pub fn take(directory: &Path) -> io::Result<Snapshot> {
    let mut snapshot = Snapshot::new();
    let mut inodes = HashMap::new();
    walk(directory, b"", &mut snapshot, &mut inodes)?;
    Ok(snapshot)
}

fn walk(
    directory: &Path,
    prefix: &[u8],
    snapshot: &mut Snapshot,
    inodes: &mut HashMap<u64, Vec<u8>>,
) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let mut name = prefix.to_vec();
        name.extend_from_slice(entry.file_name().as_bytes());
        let meta = fs::symlink_metadata(&path)?;
        let contents = if meta.is_file() {
            fs::read(&path)?
        } else if meta.is_symlink() {
            fs::read_link(&path)?.as_os_str().as_bytes().to_vec()
        } else {
            Vec::new()
        };
        let same_as = match inodes.get(&meta.ino()) {
            Some(first) if !meta.is_dir() && !meta.file_type().is_socket() => Some(first.clone()),
            _ => {
                inodes.insert(meta.ino(), name.clone());
                None
            }
        };
        snapshot.insert(
            name.clone(),
            Thing {
                mode: meta.mode(),
                contents,
                same_as,
            },
        );
        if meta.is_dir() {
            name.push(b'/');
            walk(&path, &name, snapshot, inodes)?;
        }
    }
    Ok(())
}

/// The differences of two snapshots, one line per name. Empty if they are equal.
pub fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for name in before
        .keys()
        .chain(after.keys().filter(|n| !before.contains_key(*n)))
    {
        let shown = String::from_utf8_lossy(name);
        match (before.get(name), after.get(name)) {
            (Some(_), None) => lines.push(format!("{shown}: is not there")),
            (None, Some(_)) => lines.push(format!("{shown}: should not be there")),
            (Some(a), Some(b)) if a.mode != b.mode => {
                lines.push(format!("{shown}: mode {:o} became {:o}", a.mode, b.mode))
            }
            (Some(a), Some(b)) if a.contents != b.contents => {
                lines.push(format!("{shown}: contents differ"))
            }
            (Some(a), Some(b)) if a.same_as != b.same_as => {
                lines.push(format!("{shown}: linked differently"))
            }
            _ => {}
        }
    }
    lines
}
