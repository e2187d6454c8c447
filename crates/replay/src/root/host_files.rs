//! The machine's files that the run did not touch, for `--allow-host`: all that are not planned and
//! not known to be missing.
//!
//! Invariant: they are read-only, including all mounts below them.

use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use backstory_workflow::paths::to_path;
use rustix::mount::mount_bind_recursive;

use super::{HOST, OWN, protect, show};
use crate::plan::Plan;
use crate::{Error, Result};

/// Mounts the machine's other files beside the planned ones.
pub fn rest(plan: &Plan) -> Result<()> {
    let mut rest = HostFiles {
        plan,
        trees: Vec::new(),
    };
    rest.beside(Path::new(HOST), Path::new("/"))?;
    rest.protect()
}

struct HostFiles<'p> {
    plan: &'p Plan,
    /// Directories that are mounted with all mounts below them.
    trees: Vec<PathBuf>,
}

impl HostFiles<'_> {
    /// Adds the entries of directory `from` that directory `to` lacks.
    fn beside(&mut self, from: &Path, to: &Path) -> Result<()> {
        // A directory that cannot be listed shows nothing.
        let Ok(entries) = fs::read_dir(from) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let (here, there) = (entry.path(), to.join(entry.file_name()));
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            match fs::symlink_metadata(&there) {
                Ok(meta) if meta.is_dir() && kind.is_dir() && !is_kernels(&there) => {
                    self.beside(&here, &there)?
                }
                Ok(_) => {}
                Err(_) if self.plan.absent.contains(there.as_os_str().as_bytes()) => {}
                Err(_) if kind.is_symlink() => {
                    // The link may have gone since the directory was listed.
                    let Ok(target) = fs::read_link(&here) else {
                        continue;
                    };
                    symlink(target, &there).map_err(Error::io("make", &there))?;
                }
                Err(_) if kind.is_dir() => self.directory(&here, there)?,
                Err(_) if kind.is_file() => {
                    fs::write(&there, "").map_err(Error::io("make", &there))?;
                    unless_gone(show(&here, &there), || fs::remove_file(&there))?;
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Mounts a whole directory. A directory in which the run made something is added entry by
    /// entry, without that.
    fn directory(&mut self, from: &Path, to: PathBuf) -> Result<()> {
        fs::create_dir(&to).map_err(Error::io("make", &to))?;
        let below = self
            .plan
            .absent
            .range(to.as_os_str().as_bytes().to_vec()..)
            .next();
        if below.is_some_and(|path| to_path(path).starts_with(&to)) {
            return self.beside(from, &to);
        }
        // Mounts below a mount cannot be left out.
        match mount_bind_recursive(from, &to).map_err(Error::build("show", from)) {
            Ok(()) => {
                self.trees.push(to);
                Ok(())
            }
            failed => unless_gone(failed, || fs::remove_dir(&to)),
        }
    }

    /// A remount affects one mount, not those below it.
    fn protect(&self) -> Result<()> {
        let list = "/proc/self/mountinfo";
        let text = fs::read(list).map_err(Error::io("read", list))?;
        for line in text.split(|&byte| byte == b'\n') {
            let Some(point) = line.split(|&byte| byte == b' ').nth(4).map(unescaped) else {
                continue;
            };
            if self.trees.iter().any(|tree| point.starts_with(tree)) {
                protect(&point)?;
            }
        }
        Ok(())
    }
}

/// The machine's files may go away after their directory was listed. Then the mount point is
/// removed.
fn unless_gone(shown: Result<()>, take_back: impl FnOnce() -> io::Result<()>) -> Result<()> {
    match shown {
        Err(Error::Build { source, path, .. }) if source.kind() == io::ErrorKind::NotFound => {
            take_back().map_err(Error::io("take back the place of", path))
        }
        other => other,
    }
}

/// True for directories that every root has as its own.
fn is_kernels(path: &Path) -> bool {
    ["/dev", "/proc", "/sys", HOST, OWN]
        .iter()
        .any(|own| path == Path::new(own))
}

/// A path as `mountinfo` writes it: blanks and backslashes are three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let [first, more @ ..] = rest {
        rest = more;
        match (first, more) {
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    behind @ ..,
                ],
            ) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = behind;
            }
            _ => bytes.push(*first),
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_with_escaped_blanks_is_decoded() {
        assert_eq!(unescaped(b"/a\\040b\\134c"), Path::new("/a b\\c"));
        assert_eq!(unescaped(b"/a\\9"), Path::new("/a\\9"));
    }
}
