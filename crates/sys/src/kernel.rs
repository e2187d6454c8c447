//! The system calls of the guard, each behind a safe function. All `unsafe` of the guard is here, in `notification_buffers.rs` and in
//! `uring/ring_memory.rs`.
#![allow(unsafe_code)]

use libc::{c_int, c_long, c_ulong, c_void};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Turns a system call's result into a value or the thread's errno.
fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn own(fd: c_long) -> OwnedFd {
    // SAFETY: the caller got `fd` from a successful call that returned a new descriptor, which nobody else owns.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// The time-stamp counter: the clock of the log.
pub fn now() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; the supervisor does not run with it restricted.
    unsafe { std::arch::x86_64::_rdtsc() }
}

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

/// The bit in the number of an x32 call.
const X32_BIT: u32 = 0x4000_0000;

/// True if this kernel has the calls of x32 programs, which few are built with.
pub fn has_x32() -> bool {
    static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *HAS.get_or_init(|| {
        let getpid = c_long::from(X32_BIT) | libc::SYS_getpid;
        // SAFETY: takes no pointers, and has no effect under any number.
        unsafe { libc::syscall(getpid) >= 0 }
    })
}

/// Gives up gaining privileges by `execve`, for this thread and its children.
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

fn ioctl<T>(fd: BorrowedFd<'_>, request: libc::Ioctl, argument: *mut T) -> io::Result<c_int> {
    // SAFETY: only called from below, with an argument of the type and size that the request names.
    let r = unsafe { libc::ioctl(fd.as_raw_fd(), request, argument) };
    check(c_long::from(r)).map(|r| r as c_int)
}

/// Waits for a notification and receives it into `place`, which must be zeroed memory of at least the kernel's size.
///
/// # Safety
/// `place` must be valid for writes of 256 bytes for the whole call.
pub unsafe fn receive(listener: BorrowedFd<'_>, place: *mut libc::seccomp_notif) -> io::Result<()> {
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, place).map(drop)
}

/// Lets the call go on. An error of `ENOENT`: it is no longer waiting.
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

/// Makes the call return a new descriptor (close-on-exec) of `fd`.
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

/// True while the notified call still waits, so that its pid still is its caller.
pub fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    let mut id = id;
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
}

/// Asks for wake-ups on the waker's processor (Linux 6.6). True if the kernel does that.
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

/// Reads the memory of another process into the start of `buffer`; `pieces` are remote (address, length), their sum at most
/// the buffer's length. Returns how many bytes could be read.
pub fn read_memory(tid: u32, buffer: &mut [u8], pieces: &[(u64, usize); 2]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast::<c_void>(),
        iov_len: buffer.len(),
    };
    let remote = pieces.map(|(at, len)| libc::iovec {
        iov_base: at as usize as *mut c_void,
        iov_len: len,
    });
    let count = if pieces[1].1 == 0 { 1 } else { 2 };
    // SAFETY: the kernel writes at most `iov_len` bytes to `local`, which is the whole of `buffer`; remote addresses are
    // looked up in the other process and never used here.
    let r =
        unsafe { libc::process_vm_readv(tid as libc::pid_t, &local, 1, remote.as_ptr(), count, 0) };
    check(r as c_long).map(|n| n as usize)
}

/// Opens a path below `dir` as `openat2` does.
pub fn openat2(dir: RawFd, path: &CStr, flags: c_int, resolve: u64) -> io::Result<OwnedFd> {
    // SAFETY: all-zero bytes are a valid `open_how`.
    let mut how: libc::open_how = unsafe { MaybeUninit::zeroed().assume_init() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = resolve;
    // SAFETY: path and structure outlive the call, which only reads them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            dir,
            path.as_ptr(),
            &how,
            size_of::<libc::open_how>(),
        )
    };
    check(fd).map(own)
}

/// What `statx` says of `path` below `dir`.
pub fn statx(dir: RawFd, path: &CStr, flags: c_int) -> io::Result<libc::statx> {
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME | libc::STATX_MNT_ID;
    let mut buffer = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the kernel reads the path and writes one structure.
    check(c_long::from(unsafe {
        libc::statx(dir, path.as_ptr(), flags, mask, buffer.as_mut_ptr())
    }))?;
    // SAFETY: zeroed before and written by the kernel; all its fields are integers.
    Ok(unsafe { buffer.assume_init() })
}

