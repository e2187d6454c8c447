//! Looks up what a path means to a caller, without waiting for another process.
//!
//! A look-up that the kernel answers from its cache waits for no process. Any other look-up may
//! wait for a file server that is itself recorded and waits for the guard. Such a look-up is
//! refused ([`NotCached`]), unless what is not cached lies in a local file system. A resolver that
//! may wait refuses nothing.

use crate::caller::{Caller, FileSystemView};
use crate::mounts::{MountTable, NameAuthority};
use crate::own_names::rewrite;
use crate::resolved_file::{FileHandle, ResolvedFile};
use backstory_sys as sys;
use backstory_sys::long_path as deep;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The path is not cached: a resolver that may wait has to look it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotCached;

/// The result of a look-up. Values live for a moment on the stack, never in a collection.
#[allow(clippy::large_enum_variant)]
pub enum Resolved {
    /// The file exists.
    File(ResolvedFile),
    /// The look-up fails with this errno.
    Error(i32),
}

/// Looks up paths for one thread of the guard.
pub struct PathResolver {
    mounts: MountTable,
    waits: bool,
}

/// The result of a look-up without the cache.
enum UncachedLookup {
    Done(std::io::Result<OwnedFd>),
    /// The path's last component is a link to this path.
    Link(Vec<u8>),
}

/// The path that the link `link`, which `path` names, leads to. `None` for a link of `/proc` to an
/// open file that has lost its name.
fn target(path: &[u8], link: &OwnedFd) -> Option<Vec<u8>> {
    let mut buffer = [0; 4096];
    let text = sys::readlink(link.as_raw_fd(), c"", &mut buffer).ok()?;
    if path.starts_with(b"/proc/") && text.ends_with(b" (deleted)") {
        return None;
    }
    if text.first() == Some(&b'/') {
        return Some(text.to_vec());
    }
    let slash = path.iter().rposition(|b| *b == b'/')?;
    Some([&path[..=slash], text].concat())
}

/// Most links that are followed one after the other, as in the kernel.
const LINKS: usize = 40;
/// Ancestors that are tried when a path is not cached.
const ANCESTORS: usize = 8;
/// Repeats of a look-up in the cache that another process disturbed.
const REPEATS: usize = 4;

impl PathResolver {
    /// With `waits`, the resolver may wait for a file system.
    pub fn new(mounts: MountTable, waits: bool) -> PathResolver {
        PathResolver { mounts, waits }
    }

    /// Reads the table of mounts, so that the first look-up need not.
    pub fn prepare(&mut self, now: u64) {
        self.mounts.all_local(now);
    }

    /// True if no look-up in the supervisor's own view can wait for another process.
    pub fn all_local(&mut self, now: u64) -> bool {
        self.mounts.all_local(now)
    }

    /// True if the resolver may wait, so that a result may be later than the call.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Looks up an absolute path of the caller's.
    pub fn look(
        &mut self,
        caller: &Caller,
        path: &[u8],
        follow: bool,
        now: u64,
    ) -> Result<Resolved, NotCached> {
        if !matches!(caller.view, FileSystemView::Own) || !self.mounts.all_local(now) {
            return self.look_carefully(caller, path, follow, now);
        }
        let rewritten = rewrite(caller, path);
        let named = rewritten.as_deref().unwrap_or(path);
        if deep::split(named).is_some() {
            return self.look_carefully(caller, path, follow, now);
        }
        let Ok(name) = CString::new(named) else {
            return Ok(Resolved::Error(libc::ENOENT));
        };
        let nofollow = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        Ok(
            match sys::statx(libc::AT_FDCWD, &name, libc::AT_STATX_DONT_SYNC | nofollow) {
                Ok(st) => Resolved::File(ResolvedFile {
                    handle: FileHandle::ByName(name, follow),
                    st,
                }),
                Err(e) => Resolved::Error(e.raw_os_error().unwrap_or(libc::EIO)),
            },
        )
    }

    /// As [`PathResolver::look`], and the file is opened, so that [`ResolvedFile::path`] and
    /// [`ResolvedFile::into_fd`] have a result.
    pub fn look_carefully(
        &mut self,
        caller: &Caller,
        path: &[u8],
        follow: bool,
        now: u64,
    ) -> Result<Resolved, NotCached> {
        self.look_through(caller, path, follow, now, LINKS)
    }

