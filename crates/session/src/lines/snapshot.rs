//! The state of a shell at the beginning of a line: its directory and its descriptors. The shell
//! waits meanwhile, so that both are as the line's first command finds them.
//!
//! Invariant: what cannot be read is unknown, and no error.

use crate::header::{Inherited, file};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The state of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProcessSnapshot {
    /// The current directory. Empty if it is unknown.
    pub directory: Vec<u8>,
    /// The open descriptors, in the order of their numbers.
    pub descriptors: Vec<Inherited>,
    /// Those of them that an `execve` closes.
    pub close_on_exec: Vec<i32>,
    /// The executable.
    pub program: Vec<u8>,
}

impl ProcessSnapshot {
    /// The present state of a process.
    pub(crate) fn of(pid: u32) -> ProcessSnapshot {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let mut snapshot = ProcessSnapshot {
            directory: link(&process.join("cwd")),
            program: link(&process.join("exe")),
            ..ProcessSnapshot::default()
        };
        for entry in fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let Some(fd) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let target = link(&entry.path());
            let flags = flags(&process.join("fdinfo").join(&name));
            if flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0) {
                snapshot.close_on_exec.push(fd);
            }
            snapshot.descriptors.push(Inherited {
                fd,
                file: file(&entry.path(), &target),
                target,
                access: flags.map_or(-1, |flags| flags & libc::O_ACCMODE),
            });
        }
        snapshot.descriptors.sort_unstable();
        snapshot.close_on_exec.sort_unstable();
        snapshot
    }

    /// The terminal that the standard error or input is. Empty without one.
    pub(crate) fn terminal(&self) -> Vec<u8> {
        let is_terminal =
            |target: &[u8]| target.starts_with(b"/dev/pts/") || target.starts_with(b"/dev/tty");
        let found = self.descriptors.iter().find(|d| is_terminal(&d.target));
        found.map_or(Vec::new(), |d| d.target.clone())
    }
}

fn link(path: &Path) -> Vec<u8> {
    fs::read_link(path).map_or(Vec::new(), |target| target.into_os_string().into_vec())
}

/// The flags of an open descriptor, from the second line of its file in `fdinfo`.
fn flags(path: &Path) -> Option<i32> {
    let mut text = [0; 256];
    let length = fs::File::open(path).ok()?.read(&mut text).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    i32::from_str_radix(flags.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_snapshot_has_directory_and_descriptors() {
        let file = tempfile::tempfile().unwrap();
        let snapshot = ProcessSnapshot::of(std::process::id());
        let here = std::env::current_dir().unwrap();
        assert_eq!(snapshot.directory, here.into_os_string().into_vec());
        let fd = file.as_raw_fd();
        let found = snapshot.descriptors.iter().find(|d| d.fd == fd).unwrap();
        assert_eq!(found.access, libc::O_RDWR);
        assert!(snapshot.close_on_exec.contains(&fd));
    }
}