/// True if the mount in which a file was opened lets nothing be changed. Asks the file system, which must be a local one.
pub fn is_readonly(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let flags = rustix::fs::fstatvfs(fd)?.f_flag;
    Ok(flags.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// The same for the mount in which our own view has this path, whose last component is followed.
pub fn is_readonly_at(path: &CStr) -> io::Result<bool> {
    let flags = rustix::fs::statvfs(path)?.f_flag;
    Ok(flags.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// True if a directory, opened for reading, has no names but `.` and `..`.
pub fn is_empty(directory: &OwnedFd) -> io::Result<bool> {
    /// Where the kernel puts an entry's length, and where its name begins.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut buffer = [0u8; 512];
    loop {
        // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`.
        let got = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory.as_raw_fd(),
                buffer.as_mut_ptr(),
                buffer.len(),
            )
        };
        let mut rest = match usize::try_from(got) {
            Err(_) => return Err(io::Error::last_os_error()),
            Ok(0) => return Ok(true),
            Ok(got) => buffer.get(..got).unwrap_or_default(),
        };
        while let Some(&[low, high]) = rest.get(LENGTH..LENGTH + 2) {
            let name = rest.get(NAME..).unwrap_or_default();
            if !name.starts_with(b".\0") && !name.starts_with(b"..\0") {
                return Ok(false);
            }
            let length = usize::from(u16::from_ne_bytes([low, high]));
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
    }
}

/// Reads a symbolic link into `buffer`.
pub fn readlink<'a>(dir: RawFd, path: &CStr, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    // SAFETY: the kernel writes at most the buffer's length into it.
    let n =
        unsafe { libc::readlinkat(dir, path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    let n = check(n as c_long)? as usize;
    Ok(buffer.get(..n).unwrap_or_default())
}

/// What the kernel says of a process by its pidfd (`struct pidfd_info`, Linux 6.13).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PidfdInfo {
    /// Asked and answered: `PIDFD_INFO_*`.
    pub mask: u64,
    /// As named.
    pub cgroup: u64,
    /// Thread.
    pub pid: u32,
    /// Process.
    pub tgid: u32,
    /// Parent.
    pub ppid: u32,
    /// As named.
    pub ruid: u32,
    /// As named.
    pub rgid: u32,
    /// As named.
    pub euid: u32,
    /// As named.
    pub egid: u32,
    /// As named.
    pub suid: u32,
    /// As named.
    pub sgid: u32,
    /// User that file access is checked for.
    pub fsuid: u32,
    /// Group that file access is checked for.
    pub fsgid: u32,
    /// Wait status, with `PIDFD_INFO_EXIT`.
    pub exit_code: i32,
}

const PIDFD_INFO_CREDS: u64 = 2;
/// The exit status is known.
pub const PIDFD_INFO_EXIT: u64 = 8;
const PIDFD_GET_INFO: libc::Ioctl = (3 << 30 | 64 << 16 | 0xff << 8 | 11) as libc::Ioctl;
const _: () = assert!(size_of::<PidfdInfo>() == 64);

/// Asks who a pidfd is, and how it ended if it has been reaped.
pub fn pidfd_info(pidfd: BorrowedFd<'_>) -> io::Result<PidfdInfo> {
    let mut info = PidfdInfo {
        mask: 1 | PIDFD_INFO_CREDS | PIDFD_INFO_EXIT,
        ..PidfdInfo::default()
    };
    ioctl(pidfd, PIDFD_GET_INFO, &mut info)?;
    Ok(info)
}

/// Opens a pidfd; with `thread`, of any thread (Linux 6.9), else of a process.
pub fn pidfd_open(pid: u32, thread: bool) -> io::Result<OwnedFd> {
    let flags = if thread { libc::O_EXCL } else { 0 };
    // SAFETY: takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, flags) }).map(own)
}

/// A copy of another process's descriptor, for us; needs the rights of a tracer.
pub fn pidfd_getfd(process: BorrowedFd<'_>, fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) }).map(own)
}

/// Inode number of a descriptor: for a pidfd of a recent kernel, unique among all processes since boot.
pub fn inode(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut buffer = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel writes one structure.
    check(c_long::from(unsafe {
        libc::fstat(fd.as_raw_fd(), buffer.as_mut_ptr())
    }))?;
    // SAFETY: zeroed before and written by the kernel; all its fields are integers.
    Ok(unsafe { buffer.assume_init() }.st_ino)
}

/// What `poll` says of one descriptor, waiting at most `timeout` milliseconds (-1: for ever).
pub fn poll(fd: BorrowedFd<'_>, events: i16, timeout: c_int) -> i16 {
    let mut entry = libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: one entry, which outlives the call.
    let n = unsafe { libc::poll(&mut entry, 1, timeout) };
    if n > 0 { entry.revents } else { 0 }
}

/// Sleeps while `word` holds `value`.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    // SAFETY: the word outlives the call; no timeout.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            0usize,
        )
    };
}

/// The same, for at most so long.
pub fn futex_wait_for(word: &AtomicU32, value: u32, at_most: Duration) {
    let at_most = libc::timespec {
        tv_sec: at_most.as_secs() as libc::time_t,
        tv_nsec: c_long::from(at_most.subsec_nanos()),
    };
    // SAFETY: word and timeout outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            &raw const at_most,
        )
    };
}

/// Wakes at most `count` sleepers on `word`.
pub fn futex_wake(word: &AtomicU32, count: u32) {
    // SAFETY: the kernel uses the word's address only to find its sleepers.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count,
        )
    };
}

/// The calling thread's id.
pub fn gettid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() as u32 }
}

/// The calling thread runs before all ordinary ones as soon as it has something to do; what it starts does not. False where it may not.
///
/// It takes root, `CAP_SYS_NICE` or `ulimit -r 1`. The lowest real-time priority: whoever else has one goes first.
pub fn come_first() -> bool {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call, which only reads it; 0 is the calling thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &lowest) == 0
    }
}

/// The signal that makes a receiver look up from a blocking call.
pub fn wake_signal() -> c_int {
    libc::SIGRTMIN() + 5
}

/// Gives the wake signal a handler that does nothing and interrupts blocking calls.
pub fn prepare_wake_signal() {
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: all-zero bytes are a valid `sigaction`; the handler does nothing, so it is safe at any point.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
        libc::sigaction(wake_signal(), &action, std::ptr::null_mut());
    }
}

/// Interrupts a thread of ours.
pub fn interrupt(tid: u32) {
    // SAFETY: takes no pointers; the signal has a handler (`prepare_wake_signal`), and a thread id that no longer exists in
    // this process is refused by the kernel.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, wake_signal()) };
}

/// Blocks every signal in the calling thread, but for the wake signal, and the one of an arena cut short.
pub fn block_signals() {
    // SAFETY: the set is initialised by `sigfillset` before it is used.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigfillset(&mut set);
        libc::sigdelset(&mut set, wake_signal());
        libc::sigdelset(&mut set, libc::SIGBUS);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}
