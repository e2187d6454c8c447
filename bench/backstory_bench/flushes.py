"""Measures what a flush of a log before each flush of a message takes, without backstory.

`record --durability=ordered` flushes its log before a program's flush of a file. This program does
the same file operations by itself, so that it shows the part of the disk. It delivers messages as
`durability` does, by one thread. Before each flush of a message it does one of these, in random
order:

- nothing: nothing;
- append: append a record to a log, and `fdatasync` it;
- within: write the record within a log that is long enough already, and `fdatasync` it;
- unchanged: `fdatasync` a log without changes;
- range: append the record, and `sync_file_range` it, which flushes no disk.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import progress
from .report import write_rows

FIELDS = ["before", "message", "delivery_us", "before_us"]
MESSAGE = b"Subject: x\n\n" + b"text\n" * 800
RECORD = b"r" * 500
KINDS = ("nothing", "append", "within", "unchanged", "range")
WAIT_BEFORE, WRITE, WAIT_AFTER = 1, 2, 4
"""The flags of `sync_file_range`."""

Step = Callable[[], None]


class Logs:
    """A log for each kind of step. None is shared, since a flush writes all that others left."""

    def __init__(self, top: Path, messages: int) -> None:
        self.files = {kind: os.open(top / f"log-{kind}", os.O_RDWR | os.O_CREAT, 0o600) for kind in KINDS}
        self.ends = dict.fromkeys(KINDS, 0)
        os.write(self.files["within"], bytes(len(RECORD) * messages))
        os.write(self.files["unchanged"], RECORD)
        for file in self.files.values():
            os.fsync(file)
        self._libc = ctypes.CDLL(None, use_errno=True)

    def close(self) -> None:
        """Closes the files."""
        for file in self.files.values():
            os.close(file)

    def _write(self, kind: str) -> int:
        os.pwrite(self.files[kind], RECORD, self.ends[kind])
        self.ends[kind] += len(RECORD)
        return self.files[kind]

    def _range(self) -> None:
        file = self._write("range")
        at = ctypes.c_int64(self.ends["range"] - len(RECORD))
        flags = ctypes.c_uint(WAIT_BEFORE | WRITE | WAIT_AFTER)
        if self._libc.sync_file_range(file, at, ctypes.c_int64(len(RECORD)), flags) != 0:
            raise OSError(ctypes.get_errno(), "sync_file_range")

    def steps(self) -> dict[str, Step]:
        """Returns what each kind does."""
        return {
            "nothing": lambda: None,
            "append": lambda: os.fdatasync(self._write("append")),
            "within": lambda: os.fdatasync(self._write("within")),
            "unchanged": lambda: os.fdatasync(self.files["unchanged"]),
            "range": self._range,
        }


def deliver(top: Path, name: str, before: Step) -> tuple[float, float]:
    """Delivers a message. Returns the seconds of all of it, and of what comes before its flush."""
    began = time.perf_counter()
    message = os.open(top / "tmp" / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(message, MESSAGE)
    begins = time.perf_counter()
    before()
    ends = time.perf_counter()
    os.fsync(message)
    os.close(message)
    os.rename(top / "tmp" / name, top / "new" / name)
    return time.perf_counter() - began, ends - begins


def measure(top: Path, messages: int, kinds: Sequence[str]) -> list[dict[str, object]]:
    """Delivers so many messages of each kind."""
    for name in ("tmp", "new"):
        (top / name).mkdir()
    logs = Logs(top, messages)
    rows: list[dict[str, object]] = []
    try:
        steps = logs.steps()
        os.sync()
        for number in range(messages):
            for kind in random.sample(kinds, k=len(kinds)):
                whole, part = deliver(top, f"{number}.{kind}", steps[kind])
                values = [kind, number, f"{whole * 1e6:.1f}", f"{part * 1e6:.1f}"]
                rows.append(dict(zip(FIELDS, values, strict=True)))
            progress.show(f"message {number + 1} of {messages}")
    finally:
        logs.close()
    progress.show("")
    return rows


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians."""
    lines = ["| before each flush of the message | a delivery (µs) | of that before it |", "| --- | ---: | ---: |"]
    measured = {str(row["before"]) for row in rows}
    for kind in (kind for kind in KINDS if kind in measured):
        own = [row for row in rows if row["before"] == kind]
        whole, part = (statistics.median(float(str(row[field])) for row in own) for field in FIELDS[2:])
        lines.append(f"| {kind} | {whole:.0f} | {part:.0f} |")
    return lines


def main_flushes(args: argparse.Namespace) -> int:
    """Runs the command."""
    with tempfile.TemporaryDirectory(prefix="bench-flushes-", dir=args.workdir) as top:
        rows = measure(Path(top), args.messages, KINDS)
    if args.out:
        write_rows(args.out, FIELDS, rows)
    print("\n".join(summary(rows)))
    return 0
