//! seccomp(2): installing a filter with a listener, and responding to its notifications.
#![allow(unsafe_code)]

use crate::call::{check, ioctl, own};
use libc::{c_long, c_ulong};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Installs a filter on the calling thread and returns its listener.
pub fn install_filter(program: &[libc::sock_filter], flags: c_ulong) -> io::Result<OwnedFd> {
    let prog = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: `prog` and the instructions it points to outlive the call, which only reads them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &prog,
        )
    };
    check(fd).map(own)
}

/// Restricts the calling thread, and the threads and children that it starts, to the calls that
/// `program` allows. It takes [`set_no_new_privs`] before. Nothing lifts the restriction.
pub fn restrict_calls(program: &[libc::sock_filter]) -> io::Result<()> {
    let prog = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: `prog` and the instructions it points to outlive the call, which only reads them.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &prog) })
        .map(drop)
}

/// The bit in the number of an x32 call.
const X32_BIT: u32 = 0x4000_0000;

/// True if this kernel supports x32 programs. Most kernels are built without.
pub fn has_x32() -> bool {
    static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *HAS.get_or_init(|| {
        let getpid = c_long::from(X32_BIT) | libc::SYS_getpid;
        // SAFETY: takes no pointers, and has no effect under any number.
        unsafe { libc::syscall(getpid) >= 0 }
    })
}

/// True if `getpriority` returns a result for this magic `which`: a filter of another recording is
/// in force.
pub fn answers_request(which: i32, request: i32) -> bool {
    // SAFETY: takes no pointers, and has no effect without such a filter.
    unsafe { libc::syscall(libc::SYS_getpriority, which, request, 0) >= 0 }
}

/// Sets `no_new_privs` for this thread and its children: an `execve` then grants no privileges.
pub fn set_no_new_privs() -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(c_long::from(unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    }))
    .map(drop)
}

/// True if this kernel's notifications fit the structures known here.
pub fn notification_sizes_fit(notif: usize, resp: usize) -> bool {
    let mut sizes = libc::seccomp_notif_sizes {
        seccomp_notif: 0,
        seccomp_notif_resp: 0,
        seccomp_data: 0,
    };
    // SAFETY: the kernel writes one structure of this type.
    let r = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_NOTIF_SIZES,
            0,
            &mut sizes,
        )
    };
    r == 0
        && usize::from(sizes.seccomp_notif) <= notif
        && usize::from(sizes.seccomp_notif_resp) <= resp
}

/// Waits for a notification and receives it into `place`, which must be zeroed memory of at least
/// the kernel's size.
///
/// # Safety
/// `place` must be valid for writes of 256 bytes for the whole call.
///
/// # Errors
/// `EINTR`: a signal interrupted the wait. `ENOENT`: the caller died meanwhile, or no
/// process is left that has the filter.
pub unsafe fn receive_notification(
    listener: BorrowedFd<'_>,
    place: *mut libc::seccomp_notif,
) -> io::Result<()> {
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, place).map(drop)
}

/// Lets the call go on.
///
/// # Errors
/// `ENOENT`: the call no longer waits.
pub fn answer_continue(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    answer(
        listener,
        id,
        0,
        0,
        libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    )
}

/// Makes the call fail with `errno`.
pub fn answer_errno(listener: BorrowedFd<'_>, id: u64, errno: i32) -> io::Result<()> {
    answer(listener, id, 0, -errno, 0)
}

/// Makes the call return `value`.
pub fn answer_value(listener: BorrowedFd<'_>, id: u64, value: i64) -> io::Result<()> {
    answer(listener, id, value, 0, 0)
}

fn answer(listener: BorrowedFd<'_>, id: u64, val: i64, error: i32, flags: u32) -> io::Result<()> {
    let mut response = libc::seccomp_notif_resp {
        id,
        val,
        error,
        flags,
    };
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &mut response).map(drop)
}

/// Makes the call return a copy of `fd`, which is closed at an exec.
pub fn answer_descriptor(listener: BorrowedFd<'_>, id: u64, fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut add = libc::seccomp_notif_addfd {
        id,
        flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
        srcfd: fd.as_raw_fd() as u32,
        newfd: 0,
        newfd_flags: libc::O_CLOEXEC as u32,
    };
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut add).map(drop)
}

/// True while the notified call still waits: until then its thread id means its caller.
pub fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    let mut id = id;
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
}

/// Has the kernel wake callers on the waker's processor (Linux 6.6). True if the kernel supports
/// that.
pub fn wake_synchronously(listener: BorrowedFd<'_>) -> bool {
    // SAFETY: the argument is a number, 1 for SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
            1 as c_ulong,
        ) == 0
    }
}

/// Receives a notification that is waiting, or waits for one.
///
/// # Errors
/// As [`receive_notification`].
pub fn next_notification(listener: BorrowedFd<'_>) -> io::Result<libc::seccomp_notif> {
    #[repr(C, align(8))]
    struct Place([u8; 256]);
    let mut place = Place([0; 256]);
    let at = place.0.as_mut_ptr().cast::<libc::seccomp_notif>();
    // SAFETY: 256 zeroed bytes that live for the call. They are aligned for the structure, and all
    // bytes are valid in it.
    unsafe {
        receive_notification(listener, at)?;
        Ok(at.read())
    }
}

/// Adds a copy of `fd` to the caller's process while its call waits.
///
/// `as_fd`: the number that it gets; otherwise the lowest free one. With `ends_call`, the call
/// returns that number. Returns the number.
pub fn add_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    fd: BorrowedFd<'_>,
    as_fd: Option<i32>,
    closes_at_exec: bool,
    ends_call: bool,
) -> io::Result<i32> {
    let set = match as_fd {
        Some(_) => libc::SECCOMP_ADDFD_FLAG_SETFD,
        None => 0,
    };
    let send = match ends_call {
        true => libc::SECCOMP_ADDFD_FLAG_SEND,
        false => 0,
    };
    let mut add = libc::seccomp_notif_addfd {
        id,
        flags: (set | send) as u32,
        srcfd: fd.as_raw_fd() as u32,
        newfd: as_fd.unwrap_or(0) as u32,
        newfd_flags: if closes_at_exec {
            libc::O_CLOEXEC as u32
        } else {
            0
        },
    };
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut add)
}
