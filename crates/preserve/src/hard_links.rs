//! The names that files were given by link(2) while the run was recorded.
//!
//! Invariant: a name counts only while it leads to the file, and not after a process was allowed to
//! remove it. If two processes remove two names at the same moment, one of them learns that the
//! other's name does not count.
//!
//! Absent: names that existed before the run, unless a link was made of them.

use super::FileKey;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};
use std::collections::HashMap;

/// Most names that are remembered. Beyond that, a content is copied before a name goes.
const NAMES: usize = 1 << 18;
/// Most names of one file.
const OF_ONE: usize = 16;

/// A directory, and a name in it.
type Name = (FileKey, Box<[u8]>);
/// The same, with a path that leads there.
type NameWithPath = (Name, Box<[u8]>);

/// All names that link(2) gave or used.
#[derive(Debug, Default)]
pub(super) struct HardLinks {
    of: HashMap<FileKey, Vec<NameWithPath>>,
    count: usize,
}

impl HardLinks {
    /// Adds a name that link(2) gave or used.
    pub(super) fn add(&mut self, path: Vec<u8>) {
        let (Some(file), Some(name)) = (file_at(&path), name(&path)) else {
            return;
        };
        if self.count >= NAMES {
            return;
        }
        let names = self.of.entry(file).or_default();
        if names.len() < OF_ONE && names.iter().all(|(known, _)| *known != name) {
            names.push((name, path.into()));
            self.count += 1;
        }
    }

    /// Returns whether a file that is about to lose the name `path` keeps another one. From now on
    /// `path` does not count.
    pub(super) fn stays(&mut self, file: FileKey, path: &[u8]) -> bool {
        let Some(names) = self.of.get_mut(&file) else {
            return false;
        };
        // If the disappearing name is unknown, no name counts.
        let Some(going) = name(path) else {
            return false;
        };
        let before = names.len();
        names.retain(|(known, path)| *known != going && file_at(path) == Some(file));
        self.count -= before - names.len();
        let stays = !names.is_empty();
        if !stays {
            self.of.remove(&file);
        }
        stays
    }
}

fn key(path: &[u8], follow: AtFlags, kind: FileType) -> Option<FileKey> {
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC | follow;
    let st = rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE | StatxFlags::INO).ok()?;
    let device = rustix::fs::makedev(st.stx_dev_major, st.stx_dev_minor);
    let is = FileType::from_raw_mode(st.stx_mode.into()) == kind;
    is.then_some((device as u32, st.stx_ino))
}

/// The regular file with this name.
fn file_at(path: &[u8]) -> Option<FileKey> {
    key(path, AtFlags::SYMLINK_NOFOLLOW, FileType::RegularFile)
}

/// One value for all paths that end in the same directory entry.
fn name(path: &[u8]) -> Option<Name> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let (directory, entry) = (path.get(..=slash)?, path.get(slash + 1..)?);
    let plain = ![&b""[..], b".", b".."].contains(&entry);
    let directory = key(directory, AtFlags::empty(), FileType::Directory)?;
    plain.then(|| (directory, entry.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn bytes(path: &Path) -> Vec<u8> {
        path.as_os_str().as_bytes().to_vec()
    }

    #[test]
    fn a_file_stays_while_one_name_has_not_been_released() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two, sub] = ["one", "two", "sub"].map(|name| dir.path().join(name));
        fs::write(&one, "content").unwrap();
        fs::hard_link(&one, &two).unwrap();
        fs::create_dir(&sub).unwrap();
        let file = file_at(&bytes(&one)).unwrap();
        let mut names = HardLinks::default();
        // Another path to the same name.
        let beside = sub.join("../two");
        for path in [&one, &two, &beside] {
            names.add(bytes(path));
        }
        assert!(names.stays(file, &bytes(&beside)));
        // Both removals may be under way at once.
        assert!(!names.stays(file, &bytes(&one)));
        assert_eq!(names.count, 0);
    }

    #[test]
    fn a_name_that_leads_elsewhere_by_now_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        fs::write(&one, "content").unwrap();
        fs::hard_link(&one, &two).unwrap();
        let file = file_at(&bytes(&one)).unwrap();
        let mut names = HardLinks::default();
        names.add(bytes(&one));
        names.add(bytes(&two));
        fs::remove_file(&two).unwrap();
        fs::write(&two, "another").unwrap();
        assert!(!names.stays(file, &bytes(&one)));
    }
}
