//! Reads the arguments of a notified call, and makes its paths absolute.
//!
//! A path stays as the program named it. It is joined to the directory that it starts at, and never
//! replaced by the target of a symbolic link.

use crate::caller::{Caller, FileSystemView};
use crate::callers::Callers;
use crate::memory::{PATH_MAX, ProcessMemory, Unreadable};
use crate::table::{Arg, CWD, NONE};
use std::borrow::Cow;
use std::cell::OnceCell;

/// A path argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedPath {
    /// The path as the log has it: absolute, unless its directory could not be found.
    pub path: Vec<u8>,
    /// The absolute path in the caller's view, for looking it up; empty if it cannot be looked up.
    pub inside: Vec<u8>,
    /// The argument named the directory descriptor itself.
    pub itself: bool,
    /// The argument was an empty string, which names no file.
    pub empty: bool,
    /// The last component was `.`, which can be neither made nor removed.
    pub dot: bool,
    /// The path was too long, and is cut.
    pub cut: bool,
    /// The directory descriptor that the path was relative to.
    pub dir: i32,
}

/// The arguments of one call.
pub struct Arguments<'a> {
    /// The six arguments as the kernel shows them.
    pub args: &'a [u64; 6],
    /// The caller's memory.
    pub memory: &'a mut ProcessMemory,
    /// The thread that makes the call.
    pub caller: &'a Caller,
    /// The threads met so far.
    pub callers: &'a Callers,
    /// The caller's current directory, once it was looked up: both paths of one call may start
    /// there.
    pub cwd: OnceCell<Option<Vec<u8>>>,
}

impl Arguments<'_> {
    /// An argument as a number; 0 if the call has none.
    pub fn number(&self, arg: Arg) -> u64 {
        self.args.get(usize::from(arg)).copied().unwrap_or(0)
    }

    /// An argument as an `int`; `AT_FDCWD` for a call without a directory argument.
    pub fn int(&self, arg: Arg) -> i32 {
        if arg == CWD {
            libc::AT_FDCWD
        } else {
            self.number(arg) as i32
        }
    }

    /// Appends the string that an argument points to. False: the string is longer than a path can
    /// be.
    pub fn string(&mut self, arg: Arg, out: &mut Vec<u8>) -> Result<bool, Unreadable> {
        self.memory.string(self.number(arg), PATH_MAX - 1, out)
    }

    /// A path argument that starts at directory `dir`. With `itself`, an empty or null path names
    /// the directory.
    pub fn path(&mut self, dir: Arg, path: Arg, itself: bool) -> Result<NamedPath, Unreadable> {
        self.path_from(dir, path, itself, |raw| raw)
    }

    /// A path argument for which directory `dir` is the root (`RESOLVE_IN_ROOT`).
    pub fn path_in_root(&mut self, dir: Arg, path: Arg) -> Result<NamedPath, Unreadable> {
        self.path_from(dir, path, false, in_root)
    }

    fn path_from(
        &mut self,
        dir: Arg,
        path: Arg,
        itself: bool,
        leads: impl FnOnce(&[u8]) -> &[u8],
    ) -> Result<NamedPath, Unreadable> {
        let fd = self.int(dir);
        let mut raw = Vec::with_capacity(128);
        let whole = if path == NONE || itself && self.number(path) == 0 {
            true
        } else {
            self.string(path, &mut raw)?
        };
        let raw = leads(&raw);
        let mut named = if raw.is_empty() {
            if itself {
                NamedPath {
                    itself: true,
                    ..self.join(fd, b"")
                }
            } else {
                NamedPath {
                    empty: true,
                    ..NamedPath::default()
                }
            }
        } else {
            self.name(fd, raw)
        };
        (named.cut, named.dir) = (!whole, fd);
        Ok(named)
    }

    /// A path that is not an argument of the call. A relative path starts at the descriptor `fd`.
    pub fn name(&self, fd: i32, raw: &[u8]) -> NamedPath {
        if raw.first() == Some(&b'/') {
            absolute(self.caller, raw)
        } else {
            self.join(fd, raw)
        }
    }

    /// A path relative to a descriptor or the current directory.
    fn join(&self, fd: i32, raw: &[u8]) -> NamedPath {
        let tid = self.caller.tid;
        let base = if fd == libc::AT_FDCWD {
            let cwd = || self.callers.link(tid, format_args!("cwd"));
            self.cwd.get_or_init(cwd).as_deref().map(Cow::Borrowed)
        } else {
            self.callers
                .link(tid, format_args!("fd/{fd}"))
                .map(Cow::Owned)
        };
        let Some(base) = base else {
            return NamedPath {
                path: raw.to_vec(),
                ..NamedPath::default()
            };
        };
        // The links in /proc are in the supervisor's view. A path below the caller's root goes back
        // into the caller's view.
        let inside = match &self.caller.view {
            FileSystemView::Own => &base[..],
            FileSystemView::Other(root) => match base.strip_prefix(&root.prefix[..]) {
                Some(rest) => rest,
                None => {
                    return NamedPath {
                        path: tidy(&[&base[..], b"/", raw].concat()),
                        ..NamedPath::default()
                    };
                }
            },
        };
        absolute(self.caller, &[inside, b"/", raw].concat())
    }
}

