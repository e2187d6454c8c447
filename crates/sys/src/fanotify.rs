//! fanotify: the kernel's notifications of what happens in a file system.
//!
//! A group is a descriptor with a queue of notifications. Here it never asks for permissions, so
//! that no process waits for its reader.
#![allow(unsafe_code)]

use crate::call::{check, own};
use crate::file_handle::FileHandle;
use libc::{c_int, c_long};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A program read a file, or listed a directory.
pub const FAN_ACCESS: u64 = 0x1;
/// A program wrote to a file, or set its size.
pub const FAN_MODIFY: u64 = 0x2;
/// The last descriptor of an open file that could write was closed.
pub const FAN_CLOSE_WRITE: u64 = 0x8;
/// The same for an open file that could not write.
pub const FAN_CLOSE_NOWRITE: u64 = 0x10;
/// A file or directory was opened.
pub const FAN_OPEN: u64 = 0x20;
/// A file got a name: it was made or linked.
pub const FAN_CREATE: u64 = 0x100;
/// A name was removed.
pub const FAN_DELETE: u64 = 0x200;
/// A file was opened for an exec.
pub const FAN_OPEN_EXEC: u64 = 0x1000;
/// The queue was full: notifications are missing.
pub const FAN_Q_OVERFLOW: u64 = 0x4000;
/// A file was renamed (Linux 5.17).
pub const FAN_RENAME: u64 = 0x1000_0000;
/// The notification is about a directory; in a mark: directories count, too.
pub const FAN_ONDIR: u64 = 0x4000_0000;

/// `FAN_CLOEXEC | FAN_NONBLOCK`, in the class that never asks for permissions.
const NOTIFY: u32 = 0x1 | 0x2;
/// `FAN_REPORT_PIDFD`
const REPORT_PIDFD: u32 = 0x80;
/// `FAN_REPORT_DFID_NAME_TARGET`: handles of files and directories, and names (Linux 5.17).
const REPORT_NAMES: u32 = 0x200 | 0x400 | 0x800 | 0x1000;
/// `FAN_MARK_ADD | FAN_MARK_FILESYSTEM`
const MARK_FILE_SYSTEM: u32 = 0x1 | 0x100;
/// `FAN_MARK_FLUSH | FAN_MARK_FILESYSTEM`
const UNMARK_FILE_SYSTEMS: u32 = 0x80 | 0x100;
/// `FAN_NOPIDFD`: the process had ended.
const NO_PIDFD: i32 = -1;

/// Length of `struct fanotify_event_metadata`.
const METADATA: usize = 24;
/// Length of `struct fanotify_event_info_header`, and of the file system's id behind it.
const HEADS: (usize, usize) = (4, 8);

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The directory.
    pub directory: FileHandle,
    /// The name. `.` stands for the directory itself.
    pub name: Vec<u8>,
}

/// A notification. The kernel may have merged several operations of one process on one file.
#[derive(Debug, Default)]
pub struct Notification {
    /// `FAN_*`
    pub mask: u64,
    /// The process; 0 if it is of a pid namespace outside.
    pub pid: u32,
    /// The process had ended when the notification was read. Known if the kernel reports pidfds.
    pub ended: bool,
    /// The file's name; of a rename, the old one.
    pub entry: Option<DirectoryEntry>,
    /// The new name of a rename.
    pub new_entry: Option<DirectoryEntry>,
    /// The file.
    pub file: Option<FileHandle>,
}

/// Makes a group whose notifications name files by handles, and processes by pidfds if the kernel
/// offers that (Linux 5.15). Reading it never waits.
pub fn fanotify_group() -> io::Result<OwnedFd> {
    let make = |flags: u32| {
        let wanted = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE) as c_long;
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::syscall(libc::SYS_fanotify_init, flags, wanted) };
        check(fd).map(own)
    };
    make(NOTIFY | REPORT_NAMES | REPORT_PIDFD).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => make(NOTIFY | REPORT_NAMES),
        _ => Err(error),
    })
}

/// Adds the file system that contains `path` to a group.
pub fn mark_file_system(group: BorrowedFd<'_>, mask: u64, path: &CStr) -> io::Result<()> {
    // SAFETY: the path is NUL-terminated and outlives the call. The mask has 64 bits on every
    // supported machine.
    check(c_long::from(unsafe {
        libc::fanotify_mark(
            group.as_raw_fd(),
            MARK_FILE_SYSTEM,
            mask,
            libc::AT_FDCWD,
            path.as_ptr(),
        )
    }))?;
    Ok(())
}

/// Removes all file systems from a group. Notifications that wait stay, and no others follow.
pub fn unmark_file_systems(group: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this operation reads neither the mask nor the path.
    check(c_long::from(unsafe {
        libc::fanotify_mark(
            group.as_raw_fd(),
            UNMARK_FILE_SYSTEMS,
            0,
            libc::AT_FDCWD,
            std::ptr::null(),
        )
    }))?;
    Ok(())
}

