"""UnixBench's ten tests, as in the trade-offs paper, from a built tree.

Each runs for two seconds and prints its rate.
"""

from __future__ import annotations

from pathlib import Path

from .base import Instance, built
from .sources import source

GROUP = "UnixBench"
SECONDS = 2
COUNT = r"COUNT\|([\d.]+)\|"

# The name in the paper, and the program with its arguments.
PROGRAMS: tuple[tuple[str, str], ...] = (
    ("execl-xput", f"execl {SECONDS}"),
    ("fcopy-256", f"fstime -c -t {SECONDS} -d . -b 256 -m 500"),
    ("fcopy-1024", f"fstime -c -t {SECONDS} -d . -b 1024 -m 2000"),
    ("fcopy-4096", f"fstime -c -t {SECONDS} -d . -b 4096 -m 8000"),
    ("pipe-xput", f"pipe {SECONDS}"),
    ("pipe-cs", f"context1 {SECONDS}"),
    ("spawn-xput", f"spawn {SECONDS}"),
    ("shell-1", f"looper {SECONDS} ./multi.sh 1"),
    ("shell-8", f"looper {SECONDS} ./multi.sh 8"),
    ("syscall", f"syscall {SECONDS}"),
)


def _prepare(root: Path) -> None:
    tree = source("byte-unixbench").directory
    if tree is None:
        raise FileNotFoundError(source("byte-unixbench").reason())
    (root / "pgms").symlink_to(tree / "UnixBench" / "pgms")
    for name in ("multi.sh", "tst.sh"):
        (root / name).symlink_to(tree / "UnixBench" / "pgms" / name)
    (root / "sort.src").symlink_to(tree / "UnixBench" / "testdir" / "sort.src")


def _program(name: str, line: str) -> Instance:
    # execl executes itself again by $UB_BINDIR. Its programs print their count on standard error.
    return Instance(
        GROUP,
        name,
        f"UnixBench {line}",
        f"pgms/{line} 2>&1",
        (built("byte-unixbench", f"UnixBench/pgms/{line.split()[0]}"),),
        _prepare,
        ("dummy*", "log", "sort.[0-9]*", "od.[0-9]*", "grep.[0-9]*", "wc.[0-9]*"),
        before='export UB_BINDIR="$PWD/pgms"; PATH=$PATH:$UB_BINDIR',
        fixed=True,
        figure=COUNT,
        rate=True,
    )


INSTANCES = [_program(*row) for row in PROGRAMS]
