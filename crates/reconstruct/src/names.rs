//! Names of system calls, for reports.

use libc::*;

/// The name of a call. Calls that the filter does not watch have none.
pub fn name(number: c_long) -> &'static str {
    NAMES
        .iter()
        .find(|(known, _)| *known == number)
        .map_or("call", |(_, name)| name)
}

macro_rules! names {
    ($($number:ident $name:literal,)*) => {
        const NAMES: &[(c_long, &str)] = &[$(($number, $name)),*];
    };
}

names! {
    SYS_accept "accept",
    SYS_accept4 "accept4",
    SYS_access "access",
    SYS_bind "bind",
    SYS_brk "brk",
    SYS_clock_gettime "clock_gettime",
    SYS_clock_nanosleep "clock_nanosleep",
    SYS_clone "clone",
    SYS_clone3 "clone3",
    SYS_connect "connect",
    SYS_copy_file_range "copy_file_range",
    SYS_creat "creat",
    SYS_epoll_ctl "epoll_ctl",
    SYS_epoll_pwait "epoll_pwait",
    SYS_epoll_pwait2 "epoll_pwait2",
    SYS_epoll_wait "epoll_wait",
    SYS_execve "execve",
    SYS_execveat "execveat",
    SYS_exit_group "exit_group",
    SYS_faccessat "faccessat",
    SYS_faccessat2 "faccessat2",
    SYS_fork "fork",
    SYS_fstat "fstat",
    SYS_getdents64 "getdents64",
    SYS_getpeername "getpeername",
    SYS_getpid "getpid",
    SYS_getppid "getppid",
    SYS_getrandom "getrandom",
    SYS_getrusage "getrusage",
    SYS_getsockname "getsockname",
    SYS_getsockopt "getsockopt",
    SYS_ioctl "ioctl",
    SYS_listen "listen",
    SYS_lseek "lseek",
    SYS_lstat "lstat",
    SYS_nanosleep "nanosleep",
    SYS_newfstatat "newfstatat",
    SYS_open "open",
    SYS_openat "openat",
    SYS_openat2 "openat2",
    SYS_pipe "pipe",
    SYS_pipe2 "pipe2",
    SYS_poll "poll",
    SYS_ppoll "ppoll",
    SYS_pread64 "pread64",
    SYS_preadv "preadv",
    SYS_preadv2 "preadv2",
    SYS_pselect6 "pselect6",
    SYS_pwrite64 "pwrite64",
    SYS_pwritev "pwritev",
    SYS_pwritev2 "pwritev2",
    SYS_read "read",
    SYS_readlink "readlink",
    SYS_readlinkat "readlinkat",
    SYS_readv "readv",
    SYS_recvfrom "recvfrom",
    SYS_recvmmsg "recvmmsg",
    SYS_recvmsg "recvmsg",
    SYS_select "select",
    SYS_sendfile "sendfile",
    SYS_sendmmsg "sendmmsg",
    SYS_sendmsg "sendmsg",
    SYS_sendto "sendto",
    SYS_setsockopt "setsockopt",
    SYS_shutdown "shutdown",
    SYS_socket "socket",
    SYS_socketpair "socketpair",
    SYS_splice "splice",
    SYS_stat "stat",
    SYS_statx "statx",
    SYS_sysinfo "sysinfo",
    SYS_times "times",
    SYS_uname "uname",
    SYS_vfork "vfork",
    SYS_wait4 "wait4",
    SYS_write "write",
    SYS_writev "writev",
}