/// Reads notifications into `buffer`, and returns them. None are left if the result is empty.
pub fn read_notifications(
    group: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<Vec<Notification>> {
    let length = match rustix::io::read(group, &mut *buffer) {
        Ok(length) => length,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
        Err(error) => return Err(error.into()),
    };
    let mut rest = buffer.get(..length).unwrap_or_default();
    let mut all = Vec::new();
    while let Some((notification, next)) = parse(rest) {
        all.push(notification);
        rest = next;
    }
    Ok(all)
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// The first notification in a buffer that the kernel filled, and the bytes behind it.
fn parse(bytes: &[u8]) -> Option<(Notification, &[u8])> {
    let length = u32::from_ne_bytes(word(bytes, 0)?) as usize;
    let (event, rest) = bytes.split_at_checked(length.max(METADATA))?;
    let head = usize::from(u16::from_ne_bytes(word(event, 6)?));
    let mut notification = Notification {
        mask: u64::from_ne_bytes(word(event, 8)?),
        pid: u32::try_from(i32::from_ne_bytes(word(event, 20)?)).unwrap_or(0),
        ..Notification::default()
    };
    let mut infos = event.get(head..)?;
    while let (Some([kind, _]), Some(length)) = (word(infos, 0), word(infos, 2)) {
        let length = usize::from(u16::from_ne_bytes(length)).max(HEADS.0);
        let Some((info, next)) = infos.split_at_checked(length) else {
            break;
        };
        take_info(kind, info, &mut notification);
        infos = next;
    }
    Some((notification, rest))
}

/// Takes one `fanotify_event_info_*`, with its header.
fn take_info(kind: u8, info: &[u8], into: &mut Notification) {
    const FID: u8 = 1;
    const DFID_NAME: u8 = 2;
    const DFID: u8 = 3;
    const PIDFD: u8 = 4;
    const OLD_DFID_NAME: u8 = 10;
    const NEW_DFID_NAME: u8 = 12;
    if kind == PIDFD {
        let fd = word(info, HEADS.0).map_or(NO_PIDFD, c_int::from_ne_bytes);
        into.ended = fd == NO_PIDFD;
        // The kernel made the descriptor for this notification. Nothing else closes it.
        drop((fd >= 0).then(|| own(c_long::from(fd))));
        return;
    }
    let body = info.get(HEADS.0 + HEADS.1..).unwrap_or_default();
    let Some((handle, name)) = FileHandle::parse(body) else {
        return;
    };
    let entry = |directory| {
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = name.to_vec();
        Some(DirectoryEntry { directory, name })
    };
    match kind {
        FID => into.file = Some(handle),
        DFID_NAME | DFID | OLD_DFID_NAME => into.entry = entry(handle),
        NEW_DFID_NAME => into.new_entry = entry(handle),
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An information record: its header, the file system's id, a handle of one byte, and a name.
    fn info(kind: u8, handle: u8, name: &[u8]) -> Vec<u8> {
        let mut body = vec![0; HEADS.1];
        body.extend(1_u32.to_ne_bytes());
        body.extend(7_i32.to_ne_bytes());
        body.push(handle);
        body.extend(name);
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (HEADS.0 + body.len()) as u16;
        [&[kind, 0], &length.to_ne_bytes()[..], &body].concat()
    }

    fn event(mask: u64, infos: &[Vec<u8>]) -> Vec<u8> {
        let infos = infos.concat();
        let mut event = ((METADATA + infos.len()) as u32).to_ne_bytes().to_vec();
        event.extend([3, 0]);
        event.extend((METADATA as u16).to_ne_bytes());
        event.extend(mask.to_ne_bytes());
        event.extend((-1_i32).to_ne_bytes());
        event.extend(42_i32.to_ne_bytes());
        event.extend(infos);
        event
    }

    fn handle(byte: u8) -> FileHandle {
        let raw = [&1_u32.to_ne_bytes()[..], &7_i32.to_ne_bytes(), &[byte]].concat();
        FileHandle::parse(&raw).unwrap().0
    }

    #[test]
    fn a_rename_has_both_names_and_the_file() {
        let no_process = [&[4, 0, 8, 0][..], &NO_PIDFD.to_ne_bytes()].concat();
        let infos = [
            info(10, 1, b"old\0"),
            info(12, 2, b"new\0"),
            info(1, 3, b""),
            no_process,
        ];
        let bytes = [event(FAN_RENAME, &infos), event(FAN_Q_OVERFLOW, &[])].concat();
        let (first, rest) = parse(&bytes).unwrap();
        let entry = |byte, name: &[u8]| {
            Some(DirectoryEntry {
                directory: handle(byte),
                name: name.to_vec(),
            })
        };
        assert_eq!((first.mask, first.pid), (FAN_RENAME, 42));
        assert_eq!(first.entry, entry(1, b"old"));
        assert_eq!(first.new_entry, entry(2, b"new"));
        assert_eq!(first.file, Some(handle(3)));
        assert!(first.ended);
        let (second, rest) = parse(rest).unwrap();
        assert_eq!(second.mask, FAN_Q_OVERFLOW);
        assert!(parse(rest).is_none());
    }

    #[test]
    fn a_notification_that_is_cut_is_no_notification() {
        let whole = event(FAN_OPEN, &[info(2, 1, b"name\0")]);
        for length in 0..whole.len() {
            assert!(parse(whole.get(..length).unwrap()).is_none(), "{length}");
        }
    }
}
