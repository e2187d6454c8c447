//! The arguments of each call, by the names that perf prints, in the order of the kernel. strace
//! has the same order.

/// The kind of an argument tells how its text becomes that of strace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A descriptor, `CWD` or a number.
    Descriptor,
    /// A name in quotes.
    Name,
    /// A number, or an address that nothing needs.
    Number,
    /// Flags without their prefix.
    Flags(&'static str),
    /// The permissions of a file.
    Mode,
    /// A socket's address.
    Address,
    /// The list of a program's arguments, which perf does not print.
    Arguments,
    /// The list of two descriptors, which perf does not print.
    Pair,
    /// `struct clone_args` or `struct open_how`.
    Structure,
}

use Kind::{
    Address, Arguments, Descriptor as Fd, Flags, Mode, Name, Number as Num, Pair, Structure,
};

/// The arguments of a call.
pub(super) type Signature = &'static [(&'static str, Kind)];

const OPEN: Kind = Flags("O_");
const AT: Kind = Flags("AT_");
const SOCKET: Kind = Flags("SOCK_");
const FAMILY: Kind = Flags("AF_");
const SIGNAL: Kind = Flags("SIG");

/// The calls of which a run is made, and those that make a descriptor.
#[rustfmt::skip]
const CALLS: &[(&str, Signature)] = &[
    ("execve", &[("filename", Name), ("argv", Arguments), ("envp", Num)]),
    ("execveat", &[("fd", Fd), ("filename", Name), ("argv", Arguments), ("envp", Num), ("flags", AT)]),
    ("open", &[("filename", Name), ("flags", OPEN), ("mode", Mode)]),
    ("openat", &[("dfd", Fd), ("filename", Name), ("flags", OPEN), ("mode", Mode)]),
    ("openat2", &[("dfd", Fd), ("filename", Name), ("how", Structure), ("usize", Num)]),
    ("creat", &[("pathname", Name), ("mode", Mode)]),
    ("close", &[("fd", Fd)]),
    ("close_range", &[("fd", Fd), ("max_fd", Num), ("flags", Flags("CLOSE_RANGE_"))]),
    ("read", &[("fd", Fd), ("buf", Num), ("count", Num)]),
    ("pread64", &[("fd", Fd), ("buf", Num), ("count", Num), ("pos", Num)]),
    ("readv", &[("fd", Fd), ("vec", Num), ("vlen", Num)]),
    ("preadv", &[("fd", Fd), ("vec", Num), ("vlen", Num)]),
    ("preadv2", &[("fd", Fd), ("vec", Num), ("vlen", Num)]),
    ("write", &[("fd", Fd), ("buf", Num), ("count", Num)]),
    ("pwrite64", &[("fd", Fd), ("buf", Num), ("count", Num), ("pos", Num)]),
    ("writev", &[("fd", Fd), ("vec", Num), ("vlen", Num)]),
    ("pwritev", &[("fd", Fd), ("vec", Num), ("vlen", Num)]),
    ("pwritev2", &[("fd", Fd), ("vec", Num), ("vlen", Num)]),
    ("recvfrom", &[("fd", Fd), ("ubuf", Num), ("size", Num), ("flags", Num), ("addr", Address)]),
    ("recvmsg", &[("fd", Fd), ("msg", Num), ("flags", Num)]),
    ("sendto", &[("fd", Fd), ("buff", Num), ("len", Num), ("flags", Num), ("addr", Address), ("addr_len", Num)]),
    ("sendmsg", &[("fd", Fd), ("msg", Num), ("flags", Num)]),
    ("fallocate", &[("fd", Fd), ("mode", Num), ("offset", Num), ("len", Num)]),
    ("ftruncate", &[("fd", Fd), ("length", Num)]),
    ("getdents64", &[("fd", Fd), ("dirent", Num), ("count", Num)]),
    ("mmap", &[("addr", Num), ("len", Num), ("prot", Flags("PROT_")), ("flags", Flags("MAP_")), ("fd", Fd), ("off", Num)]),
    ("dup", &[("fildes", Fd)]),
    ("dup2", &[("oldfd", Fd), ("newfd", Fd)]),
    ("dup3", &[("oldfd", Fd), ("newfd", Fd), ("flags", OPEN)]),
    ("fcntl", &[("fd", Fd), ("cmd", Flags("F_")), ("arg", Num)]),
    ("sendfile", &[("out_fd", Fd), ("in_fd", Fd), ("offset", Num), ("count", Num)]),
    ("sendfile64", &[("out_fd", Fd), ("in_fd", Fd), ("offset", Num), ("count", Num)]),
    ("copy_file_range", &[("fd_in", Fd), ("off_in", Num), ("fd_out", Fd), ("off_out", Num), ("len", Num), ("flags", Num)]),
    ("splice", &[("fd_in", Fd), ("off_in", Num), ("fd_out", Fd), ("off_out", Num), ("len", Num), ("flags", Num)]),
    ("tee", &[("fdin", Fd), ("fdout", Fd), ("len", Num), ("flags", Num)]),
    ("stat", &[("filename", Name), ("statbuf", Num)]),
    ("lstat", &[("filename", Name), ("statbuf", Num)]),
    ("newfstatat", &[("dfd", Fd), ("filename", Name), ("statbuf", Num), ("flag", AT)]),
    ("statx", &[("dfd", Fd), ("filename", Name), ("flags", AT), ("mask", Num), ("buffer", Num)]),
    ("access", &[("filename", Name), ("mode", Flags(""))]),
    ("faccessat", &[("dfd", Fd), ("filename", Name), ("mode", Flags(""))]),
    ("faccessat2", &[("dfd", Fd), ("filename", Name), ("mode", Flags("")), ("flags", AT)]),
    ("readlink", &[("path", Name), ("buf", Num), ("bufsiz", Num)]),
    ("readlinkat", &[("dfd", Fd), ("pathname", Name), ("buf", Num), ("bufsiz", Num)]),
    ("statfs", &[("pathname", Name), ("buf", Num)]),
    ("truncate", &[("path", Name), ("length", Num)]),
    ("unlink", &[("pathname", Name)]),
    ("rmdir", &[("pathname", Name)]),
    ("unlinkat", &[("dfd", Fd), ("pathname", Name), ("flag", AT)]),
    ("mkdir", &[("pathname", Name), ("mode", Mode)]),
    ("mkdirat", &[("dfd", Fd), ("pathname", Name), ("mode", Mode)]),
    ("mknod", &[("filename", Name), ("mode", Mode), ("dev", Num)]),
    ("mknodat", &[("dfd", Fd), ("filename", Name), ("mode", Mode), ("dev", Num)]),
    ("rename", &[("oldname", Name), ("newname", Name)]),
    ("renameat", &[("olddfd", Fd), ("oldname", Name), ("newdfd", Fd), ("newname", Name)]),
    ("renameat2", &[("olddfd", Fd), ("oldname", Name), ("newdfd", Fd), ("newname", Name), ("flags", Flags("RENAME_"))]),
    ("link", &[("oldname", Name), ("newname", Name)]),
    ("linkat", &[("olddfd", Fd), ("oldname", Name), ("newdfd", Fd), ("newname", Name), ("flags", AT)]),
    ("symlink", &[("oldname", Name), ("newname", Name)]),
    ("symlinkat", &[("oldname", Name), ("newdfd", Fd), ("newname", Name)]),
    ("chmod", &[("filename", Name), ("mode", Mode)]),
    ("fchmodat", &[("dfd", Fd), ("filename", Name), ("mode", Mode)]),
    ("fchmodat2", &[("dfd", Fd), ("filename", Name), ("mode", Mode), ("flags", AT)]),
    ("fchmod", &[("fd", Fd), ("mode", Mode)]),
    ("chown", &[("filename", Name), ("user", Num), ("group", Num)]),
    ("lchown", &[("filename", Name), ("user", Num), ("group", Num)]),
    ("fchownat", &[("dfd", Fd), ("filename", Name), ("user", Num), ("group", Num), ("flag", AT)]),
    ("fchown", &[("fd", Fd), ("user", Num), ("group", Num)]),
    ("utime", &[("filename", Name), ("times", Num)]),
    ("utimes", &[("filename", Name), ("utimes", Num)]),
    ("utimensat", &[("dfd", Fd), ("filename", Name), ("utimes", Num), ("flags", AT)]),
    ("futimesat", &[("dfd", Fd), ("filename", Name), ("utimes", Num)]),
    ("setxattr", &[("pathname", Name), ("name", Name)]),
    ("lsetxattr", &[("pathname", Name), ("name", Name)]),
    ("fsetxattr", &[("fd", Fd), ("name", Name)]),
    ("removexattr", &[("pathname", Name), ("name", Name)]),
    ("lremovexattr", &[("pathname", Name), ("name", Name)]),
    ("fremovexattr", &[("fd", Fd), ("name", Name)]),
    ("mount", &[("dev_name", Name), ("dir_name", Name), ("type", Name), ("flags", Flags("MS_")), ("data", Num)]),
    ("umount2", &[("name", Name), ("flags", Num)]),
    ("pivot_root", &[("new_root", Name), ("put_old", Name)]),
    ("chdir", &[("filename", Name)]),
    ("fchdir", &[("fd", Fd)]),
    ("chroot", &[("filename", Name)]),
    ("pipe", &[("fildes", Pair)]),
    ("pipe2", &[("fildes", Pair), ("flags", OPEN)]),
    ("socketpair", &[("family", FAMILY), ("type", SOCKET), ("protocol", Num), ("usockvec", Pair)]),
    ("socket", &[("family", FAMILY), ("type", SOCKET), ("protocol", Num)]),
    ("connect", &[("fd", Fd), ("uservaddr", Address), ("addrlen", Num)]),
    ("bind", &[("fd", Fd), ("umyaddr", Address), ("addrlen", Num)]),
    ("accept", &[("fd", Fd), ("upeer_sockaddr", Num), ("upeer_addrlen", Num)]),
    ("accept4", &[("fd", Fd), ("upeer_sockaddr", Num), ("upeer_addrlen", Num), ("flags", SOCKET)]),
    ("listen", &[("fd", Fd), ("backlog", Num)]),
    ("memfd_create", &[("uname", Name), ("flags", Num)]),
    ("eventfd2", &[("count", Num), ("flags", OPEN)]),
    ("epoll_create1", &[("flags", OPEN)]),
    ("timerfd_create", &[("clockid", Num), ("flags", OPEN)]),
    ("signalfd4", &[("ufd", Fd), ("user_mask", Num), ("sizemask", Num), ("flags", OPEN)]),
    ("inotify_init1", &[("flags", OPEN)]),
    ("pidfd_open", &[("pid", Num), ("flags", Num)]),
    ("wait4", &[("upid", Num), ("stat_addr", Num), ("options", Flags("W"))]),
    ("waitid", &[("which", Num), ("upid", Num), ("infop", Num), ("options", Flags("W"))]),
    ("kill", &[("pid", Num), ("sig", SIGNAL)]),
    ("tkill", &[("pid", Num), ("sig", SIGNAL)]),
    ("tgkill", &[("tgid", Num), ("pid", Num), ("sig", SIGNAL)]),
    ("unshare", &[("unshare_flags", Flags("CLONE_"))]),
    ("setns", &[("fd", Fd), ("flags", Flags("CLONE_"))]),
    ("exit", &[("error_code", Num)]),
    ("exit_group", &[("error_code", Num)]),
    ("clone", &[("clone_flags", Flags("CLONE_"))]),
    ("clone3", &[("uargs", Structure), ("size", Num)]),
];

