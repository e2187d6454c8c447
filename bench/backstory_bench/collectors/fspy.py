"""fspy: the file tracker of vite-task; preload, and seccomp for static programs."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from .base import Collector, Log, from_environment


def read(log: Path) -> Log:
    """The example program's CSV: an access each, the path last."""
    with (log / "fspy.csv").open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return Log({cell for row in csv.reader(file) for cell in row if cell.startswith("/")})


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
