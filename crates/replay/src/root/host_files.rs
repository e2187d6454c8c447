//! What the run did not touch, taken from the machine: everything that is not there already, and was not known to be missing.
//!
//! Invariant: all of it is read-only, whatever is mounted below it.

use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::mount_bind_recursive;

use super::{HOST, OWN, protect, show};
use crate::plan::Plan;
use crate::{Error, Result};

/// Shows the rest of the machine beside what the plan put there.
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
    /// Directories that are shown with all that is mounted below them.
    trees: Vec<PathBuf>,
}

impl HostFiles<'_> {
    /// What the directory `from` has and `to` has not.
    fn beside(&mut self, from: &Path, to: &Path) -> Result<()> {
        // A directory that cannot be listed has nothing that could be shown.
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
                    // One that has gone since the directory was listed is not there.
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

    /// A whole directory; one in which the run made something is gone into, so that this is not there.
    fn directory(&mut self, from: &Path, to: PathBuf) -> Result<()> {
        fs::create_dir(&to).map_err(Error::io("make", &to))?;
        let below = self
            .plan
            .absent
            .range(to.as_os_str().as_bytes().to_vec()..)
            .next();
        if below.is_some_and(|path| Path::new(std::ffi::OsStr::from_bytes(path)).starts_with(&to)) {
            return self.beside(from, &to);
        }
        // What is mounted below a mount of the machine's cannot be left out.
        match mount_bind_recursive(from, &to).map_err(Error::build("show", from)) {
            Ok(()) => {
                self.trees.push(to);
                Ok(())
            }
            failed => unless_gone(failed, || fs::remove_dir(&to)),
        }
    }

    /// A mount is protected by itself, not those below it.
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

/// The machine goes on while it is looked at: what has gone since its directory was listed is not there, and neither is its place.
fn unless_gone(shown: Result<()>, take_back: impl FnOnce() -> io::Result<()>) -> Result<()> {
    match shown {
        Err(Error::Build { source, path, .. }) if source.kind() == io::ErrorKind::NotFound => {
            take_back().map_err(Error::io("take back the place of", path))
        }
        other => other,
    }
}

/// Of its own in every root.
fn is_kernels(path: &Path) -> bool {
    ["/dev", "/proc", "/sys", HOST, OWN]
        .iter()
        .any(|own| path == Path::new(own))
}

/// A path as `mountinfo` writes it: white space and backslashes are three octal digits.
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
    fn a_mount_point_with_blanks_is_read_as_it_is_called() {
        assert_eq!(unescaped(b"/a\\040b\\134c"), Path::new("/a b\\c"));
        assert_eq!(unescaped(b"/a\\9"), Path::new("/a\\9"));
    }
}