    fn look_through(
        &mut self,
        caller: &Caller,
        path: &[u8],
        follow: bool,
        now: u64,
        links: usize,
    ) -> Result<Resolved, NotCached> {
        let rewritten = rewrite(caller, path);
        let path = rewritten.as_deref().unwrap_or(path);
        let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
        let (root, resolve) = root_of(caller);
        let cached = if self.waits { 0 } else { libc::RESOLVE_CACHED };
        let found = match open(root, path, libc::O_PATH | nofollow, resolve | cached) {
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) && !self.waits => {
                match self.look_locally(caller, path, nofollow, now) {
                    Ok(UncachedLookup::Done(found)) => found,
                    Ok(UncachedLookup::Link(_)) if links == 0 => {
                        return Ok(Resolved::Error(libc::ELOOP));
                    }
                    Ok(UncachedLookup::Link(target)) => {
                        return self.look_through(caller, &target, follow, now, links - 1);
                    }
                    // The file may be where a mount begins, so that only its own path leads to it.
                    Err(NotCached) => {
                        match open_cached(root, path, libc::O_PATH | nofollow, resolve) {
                            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {
                                return Err(NotCached);
                            }
                            found => found,
                        }
                    }
                }
            }
            found => found,
        };
        Ok(match found {
            Ok(fd) => match describe(&fd, self.waits) {
                Ok(st) => Resolved::File(ResolvedFile {
                    handle: FileHandle::Opened(fd),
                    st,
                }),
                Err(e) => Resolved::Error(e),
            },
            Err(e) => Resolved::Error(e.raw_os_error().unwrap_or(libc::EIO)),
        })
    }

    /// Looks up a path that is not cached. Its nearest cached ancestor has to be in a local file
    /// system, and the rest of the path must not lead to another one.
    fn look_locally(
        &mut self,
        caller: &Caller,
        path: &[u8],
        nofollow: i32,
        now: u64,
    ) -> Result<UncachedLookup, NotCached> {
        let (root, resolve) = root_of(caller);
        let mut end = path.len();
        for _ in 0..ANCESTORS {
            let Some(slash) = path[..end].iter().rposition(|b| *b == b'/') else {
                break;
            };
            end = slash;
            let above = if slash == 0 { b"/" } else { &path[..slash] };
            let flags = libc::O_PATH | libc::O_DIRECTORY;
            let fd = match open_cached(root, above, flags, resolve) {
                Ok(fd) => fd,
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) && slash > 0 => continue,
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => break,
                Err(e) => return Ok(UncachedLookup::Done(Err(e))),
            };
            let st = describe(&fd, false).map_err(|_| NotCached)?;
            if !self
                .mounts
                .find(caller.tid, st.stx_mnt_id, now)
                .is_some_and(|mount| mount.local)
            {
                return Err(NotCached);
            }
            let rest = CString::new(&path[slash + 1..]).map_err(|_| NotCached)?;
            let inside = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_XDEV;
            let found = sys::openat2(fd.as_raw_fd(), &rest, libc::O_PATH | nofollow, inside);
            return match found.as_ref().err().and_then(std::io::Error::raw_os_error) {
                Some(libc::ELOOP) if nofollow == 0 => {
                    let link = sys::openat2(
                        fd.as_raw_fd(),
                        &rest,
                        libc::O_PATH | libc::O_NOFOLLOW,
                        inside,
                    );
                    target(path, &link.map_err(|_| NotCached)?)
                        .map(UncachedLookup::Link)
                        .ok_or(NotCached)
                }
                Some(libc::ELOOP | libc::EXDEV | libc::EAGAIN) => Err(NotCached),
                _ => Ok(UncachedLookup::Done(found)),
            };
        }
        Err(NotCached)
    }

    /// True if a directory has no entries. `None` if reading it could wait for another process or
    /// would change the directory's times.
    pub fn is_empty(
        &mut self,
        caller: &Caller,
        path: &[u8],
        now: u64,
    ) -> Result<Option<bool>, NotCached> {
        let Resolved::File(there) = self.look_carefully(caller, path, false, now)? else {
            return Ok(None);
        };
        let mount = self.mounts.find(caller.tid, there.st.stx_mnt_id, now);
        let plain = mount.is_some_and(|mount| mount.local && mount.names == NameAuthority::Anyone);
        let Some(fd) = there.into_fd().filter(|_| plain) else {
            return Ok(None);
        };
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOATIME;
        let opened = sys::openat2(fd.as_raw_fd(), c".", flags, 0);
        Ok(opened.ok().and_then(|fd| sys::is_empty(&fd).ok()))
    }

    /// The text of a symbolic link. `None` if the file is no link, or if reading its text could
    /// wait for another process.
    pub fn link_text(
        &mut self,
        caller: &Caller,
        there: &ResolvedFile,
        now: u64,
    ) -> Option<Vec<u8>> {
        if there.kind() != libc::S_IFLNK {
            return None;
        }
        let mount = self.mounts.find(caller.tid, there.st.stx_mnt_id, now);
        mount
            .is_some_and(|mount| mount.local)
            .then(|| there.link_text())?
    }

    /// Which names the file's file system has.
    pub fn names(&mut self, caller: &Caller, st: &libc::statx, now: u64) -> NameAuthority {
        let mount = self.mounts.find(caller.tid, st.stx_mnt_id, now);
        mount.map_or(NameAuthority::Anyone, |mount| mount.names)
    }

    /// True if the file's mount is read-only at this moment. A process that is not watched may
    /// change that between two calls, so it is read each time. A file system that waits for a
    /// process or the network is not read: the mount's last known state is returned.
    pub fn readonly(&mut self, caller: &Caller, there: &ResolvedFile, now: u64) -> bool {
        let Some(mount) = self.mounts.find(caller.tid, there.st.stx_mnt_id, now) else {
            return false;
        };
        let known = mount.readonly;
        if mount.local {
            there.readonly().unwrap_or(known)
        } else {
            known
        }
    }
}

