//! File handles: names of files that hold while the files exist, whatever their paths are.
#![allow(unsafe_code)]

use crate::call::{check, own};
use libc::c_int;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// `MAX_HANDLE_SZ`
const LONGEST: usize = 128;
/// `AT_HANDLE_FID`
const AT_HANDLE_FID: c_int = 0x200;
/// Bytes of `handle_bytes` and `handle_type`.
const HEAD: usize = 8;

/// A file handle: `handle_type` and the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileHandle {
    kind: i32,
    bytes: Box<[u8]>,
}

/// `struct file_handle` with room for the longest handle.
#[repr(C)]
struct RawHandle {
    length: u32,
    kind: i32,
    bytes: [u8; LONGEST],
}

impl FileHandle {
    /// Parses a `struct file_handle`, and returns the bytes behind it, too.
    pub fn parse(raw: &[u8]) -> Option<(FileHandle, &[u8])> {
        let (head, rest) = raw.split_at_checked(HEAD)?;
        let (length, kind) = head.split_at(4);
        let length = u32::from_ne_bytes(length.try_into().ok()?) as usize;
        let kind = i32::from_ne_bytes(kind.try_into().ok()?);
        if length > LONGEST {
            return None;
        }
        let (bytes, rest) = rest.split_at_checked(length)?;
        let bytes = bytes.into();
        Some((FileHandle { kind, bytes }, rest))
    }

    /// The handle of `path` below `directory`.
    pub fn of(directory: BorrowedFd<'_>, path: &CStr) -> io::Result<FileHandle> {
        FileHandle::ask(directory, path, 0)
    }

    /// The handle of an open file, which may be open with `O_PATH`.
    pub fn of_open(file: BorrowedFd<'_>) -> io::Result<FileHandle> {
        FileHandle::ask(file, c"", libc::AT_EMPTY_PATH)
    }

    /// The same where the file system offers handles only to tell files apart (Linux 6.5). They
    /// cannot be opened.
    pub fn identifying(file: BorrowedFd<'_>) -> io::Result<FileHandle> {
        FileHandle::ask(file, c"", libc::AT_EMPTY_PATH | AT_HANDLE_FID)
    }

    /// The bytes, which are the file system's own.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn ask(directory: BorrowedFd<'_>, path: &CStr, flags: c_int) -> io::Result<FileHandle> {
        let mut raw = RawHandle {
            length: LONGEST as u32,
            kind: 0,
            bytes: [0; LONGEST],
        };
        let mut mount: c_int = 0;
        // SAFETY: the path is NUL-terminated. `raw` has the layout of `struct file_handle` and as
        // much room as its length says. All of them outlive the call.
        check(unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                directory.as_raw_fd(),
                path.as_ptr(),
                &raw mut raw,
                &raw mut mount,
                flags,
            )
        })?;
        let bytes = raw.bytes.get(..raw.length as usize).unwrap_or_default();
        Ok(FileHandle {
            kind: raw.kind,
            bytes: bytes.into(),
        })
    }

    /// Opens the file, in the file system that `mount` belongs to. Needs `CAP_DAC_READ_SEARCH`.
    pub fn open(&self, mount: BorrowedFd<'_>, flags: c_int) -> io::Result<OwnedFd> {
        let mut raw = RawHandle {
            length: self.bytes.len() as u32,
            kind: self.kind,
            bytes: [0; LONGEST],
        };
        if let Some(room) = raw.bytes.get_mut(..self.bytes.len()) {
            room.copy_from_slice(&self.bytes);
        }
        // SAFETY: `raw` has the layout of `struct file_handle`. The kernel only reads it.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                mount.as_raw_fd(),
                &raw const raw,
                flags | libc::O_CLOEXEC,
            )
        };
        check(fd).map(own)
    }
}
