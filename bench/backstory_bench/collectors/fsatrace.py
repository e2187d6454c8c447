"""fsatrace: file operations by library interposition, without processes."""

from __future__ import annotations

import os
from pathlib import Path

from .base import Collector, Log, from_environment


def read(log: Path) -> Log:
    """Reads one operation from each line: `r|PATH`, `m|TO|FROM`. `q` is a look-up."""
    files: set[str] = set()
    text = (log / "fsatrace.log").read_bytes().decode("utf-8", "surrogateescape")
    for line in text.splitlines():
        kind, _, rest = line.partition("|")
        if kind in ("r", "w", "m", "d", "t"):
            files.update(part for part in rest.split("|") if part)
    return Log(files)


COLLECTORS = [
    Collector(
        "fsatrace",
        lambda log: [os.environ["FSATRACE"], "rwmdtq", str(log / "fsatrace.log"), "--"],
        from_environment("FSATRACE", "the built fsatrace executable"),
        what="files by library interposition, no processes",
        origin="https://github.com/jacereda/fsatrace and set FSATRACE",
        read=read,
    )
]
