"""SPADE's strace reporter: strace as the reporter starts it.

The reporter builds its graph from the log afterwards. That part is not timed.
"""

from .base import Collector, apt, needs
from .strace import LOG, words
from .strace_log import read

# The reporter traces these calls: those that move data between processes and files.
CALLS = (
    "open,openat,creat,close,read,write,readv,writev,pread64,pwrite64,dup,dup2,dup3,pipe,pipe2,fcntl,link,linkat,symlink,symlinkat,"
    "rename,renameat,renameat2,unlink,unlinkat,truncate,ftruncate,socket,connect,accept,accept4,bind,sendto,recvfrom,sendmsg,"
    "recvmsg,%process"
)

COLLECTORS = [
    Collector(
        "spade-strace",
        lambda log: words(log, CALLS, "-e", "signal=none", "-ttt", "-s", "1024"),
        needs("strace", "Debian package strace"),
        what="data flow by strace, reads and writes included",
        install=apt("strace"),
        read=lambda log: read(log / LOG),
        version=("strace", "-V"),
    )
]
