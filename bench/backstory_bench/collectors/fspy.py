"""fspy: the file tracker of vite-task.

It uses a preload library, and seccomp for static programs.
"""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

from .base import Collector, Log, from_environment


def read(log: Path) -> Log:
    """Reads the CSV of the example program: one access a row, the path first, in Rust's debug
    format.
    """
    with (log / "fspy.csv").open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return Log({_path(row[0]) for row in csv.reader(file) if row})


_ESCAPE = re.compile(r"\\(u\{([0-9a-f]+)\}|x([0-9A-F]{2})|.)")
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def _path(shown: str) -> str:
    def plain(escape: re.Match[str]) -> str:
        if escape[2]:
            return chr(int(escape[2], 16))
        return os.fsdecode(bytes([int(escape[3], 16)])) if escape[3] else _SHORT.get(escape[1], escape[1])

    return _ESCAPE.sub(plain, shown[1:-1] if shown.startswith('"') else shown)


COLLECTORS = [
    Collector(
        "fspy",
        lambda log: [os.environ["FSPY"], "-o", str(log / "fspy.csv")],
        from_environment("FSPY", "the built fspy example `cli`"),
        what="files that are opened or looked up",
        origin="https://github.com/voidzero-dev/vite-task (crate fspy, example cli) and set FSPY",
        read=read,
    )
]
