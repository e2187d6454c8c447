//! The latest directories in which files were looked up, so that the kernel does not walk the path
//! of each file.
//!
//! A directory is opened when a second file of it is looked up, because many have only one.
//! Invariant: at most [`NEAR`] descriptors are open.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};

/// Number of directories kept open. A program that copies alternates between two.
const NEAR: usize = 4;

/// The latest directories, the most recent first.
#[derive(Debug, Default)]
pub struct NearDirectories(Vec<NearDirectory>);

#[derive(Debug)]
struct NearDirectory {
    /// With the slash at its end.
    path: Vec<u8>,
    opened: Option<OwnedFd>,
}

impl NearDirectories {
    /// The descriptor and the path by which a call finds the file at an absolute path. They are
    /// those of an open directory and of the name in it, or the path itself.
    pub fn locate<'p>(&mut self, path: &'p [u8]) -> (BorrowedFd<'_>, &'p [u8]) {
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = path.split_at(slash.map_or(0, |slash| slash + 1));
        if name.is_empty() || directory.len() <= 1 {
            return (CWD, path);
        }
        let Some(at) = self.0.iter().position(|near| near.path == directory) else {
            self.0.truncate(NEAR - 1);
            let met = NearDirectory {
                path: directory.to_vec(),
                opened: None,
            };
            self.0.insert(0, met);
            return (CWD, path);
        };
        self.0[..=at].rotate_right(1);
        let near = &mut self.0[0];
        if near.opened.is_none() {
            let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            near.opened = rustix::fs::open(directory, how, Mode::empty()).ok();
        }
        match &near.opened {
            Some(opened) => (opened.as_fd(), name),
            None => (CWD, path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{AtFlags, statat};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_is_found_however_often_its_directory_was() {
        let tmp = tempfile::tempdir().unwrap();
        let mut near = NearDirectories::default();
        let directories = ["a", "b", "c", "d", "e", "a/f"].map(|name| tmp.path().join(name));
        for directory in &directories {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("x"), "").unwrap();
        }
        for step in [0, 0, 0, 1, 0, 1, 5, 5, 2, 3, 4, 0, 0, 5, 4, 4] {
            let path = directories[step].join("x");
            let (directory, name) = near.locate(path.as_os_str().as_bytes());
            let found = statat(directory, name, AtFlags::empty()).unwrap();
            assert_eq!(found.st_ino, path.metadata().unwrap().ino());
        }
        assert!(near.0.iter().any(|directory| directory.opened.is_some()));
        assert!(near.0.len() <= NEAR);
        for path in ["/", "/x", "x", "/none/x", "/none/x"] {
            assert_eq!(near.locate(path.as_bytes()).1, path.as_bytes());
        }
    }
}