/// Opens a path of any length. In another root, what lies beyond the first piece of a long path is
/// looked up below that piece.
fn open(root: RawFd, path: &[u8], flags: i32, resolve: u64) -> io::Result<OwnedFd> {
    let name =
        |bytes: &[u8]| CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::ENOENT));
    let (mut above, mut rest, mut how): (Option<OwnedFd>, _, _) = (None, path, resolve);
    while let Some((piece, more)) = deep::split(rest) {
        let from = above.as_ref().map_or(root, AsRawFd::as_raw_fd);
        above = Some(sys::openat2(
            from,
            &name(piece)?,
            libc::O_PATH | libc::O_DIRECTORY,
            how,
        )?);
        if how & libc::RESOLVE_IN_ROOT != 0 {
            how = how & !libc::RESOLVE_IN_ROOT | libc::RESOLVE_BENEATH;
        }
        rest = more;
    }
    sys::openat2(
        above.as_ref().map_or(root, AsRawFd::as_raw_fd),
        &name(rest)?,
        flags,
        how,
    )
}

/// Opens a path from the kernel's cache. A mount or rename anywhere on the machine can end such a
/// look-up early. So the path counts as not cached only after some repeats.
fn open_cached(root: RawFd, path: &[u8], flags: i32, resolve: u64) -> io::Result<OwnedFd> {
    let mut found = open(root, path, flags, resolve | libc::RESOLVE_CACHED);
    for _ in 0..REPEATS {
        match &found {
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
            _ => break,
        }
        found = open(root, path, flags, resolve | libc::RESOLVE_CACHED);
    }
    found
}

/// Where the caller's absolute paths start. In the supervisor's own root, links of `/proc` may be
/// followed; in another root they would leave it.
fn root_of(caller: &Caller) -> (RawFd, u64) {
    match &caller.view {
        FileSystemView::Own => (libc::AT_FDCWD, 0),
        FileSystemView::Other(root) => (root.fd.as_raw_fd(), libc::RESOLVE_IN_ROOT),
    }
}

fn describe(fd: &OwnedFd, wait: bool) -> Result<libc::statx, i32> {
    let sync = if wait { 0 } else { libc::AT_STATX_DONT_SYNC };
    sys::statx(fd.as_raw_fd(), c"", libc::AT_EMPTY_PATH | sync)
        .map_err(|e| e.raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn caller() -> Caller {
        let (pid, tid) = (std::process::id(), sys::gettid());
        Caller {
            pid,
            tid,
            parent: 1,
            view: FileSystemView::Own,
            new: false,
            process: None,
        }
    }

    #[test]
    fn an_uncached_path_in_a_local_file_system_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        let mut resolver = PathResolver::new(MountTable::new(Arc::default()), false);
        let mut look = |path: &std::path::Path| {
            resolver
                .look(
                    &caller(),
                    path.as_os_str().as_encoded_bytes(),
                    true,
                    sys::clock::counter(),
                )
                .ok()
        };
        assert!(
            matches!(look(&deep), Some(Resolved::File(there)) if there.kind() == libc::S_IFDIR)
        );
        // No process has looked up this name before, so it is in no cache.
        assert!(matches!(
            look(&deep.join("never/looked/up")),
            Some(Resolved::Error(libc::ENOENT))
        ));
    }

    #[test]
    fn a_read_only_mount_is_found_by_name_and_by_descriptor() {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut mounts = MountTable::new(Arc::default());
        let mut resolver = PathResolver::new(MountTable::new(Arc::default()), false);
        let places = table.lines().filter_map(|line| line.split(' ').nth(4));
        for place in places.filter(|place| !place.contains('\\')) {
            let look = resolver.look_carefully(&caller(), place.as_bytes(), true, 1);
            let Ok(Resolved::File(opened)) = look else {
                continue;
            };
            let Some(mount) = mounts.find(sys::gettid(), opened.st.stx_mnt_id, 1) else {
                continue;
            };
            if !mount.local {
                continue;
            }
            let named = ResolvedFile {
                handle: FileHandle::ByName(CString::new(place).unwrap(), true),
                st: opened.st,
            };
            let found = [opened, named].map(|there| there.readonly().unwrap());
            assert_eq!(found, [mount.readonly; 2], "{place}");
        }
    }
}
