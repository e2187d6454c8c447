"""Syscalls by category: the nine categories of the paper, and two more for the cost model.

The two are `data` (reads and writes) and `other` (memory and everything else).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

PAPER = ("socket", "metadata", "directory", "file", "exec", "fork", "exit", "ipc", "chdir")
"""The categories of section 3.4 of the paper."""
CATEGORIES = (*PAPER, "data", "other")

_NAMES: dict[str, str] = {
    "socket": "socket socketpair connect accept accept4 bind listen shutdown sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg "
    "getsockopt setsockopt getsockname getpeername",
    "metadata": "stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat chmod fchmod fchmodat chown fchown "
    "lchown fchownat utime utimes utimensat futimesat getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr "
    "flistxattr removexattr lremovexattr fremovexattr statfs fstatfs umask",
    "directory": "mkdir mkdirat rmdir getdents getdents64 getcwd",
    "file": "open openat openat2 creat close close_range rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat "
    "truncate ftruncate fallocate dup dup2 dup3 fcntl mknod mknodat flock fsync fdatasync memfd_create",
    "exec": "execve execveat",
    "fork": "fork vfork clone clone3",
    "exit": "exit exit_group wait4 waitid",
    "ipc": "pipe pipe2 eventfd eventfd2 shmget shmat shmctl semget semop semctl msgget msgsnd msgrcv kill tgkill tkill signalfd4",
    "chdir": "chdir fchdir chroot",
    "data": "read write readv writev pread64 pwrite64 preadv pwritev copy_file_range sendfile splice lseek",
}
BY_CALL: dict[str, str] = {call: category for category, calls in _NAMES.items() for call in calls.split()}

# The names of these operations in backstory's log (`backstory log --raw`). Operations that are not
# calls of the program are left out.
BY_OPERATION: dict[str, str] = {
    operation: category
    for category, operations in {
        "socket": "SOCKET SOCKETPAIR CONNECT ACCEPT BIND LISTEN PASS",
        "metadata": "STAT ACCESS READLINK META",
        "directory": "MKDIR LIST",
        "file": "OPEN CLOSE CLOSE_RANGE DUP CLOEXEC TRUNCATE RENAME LINK SYMLINK UNLINK MKNOD MEMFD",
        "exec": "EXEC",
        "fork": "FORK VFORK THREAD",
        "exit": "EXIT WAIT",
        "ipc": "PIPE EVENTFD KILL",
        "chdir": "CHDIR CHROOT",
        "data": "READ WRITE COPY",
    }.items()
    for operation in operations.split()
}


def by_category(counts: Mapping[str, int], table: Mapping[str, str] = BY_CALL) -> Counter[str]:
    """Sums counts by category. Names that are not in the table count as `other`."""
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[table.get(name, "other")] += count
    return found
