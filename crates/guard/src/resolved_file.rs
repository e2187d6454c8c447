//! A file that a path was found to lead to.

use backstory_files::Ident;
use backstory_sys as sys;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// An existing file.
pub struct ResolvedFile {
    pub(crate) handle: FileHandle,
    /// Its attributes.
    pub st: libc::statx,
}

/// By what a file can be looked at again.
pub(crate) enum FileHandle {
    /// A descriptor opened with `O_PATH`, by a careful look-up.
    Opened(OwnedFd),
    /// Its path in the supervisor's own view, where no look-up waits, and whether a link at the
    /// path's end is followed.
    ByName(CString, bool),
}

impl ResolvedFile {
    /// The file, opened with `O_PATH`, if it was looked up carefully.
    pub fn into_fd(self) -> Option<OwnedFd> {
        match self.handle {
            FileHandle::Opened(fd) => Some(fd),
            FileHandle::ByName(..) => None,
        }
    }

    /// True if the file's mount is read-only, as the file system says.
    pub(crate) fn readonly(&self) -> std::io::Result<bool> {
        match &self.handle {
            FileHandle::Opened(fd) => sys::is_readonly(fd.as_fd()),
            // statvfs(2) follows links, so a link has to be opened.
            FileHandle::ByName(name, false) if self.kind() == libc::S_IFLNK => {
                let link = sys::openat2(libc::AT_FDCWD, name, libc::O_PATH | libc::O_NOFOLLOW, 0)?;
                sys::is_readonly(link.as_fd())
            }
            FileHandle::ByName(name, _) => sys::is_readonly_at(name),
        }
    }

    /// The text of a symbolic link. `None` if the file is no link, or its text cannot be read.
    pub(crate) fn link_text(&self) -> Option<Vec<u8>> {
        let (dir, name) = match &self.handle {
            FileHandle::Opened(fd) => (fd.as_raw_fd(), c""),
            FileHandle::ByName(name, false) => (libc::AT_FDCWD, name.as_c_str()),
            FileHandle::ByName(_, true) => return None,
        };
        let mut buffer = [0; 4096];
        let text = sys::readlink(dir, name, &mut buffer).ok()?;
        (self.kind() == libc::S_IFLNK && text.len() < 4096).then(|| text.to_vec())
    }

    /// Type bits of the mode.
    pub fn kind(&self) -> u32 {
        u32::from(self.st.stx_mode) & libc::S_IFMT
    }

    /// The path in the supervisor's view, if the file was looked up carefully.
    pub fn path(&self) -> Option<Vec<u8>> {
        let FileHandle::Opened(fd) = &self.handle else {
            return None;
        };
        let name = CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
        let mut buffer = [0; 4096];
        let path = sys::readlink(libc::AT_FDCWD, &name, &mut buffer).ok()?;
        (path.first() == Some(&b'/')).then(|| path.to_vec())
    }

    /// The file's identity and its content state.
    pub fn ident(&self) -> Ident {
        let st = &self.st;
        let nanoseconds =
            |t: libc::statx_timestamp| t.tv_sec * 1_000_000_000 + i64::from(t.tv_nsec);
        Ident {
            dev: libc::makedev(st.stx_dev_major, st.stx_dev_minor),
            ino: st.stx_ino,
            size: st.stx_size as i64,
            mtime: nanoseconds(st.stx_mtime),
            ctime: nanoseconds(st.stx_ctime),
            birth: if st.stx_mask & libc::STATX_BTIME != 0 {
                nanoseconds(st.stx_btime)
            } else {
                0
            },
            mode: u32::from(st.stx_mode),
            nlink: st.stx_nlink,
        }
    }
}