/// The rest of a path for which the starting directory is the root: `..` at its beginning leads to
/// that directory itself.
fn in_root(path: &[u8]) -> &[u8] {
    let mut rest = path;
    while let Some(first) = rest.split(|byte| *byte == b'/').next()
        && matches!(first, b"" | b"." | b"..")
    {
        match rest.get(first.len() + 1..) {
            Some(more) => rest = more,
            // The whole path leads to the root itself. An empty path still names no file.
            None => return if path.is_empty() { path } else { b"." },
        }
    }
    rest
}

/// A path argument from an absolute path in the caller's view.
fn absolute(caller: &Caller, raw: &[u8]) -> NamedPath {
    let inside = tidy(raw);
    let path = match &caller.view {
        FileSystemView::Other(root) if root.ours => tidy(&[&root.prefix[..], &inside].concat()),
        _ => inside.clone(),
    };
    let end = raw
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |last| last + 1);
    NamedPath {
        path,
        inside,
        dot: raw.get(..end).is_some_and(|raw| raw.ends_with(b"/.")),
        ..NamedPath::default()
    }
}

/// Drops empty and `.` components. `..` stays: what it leads to depends on symbolic links.
pub(crate) fn tidy(path: &[u8]) -> Vec<u8> {
    let plain = !path.windows(2).any(|w| w == b"//" || w == b"/.")
        && (path.len() == 1 || !path.ends_with(b"/"));
    if plain {
        return path.to_vec();
    }
    let mut out = Vec::with_capacity(path.len());
    for part in path
        .split(|b| *b == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
    {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_sys as sys;

    #[test]
    fn a_joined_path_loses_dots_and_keeps_double_dots() {
        assert_eq!(tidy(b"/a//b/./c/"), b"/a/b/c");
        assert_eq!(tidy(b"/a/../b"), b"/a/../b");
        assert_eq!(tidy(b"/a/.hidden/..b"), b"/a/.hidden/..b");
        assert_eq!(tidy(b"//."), b"/");
        assert_eq!(tidy(b"/"), b"/");
    }

    #[test]
    fn a_path_resolved_in_a_root_never_leaves_the_root_at_its_beginning() {
        for (given, leads) in [
            ("/y", "y"),
            ("/../y", "y"),
            ("../../d/../y", "d/../y"),
            (".//./y/", "y/"),
            ("...", "..."),
            ("/", "."),
            ("..", "."),
            ("../", "."),
            ("", ""),
        ] {
            assert_eq!(in_root(given.as_bytes()), leads.as_bytes(), "{given}");
        }
    }

    #[test]
    fn a_path_is_joined_to_its_directory_and_a_null_path_is_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let open = std::fs::File::open(dir.path()).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&open);
        let real = std::fs::canonicalize(dir.path()).unwrap();
        let callers = Callers::new().unwrap();
        let caller = callers.meet(sys::gettid(), sys::clock::counter()).unwrap();
        let mut memory = ProcessMemory::of(caller.tid);
        let args = [
            fd as u64,
            c"./x".as_ptr() as u64,
            0,
            c"".as_ptr() as u64,
            0,
            0,
        ];
        let mut a = Arguments {
            args: &args,
            memory: &mut memory,
            caller: &caller,
            callers: &callers,
            cwd: OnceCell::new(),
        };
        let joined = a.path(0, 1, false).unwrap();
        assert_eq!(joined.path, real.join("x").as_os_str().as_encoded_bytes());
        let itself = a.path(0, 2, true).unwrap();
        assert_eq!(
            (itself.path.as_slice(), itself.itself),
            (real.as_os_str().as_encoded_bytes(), true)
        );
        assert!(a.path(0, 3, false).unwrap().empty && !joined.dot);
        assert_eq!(a.path(0, 2, false), Err(Unreadable::Fault));
        let args = [
            libc::AT_FDCWD as u32 as u64,
            c"y".as_ptr() as u64,
            0,
            0,
            0,
            0,
        ];
        a.args = &args;
        let cwd = std::env::current_dir().unwrap();
        assert_eq!(
            a.path(0, 1, false).unwrap().path,
            cwd.join("y").as_os_str().as_encoded_bytes()
        );
    }
}
