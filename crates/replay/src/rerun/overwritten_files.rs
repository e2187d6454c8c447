//! Former files that `rerun` overwrote, kept in the store's directory for `undo`.
//!
//! In: a directory, and the path of a file. Out: copies of the files that were at the path, each
//! with the time at which it was overwritten. A copy has the bytes, holes, extended attributes,
//! mode and times of the file. Invariant: a copy that is listed is complete, because it is moved to
//! its place.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use backstory_contents::digest_of;
use backstory_eventlog::event::Time;
use backstory_ordering::SmallSort;

/// The directory of the copies, below the store's.
pub const DIRECTORY: &str = "overwritten";

/// At most this many copies of one path stay.
const MOST: usize = 8;

/// A former file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverwrittenFile {
    /// The copy.
    pub copy: PathBuf,
    /// When it was overwritten, in ns since 1970.
    pub time: Time,
    /// Device and inode of the file, if it had several hard links.
    pub inode: Option<(u64, u64)>,
}

/// The former files that were at a path, the oldest first.
pub fn of(root: &Path, path: &[u8]) -> Vec<OverwrittenFile> {
    let Ok(directory) = directory(root, path) else {
        return Vec::new();
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let name = entry.file_name();
        let mut numbers = name.to_str()?.split('-');
        let time = numbers.next()?.parse().ok()?;
        let inode = numbers.next().zip(numbers.next());
        let inode = inode.and_then(|(dev, ino)| Some((dev.parse().ok()?, ino.parse().ok()?)));
        let copy = entry.path();
        Some(OverwrittenFile { copy, time, inode })
    });
    let mut all: Vec<OverwrittenFile> = found.collect();
    all.sort_small_by_key(|file| file.time);
    all
}

/// The place for a new copy. Makes room for it. `inode`: of a file with several hard links.
///
/// # Errors
///
/// If the directory cannot be made.
pub fn place_for(root: &Path, path: &[u8], inode: Option<(u64, u64)>) -> io::Result<PathBuf> {
    let directory = directory(root, path)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)?;
    let all = of(root, path);
    for old in all.iter().take((all.len() + 1).saturating_sub(MOST)) {
        fs::remove_file(&old.copy)?;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.unwrap_or_default().as_nanos();
    let name = match inode {
        Some((device, inode)) => format!("{now}-{device}-{inode}"),
        None => now.to_string(),
    };
    Ok(directory.join(name))
}

fn directory(root: &Path, path: &[u8]) -> io::Result<PathBuf> {
    let mut name = path;
    Ok(root.join(digest_of(&mut name)?.0.to_string()))
}
