"""IO bench lmbench: nineteen microbenchmarks from a built tree.

lmbench chooses its number of iterations by the clock, unless `ENOUGH` is set. Even then it runs for
a fixed time, not for a fixed count. The wall time, which the paper reports, is therefore nearly the
same under any collector. This module uses the figures that the programs print: microseconds per
operation, or megabytes per second.
"""

from __future__ import annotations

from pathlib import Path

from .base import Instance, Need
from .sources import source

GROUP = "IO bench lmbench"
MICROSECONDS = r"([\d.]+) microseconds"
RATE = r"^[\d.]+ ([\d.]+)\s*$|bandwidth: ([\d.]+) MB/sec"

# Name, program with arguments, pattern of the figure, and true if the figure is a rate.
PROGRAMS: tuple[tuple[str, str, str, bool], ...] = (
    ("getppid", "lat_syscall -N 3 null", MICROSECONDS, False),
    ("read", "lat_syscall -N 3 read", MICROSECONDS, False),
    ("write", "lat_syscall -N 3 write", MICROSECONDS, False),
    ("stat", "lat_syscall -N 3 stat file", MICROSECONDS, False),
    ("fstat", "lat_syscall -N 3 fstat file", MICROSECONDS, False),
    ("open/close", "lat_syscall -N 3 open file", MICROSECONDS, False),
    ("select-file", "lat_select -N 3 -n 100 file", MICROSECONDS, False),
    ("select-tcp", "lat_select -N 3 -n 100 tcp", MICROSECONDS, False),
    ("install-signal", "lat_sig -N 3 install", MICROSECONDS, False),
    ("catch-signal", "lat_sig -N 3 catch", MICROSECONDS, False),
    ("protection-fault", "lat_sig -N 3 prot file", MICROSECONDS, False),
    ("page-fault", "lat_pagefault -N 3 file", MICROSECONDS, False),
    ("mmap", "lat_mmap -N 3 4m file", r"^[\d.]+ ([\d.]+)\s*$", False),
    ("fork", "lat_proc -N 3 fork", MICROSECONDS, False),
    ("exec", "lat_proc -N 3 exec", MICROSECONDS, False),
    ("fs", "lat_fs -N 1 -s 1k .", r"^1k\s+\d+\s+(\d+)", True),
    ("bw_unix", "bw_unix -N 3", RATE, True),
    ("bw_pipe", "bw_pipe -N 3", RATE, True),
    ("bw_file_rd", "bw_file_rd -N 3 1m io_only file", RATE, True),
)


def _bin() -> Path | None:
    tree = source("lmbench").directory
    return next((tree / "bin").glob("*/lat_syscall"), None) if tree is not None else None


def _missing() -> str | None:
    if source("lmbench").directory is None:
        return source("lmbench").reason()
    return None if _bin() else f"{source('lmbench').directory}/bin has no lat_syscall: build lmbench"


def _prepare(root: Path) -> None:
    found = _bin()
    if found is None:
        raise FileNotFoundError(_missing())
    (root / "bin").symlink_to(found.parent)
    (root / "file").write_bytes(b"x" * (4 << 20))
    hello = Path("/tmp/hello")
    if not hello.exists() and (found.parent / "hello").exists():
        hello.symlink_to(found.parent / "hello")


def _program(name: str, line: str, figure: str, rate: bool) -> Instance:
    return Instance(
        GROUP,
        name,
        f"lmbench {line}",
        f"bin/{line} 2>&1",
        (Need(_missing),),
        _prepare,
        before="export ENOUGH=100000",
        fixed=True,
        figure=figure,
        rate=rate,
    )


INSTANCES = [_program(*row) for row in PROGRAMS]
