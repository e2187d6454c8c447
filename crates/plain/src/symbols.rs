//! The functions of libc that make a watched system call inside libc, where the recorder's own
//! functions are not called.
//!
//! The recorder redirects some of libc's inner calls (`redirect.c`): those of `open`, `connect` and
//! `bind`, and `execve` for its children. A function that makes no other watched call is not here.
//! The lists come from the graph of direct calls in glibc 2.36. A test computes that graph for the
//! libc of the machine, and compares.

/// A program that imports one of these is never plain.
pub const UNSEEN: &[&str] = &[
    // The child changes its directory between the recorder's marks.
    "posix_spawn_file_actions_addchdir_np",
    "posix_spawn_file_actions_addfchdir_np",
    "pidfd_spawn",
    "pidfd_spawnp",
    // The recorder does not wrap these two.
    "move_mount",
    "__mq_open_2",
    // Another namespace of the loader has no recorder.
    "dlmopen",
    // Sun RPC, and the commands of old for other machines: links, removals and sockets inside.
    "authdes_create",
    "authdes_pk_create",
    "callrpc",
    "clnt_broadcast",
    "clnt_create",
    "clnttcp_create",
    "clntudp_bufcreate",
    "clntudp_create",
    "clntunix_create",
    "rcmd",
    "rcmd_af",
    "rexec",
    "rexec_af",
    "svcunix_create",
    "uselib",
    // A library's own look-up may find libc's function behind the recorder's.
    "dlvsym",
];

/// The filter is needed from the first call of one of these on. They load libraries by names that
/// no file states, or make watched calls that no redirection sees.
pub const AT_CALL: &[&str] = &[
    "dlopen",
    "iconv_open",
    "tmpfile",
    "tmpfile64",
    "sem_open",
    "sem_unlink",
    "syscall",
    "wordexp",
    // They change the directory, or list directories by functions that have no name.
    "ftw",
    "ftw64",
    "nftw",
    "nftw64",
    "fts_open",
    "fts64_open",
    "fts_children",
    "fts64_children",
    "fts_close",
    "fts64_close",
    "fts_read",
    "fts64_read",
    "scandirat",
    "scandirat64",
    // The name service: it loads libraries unless the entry is in the local file.
    "getaddrinfo",
    "getnameinfo",
    "gethostbyaddr",
    "gethostbyaddr_r",
    "gethostbyname",
    "gethostbyname2",
    "gethostbyname2_r",
    "gethostbyname_r",
    "gethostent",
    "gethostent_r",
    "getnetbyaddr",
    "getnetbyaddr_r",
    "getnetbyname",
    "getnetbyname_r",
    "getnetent",
    "getprotobyname",
    "getprotobyname_r",
    "getprotobynumber",
    "getprotobynumber_r",
    "getprotoent",
    "getrpcbyname",
    "getrpcbynumber",
    "getservbyname",
    "getservbyname_r",
    "getservbyport",
    "getservbyport_r",
    "getservent",
    "getservent_r",
    "getpwent",
    "getpwent_r",
    "getgrent",
    "getgrent_r",
    "getspent",
    "getspnam",
    "getspnam_r",
    "getlogin",
    "getlogin_r",
    "cuserid",
    "initgroups",
    "getgrouplist",
    "innetgr",
    "setnetgrent",
    // They load libgcc_s.
    "backtrace",
    "pthread_cancel",
    "pthread_exit",
];

/// True for a name in [`UNSEEN`].
pub fn is_unseen(name: &[u8]) -> bool {
    UNSEEN.iter().any(|one| one.as_bytes() == name)
}
