"""ReproZip: ptrace and an SQLite trace. The packaging of the files is not timed."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
from pathlib import Path

from .base import Collector, Log, pip


def program() -> str:
    """Returns the executable: `$REPROZIP`, else `reprozip` on the path."""
    return os.environ.get("REPROZIP", "reprozip")


def _missing() -> str | None:
    return None if shutil.which(program()) else "reprozip is not installed (PyPI: reprozip; or set REPROZIP)"


def read(log: Path) -> Log:
    """Reads the trace database: `opened_files`, `executed_files`, `processes`."""
    database = log / "trace" / "trace.sqlite3"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        files = {name for (name,) in connection.execute("SELECT name FROM opened_files WHERE is_directory = 0")}
        execs = list(connection.execute("SELECT name, process FROM executed_files ORDER BY timestamp"))
        parent = dict(connection.execute("SELECT id, parent FROM processes"))
    ran: dict[int, list[str]] = {}
    for name, process in execs:
        ran.setdefault(process, []).append(os.path.basename(name))
    starts: set[tuple[str, str]] = set()
    for process, names in ran.items():
        above = parent.get(process)
        while above is not None and above not in ran:
            above = parent.get(above)
        chain = ([ran[above][-1]] if above is not None else []) + names
        starts.update(itertools.pairwise(chain))
    return Log(files | {name for name, _ in execs}, starts)


COLLECTORS = [
    Collector(
        "reprozip",
        lambda log: [program(), "trace", "-w", "-d", str(log / "trace"), "--dont-identify-packages"],
        _missing,
        {"REPROZIP_USAGE_STATS": "off"},
        what="files and processes by ptrace, configuration for a package",
        install=pip("reprozip"),
        read=read,
        version=(program(), "--version"),
        adds=rb"^Configuration file written in .*\nEdit that file then run the packer.*\n",
    )
]