/// The arguments of a call. Empty for a call that changes nothing that a run is made of.
pub(super) fn signature(name: &str) -> Signature {
    let found = CALLS.iter().find(|(known, _)| *known == name);
    found.map_or(&[], |(_, signature)| *signature)
}

/// The permissions that perf names, with their numbers.
pub(super) const MODES: &[(&str, u32)] = &[
    ("IALLUGO", 0o7777),
    ("IRWXUGO", 0o777),
    ("IRUGO", 0o444),
    ("IWUGO", 0o222),
    ("IXUGO", 0o111),
    ("IRWXU", 0o700),
    ("IRUSR", 0o400),
    ("IWUSR", 0o200),
    ("IXUSR", 0o100),
    ("IRWXG", 0o70),
    ("IRGRP", 0o40),
    ("IWGRP", 0o20),
    ("IXGRP", 0o10),
    ("IRWXO", 0o7),
    ("IROTH", 0o4),
    ("IWOTH", 0o2),
    ("IXOTH", 0o1),
    ("ISUID", 0o4000),
    ("ISGID", 0o2000),
    ("ISVTX", 0o1000),
    ("IFREG", libc::S_IFREG),
    ("IFDIR", libc::S_IFDIR),
    ("IFIFO", libc::S_IFIFO),
    ("IFCHR", libc::S_IFCHR),
    ("IFBLK", libc::S_IFBLK),
    ("IFSOCK", libc::S_IFSOCK),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The calls of the script that give no argument that is needed.
    const BARE: [&str; 3] = ["set_tid_address", "fork", "vfork"];

    #[test]
    fn each_call_of_the_script_has_its_arguments() {
        let lines = super::super::SCRIPT.lines();
        let lists = lines.filter_map(|line| line.strip_prefix("calls="));
        let calls: HashSet<&str> = lists
            .flat_map(|list| list.split(','))
            .filter(|name| *name != "$calls")
            .collect();
        assert!(calls.len() > 80);
        for call in &calls {
            assert!(
                !signature(call).is_empty() || BARE.contains(call),
                "{call} has no arguments"
            );
        }
        for (known, signature) in CALLS {
            let is_use = signature.iter().any(|(_, kind)| *kind == Kind::Pair)
                || known.contains("open")
                || known.contains("name");
            assert!(
                !is_use || calls.contains(known),
                "{known} is not in the script"
            );
        }
    }
}
