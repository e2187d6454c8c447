"""strace, with the syscalls of the paper, and with those that backstory watches."""

from __future__ import annotations

from pathlib import Path

from .base import Collector, apt, needs
from .strace_log import read

# The calls that backstory's guard and recorder watch, so that strace does comparable work.
FLOW_CALLS = "%file,%process,close,dup,dup2,dup3,pipe,pipe2,socket,connect,accept,accept4,bind,mmap,fchdir"

# The configuration in appendix A.1 of the paper: file calls except read and write, file metadata,
# sockets and IPC except send and receive, processes.
PAPER_CALLS = (
    "%file,%process,%ipc,close,dup,dup2,dup3,fcntl,pipe,pipe2,fchdir,fstat,fchmod,fchown,ftruncate,futimesat,getdents64,"
    "fsetxattr,fgetxattr,flistxattr,fremovexattr,socket,socketpair,connect,accept,accept4,bind,listen,shutdown"
)

LOG = "strace.log"


def words(log: Path, calls: str, *more: str) -> list[str]:
    """Returns the words of strace before a command."""
    return ["strace", "-f", "--seccomp-bpf", "-qq", *more, "-o", str(log / LOG), "-e", f"trace={calls}"]


def _strace(name: str, calls: str, what: str) -> Collector:
    return Collector(
        name,
        lambda log: words(log, calls, "-s", "4096"),
        needs("strace", "Debian package strace"),
        what=what,
        install=apt("strace"),
        read=lambda log: read(log / LOG),
        version=("strace", "-V"),
    )


COLLECTORS = [
    _strace("strace", PAPER_CALLS, "the paper's syscall set"),
    _strace("strace-flow", FLOW_CALLS, "the syscalls that backstory watches"),
    # Every call, so a filter would save nothing.
    Collector(
        "strace-bytes",
        lambda log: ["strace", "-f", "-qq", "-s", "65536", "-o", str(log / LOG)],
        needs("strace", "Debian package strace"),
        what="all syscalls, with up to 65,536 bytes of each buffer",
        install=apt("strace"),
        by_name_only=True,
        version=("strace", "-V"),
    ),
]
