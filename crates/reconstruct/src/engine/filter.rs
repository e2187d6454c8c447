//! The filter of a program that runs again: which of its calls become notifications.
//!
//! The guard's filter is another one: it watches the calls that change files, and it knows the
//! recorder's gate. This one watches each call that may concern a recorded resource.

use backstory_sys as sys;
use libc::{c_long, sock_filter};
use std::io;
use std::os::fd::OwnedFd;

/// The descriptor over which the child sends its listener. `sendmsg` there is not notified.
pub const CHANNEL: i32 = 900;

const ARCH_X86_64: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data`.
const NR: u32 = 0;
const ARCH: u32 = 4;
/// The lower halves of the first arguments.
const ARGUMENTS: [u32; 3] = [16, 24, 32];

/// A call that no kernel has. By it, a tool asks where a descriptor leads (`bytes/c/places.c`).
pub const PLACE: c_long = 0x6273;

/// A call that no kernel has. The stubs of redirected instructions make it (`instructions.rs`).
pub const ASKED: c_long = 0x6274;

/// A call that no kernel has. By it, a started program asks whether it is to copy itself
/// (`copy_code.rs`).
pub const COPY: c_long = 0x6275;

/// The needs of a record beside the calls that are always notified.
#[derive(Debug, Clone, Copy, Default)]
pub struct FilterNeeds {
    /// libc finds no number of the processor in memory that it shares with the kernel (`rseq`), and
    /// makes the call.
    pub asks_for_processors: bool,
    /// `mprotect` is notified: the dynamic loader makes it when all libraries are mapped.
    pub redirects_instructions: bool,
}

/// The calls that are notified.
pub const WATCHED: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmmsg,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_copy_file_range,
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_creat,
    libc::SYS_socket,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_pipe,
    libc::SYS_pipe2,
    libc::SYS_socketpair,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_wait4,
    libc::SYS_kill,
    libc::SYS_rt_sigsuspend,
    libc::SYS_pause,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpgrp,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_setpgid,
    libc::SYS_setsid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_getcpu,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getresuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresgid,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit_group,
    PLACE,
    ASKED,
    COPY,
];

/// The calls that are notified by one of their arguments. An entry has the call, the position of
/// the argument, a value, and whether calls with this value are notified, or the others.
///
/// The first call of a dynamic loader is `brk(0)`. A directory of mkdtemp(3) has the mode 0700.
/// Handlers of `SIGCHLD` get a flag.
const WATCHED_BY_ARGUMENT: &[(c_long, usize, i32, bool)] = &[
    (libc::SYS_sendmsg, 0, CHANNEL, false),
    (libc::SYS_brk, 0, 0, true),
    (libc::SYS_mkdir, 1, 0o700, true),
    (libc::SYS_mkdirat, 2, 0o700, true),
    (libc::SYS_rt_sigaction, 0, libc::SIGCHLD, true),
];

fn statement(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    let code = code as u16;
    sock_filter { code, jt, jf, k }
}

fn load(offset: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn equals(k: u32, jt: u8, jf: u8) -> sock_filter {
    jump(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, jt, jf)
}

fn result(action: u32) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, action)
}

/// The instructions. It allocates, so it is called before the fork.
pub fn program(needs: FilterNeeds) -> Vec<sock_filter> {
    let notify = || result(libc::SECCOMP_RET_USER_NOTIF);
    let allow = || result(libc::SECCOMP_RET_ALLOW);
    let refuse = || result(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    // Calls of a 32-bit program and requests of a ring would reach no supervisor.
    let mut code = vec![load(ARCH), equals(ARCH_X86_64, 1, 0), refuse(), load(NR)];
    code.extend([equals(libc::SYS_io_uring_setup as u32, 0, 1), refuse()]);
    if needs.asks_for_processors {
        code.extend([equals(libc::SYS_rseq as u32, 0, 1), refuse()]);
    }
    if needs.redirects_instructions {
        code.extend([equals(libc::SYS_mprotect as u32, 0, 1), notify()]);
    }
    for call in WATCHED {
        code.extend([equals(*call as u32, 0, 1), notify()]);
    }
    for (call, argument, value, same) in WATCHED_BY_ARGUMENT.iter().copied() {
        code.extend([
            equals(call as u32, 0, 4),
            load(ARGUMENTS[argument]),
            equals(value as u32, 1, 0),
            if same { allow() } else { notify() },
            if same { notify() } else { allow() },
        ]);
    }
    code.push(allow());
    code
}

/// True if the filter may notify of a call with this number.
pub fn may_notify(number: c_long) -> bool {
    let by_argument = |call: &(c_long, usize, i32, bool)| call.0 == number;
    number == libc::SYS_mprotect
        || WATCHED.contains(&number)
        || WATCHED_BY_ARGUMENT.iter().any(by_argument)
}

/// Installs the filter on this process and returns its listener.
pub fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    sys::set_no_new_privs()?;
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    sys::install_filter(program, flags)
}
