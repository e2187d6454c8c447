"""Measures what `backstory record --durability` costs: programs that make their files durable.

Each round runs every workload natively and in each mode, in random order. The ratios are those of
one round: `ordered` to `after`, and each to the native run. The page cache is written back before
each measurement.

- postmark: the parameters of the Story Book paper (`mounted`), which make nothing durable;
- sqlite: many small transactions of one connection, with SQLite's usual settings;
- mail: deliveries as a mail server makes them. A message is created, written, made durable by
  fsync, and renamed into the mailbox, by several threads at once;
- mail1: the same by one thread.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from . import backstory_program, progress
from .measure import become_subreaper, run
from .mounted import PAPER
from .report import write_rows
from .stats import paired

FIELDS = ["workload", "round", "mode", "wall_s"]
NATIVE = "none"
MODES = (NATIVE, "after", "ordered", "sync")

SQLITE = """
import sqlite3, sys
base = sqlite3.connect("test.db", isolation_level=None)
base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
for number in range(int(sys.argv[1])):
    base.execute("INSERT INTO t (text) VALUES (?)", ("row %d" % number * 8,))
"""
"""Each statement is a transaction, which SQLite makes durable."""

MAIL = """
import os, sys, threading
count, threads = int(sys.argv[1]), int(sys.argv[2])
os.mkdir("tmp")
os.mkdir("new")
def deliver(thread):
    for number in range(count // threads):
        name = "%d.%d" % (thread, number)
        message = os.open("tmp/" + name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(message, b"Subject: x\\n\\n" + b"text\\n" * 800)
        os.fsync(message)
        os.close(message)
        os.rename("tmp/" + name, "new/" + name)
all_threads = [threading.Thread(target=deliver, args=(number,)) for number in range(threads)]
for each in all_threads:
    each.start()
for each in all_threads:
    each.join()
"""


def commands(part: int, programs: Path) -> dict[str, list[str]]:
    """Returns the command of each workload, for an N-th of its size."""
    (programs / "sqlite.py").write_text(SQLITE)
    (programs / "mail.py").write_text(MAIL)
    source = programs / "postmark.c"
    source.write_text(resources.files(__package__).joinpath("postmark.c").read_text())
    postmark = programs / "postmark"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", postmark, source], check=True)
    scaled = ("directories", "files", "transactions")
    size = {name: max(1, value // part) if name in scaled else value for name, value in PAPER.items()}
    return {
        "postmark": [str(postmark), ".", *(str(value) for value in size.values())],
        "sqlite": [sys.executable, str(programs / "sqlite.py"), str(4000 // part)],
        "mail": [sys.executable, str(programs / "mail.py"), str(8000 // part), "8"],
        "mail1": [sys.executable, str(programs / "mail.py"), str(4000 // part), "1"],
    }


def recorded(command: Sequence[str], mode: str, store: Path, backstory: str) -> list[str]:
    """Returns the command in a mode."""
    if mode == NATIVE:
        return list(command)
    options = ["record", "--store", str(store), "--contents", "off", "--durability", mode]
    return [backstory, *options, "--", *command]


def measure(command: Sequence[str], mode: str, base: Path, backstory: str) -> float:
    """Returns the seconds until the command has ended."""
    top = Path(tempfile.mkdtemp(prefix="bench-durability-", dir=base))
    try:
        work = top / "work"
        work.mkdir()
        os.sync()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY")}
        cost = run(recorded(command, mode, top / "store", backstory), work, environment)
        if cost.status != 0:
            said = cost.output.decode(errors="replace")[-300:]
            raise SystemExit(f"backstory-bench: {command[0]} failed in mode {mode}: {said}")
        return cost.wall
    finally:
        shutil.rmtree(top, ignore_errors=True)


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of the medians of the paired ratios, with the smallest and the largest."""
    lines = [
        "| Workload | native (s) | after / native | ordered / after | sync / after |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for workload in dict.fromkeys(str(row["workload"]) for row in rows):
        own = [row for row in rows if row["workload"] == workload]
        native = [float(str(row["wall_s"])) for row in own if row["mode"] == NATIVE]
        cells = [workload, f"{statistics.median(native):.2f}"]
        for mode, to in (("after", NATIVE), ("ordered", "after"), ("sync", "after")):
            found = paired(own, "wall_s", mode, to)
            cells.append(f"{statistics.median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main_durability(args: argparse.Namespace) -> int:
    """Runs the command."""
    become_subreaper()
    backstory = backstory_program.chosen()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-programs-") as made:
        chosen = commands(args.part, Path(made))
        if args.workloads:
            chosen = {name: chosen[name] for name in args.workloads.split(",")}
        for name, command in chosen.items():
            for number in range(args.rounds):
                for mode in random.sample(MODES, k=len(MODES)):
                    wall = measure(command, mode, Path(args.workdir), backstory)
                    rows.append(dict(zip(FIELDS, [name, number, mode, f"{wall:.4f}"], strict=True)))
                progress.show(f"{name}: round {number + 1} of {args.rounds}")
            progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory_program.chosen())
    print("\n".join(summary(rows)))
    return 0
