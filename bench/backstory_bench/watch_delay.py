"""Measures how long `record --watch` takes from an operation to the report of its match.

The recorded program first makes many ordinary operations, so that the log has some size. Then it
writes start-up files, and says when each write began. Meanwhile nothing else happens, or another
process writes files (`--beside`), or processes that are not recorded compute (`--busy`). The report
is a line in the file of `--watch-to`, which is read once a millisecond.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from . import backstory_program
from .report import write_rows

FIELDS = ("files_before", "beside", "busy", "log_bytes", "round", "delay_ms")
HEAD = ["Files written before", "Log", "Median delay", "Longest delay"]
LONGEST = 60.0
"""Seconds after which a report is missing."""

PROGRAM = """
import itertools, os, sys, time
def write(name):
    with open(name, "w") as file:
        file.write("x")
def measure():
    for number, _ in enumerate(sys.stdin):
        os.mkdir("home%d" % number)
        begun = time.time_ns()
        write("home%d/.bashrc" % number)
        print(begun, flush=True)
for number in range(int(sys.argv[1])):
    write("f%d" % (number % 1000))
beside = int(sys.argv[2])
child = os.fork() if beside else 0
if beside and not child:
    for number in itertools.count():
        write("b%d" % (number % 1000))
        time.sleep(1 / beside)
try:
    measure()
finally:
    if child:
        os.kill(child, 9)
"""


@contextlib.contextmanager
def computing(count: int) -> Iterator[None]:
    """Keeps so many processors busy, each by a process that only computes."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            other = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(other.kill)
        yield


class Missing(Exception):
    """A match was not reported in time."""


def reported(report: Path, lines: int) -> int:
    """Waits until the report has so many lines, and returns the time in nanoseconds."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        if report.exists() and report.read_bytes().count(b"\n") >= lines:
            return time.time_ns()
        time.sleep(0.001)
    raise Missing(f"match {lines} was not reported within {LONGEST:.0f} s")


def begin(run: subprocess.Popen[str]) -> int:
    """Lets the program write a start-up file, and returns when it began, in nanoseconds."""
    assert run.stdin is not None and run.stdout is not None
    try:
        os.write(run.stdin.fileno(), b"\n")
        line = run.stdout.readline()
    except BrokenPipeError:
        line = ""
    if not line:
        raise Missing("the recorded program ended too early")
    return int(line)


def delays(backstory: str, top: Path, files: int, rounds: int, beside: int) -> tuple[list[float], int]:
    """Returns the delays in seconds, and the size of the log in bytes."""
    work = top / f"work{files}"
    work.mkdir()
    store, report = top / f"store{files}", top / f"report{files}"
    command = [backstory, "--store", str(store), "record", "--contents=off", "--watch", "startup-file-written"]
    command += ["--watch-to", str(report), "--", sys.executable, "-c", PROGRAM, str(files), str(beside)]
    found: list[float] = []
    with subprocess.Popen(
        command, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdin is not None
        # The first one waits for the ordinary operations, and is not counted.
        for number in range(rounds + 1):
            begun = begin(run)
            found.append((reported(report, number + 1) - begun) / 1e9)
            time.sleep(0.3 + 4 * found[-1])
        run.stdin.close()
    logs = [path.stat().st_size for path in store.rglob("*") if path.suffix == ".log"]
    return found[1:], max(logs, default=0)


def row(files: int, found: list[float], log: int) -> str:
    """Returns a row of the table."""
    cells = [f"{files:,}", f"{log / 1e6:.1f} MB", f"{1e3 * statistics.median(found):.0f} ms"]
    return f"| {' | '.join([*cells, f'{1e3 * max(found):.0f} ms'])} |"


def measured(files: int, beside: int, busy: int, found: list[float], log: int) -> list[dict[str, object]]:
    """Returns a row of the CSV for each delay."""
    return [
        dict(zip(FIELDS, [files, beside, busy, log, number, f"{1e3 * delay:.3f}"], strict=True))
        for number, delay in enumerate(found)
    ]


def add_watch(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command `watch`."""
    p = commands.add_parser("watch", help="measure how long `record --watch` takes to report an operation")
    p.add_argument("--files", default="0,10000,100000", help="comma-separated numbers of files written before")
    p.add_argument(
        "--beside", type=int, default=0, metavar="N", help="another process writes about N files a second meanwhile"
    )
    p.add_argument("--busy", type=int, default=0, metavar="N", help="N processes that are not recorded compute")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--workdir", default=tempfile.gettempdir())
    p.add_argument("--out", help="CSV to write")
    backstory_program.add_option(p)
    p.set_defaults(do=main_watch_delay)


def main_watch_delay(args: argparse.Namespace) -> int:
    """Measures, and prints a table of Markdown. With `--out`, each delay is also in a CSV file."""
    rows: list[dict[str, object]] = []
    print(f"| {' | '.join(HEAD)} |\n| {' | '.join(['---'] * len(HEAD))} |")
    with tempfile.TemporaryDirectory(prefix="backstory-watch-", dir=args.workdir) as top:
        for files in (int(word) for word in args.files.split(",")):
            try:
                with computing(args.busy):
                    found, log = delays(args.backstory, Path(top), files, args.rounds, args.beside)
            except Missing as missing:
                raise SystemExit(f"backstory-bench: {missing}") from missing
            print(row(files, found, log), flush=True)
            rows += measured(files, args.beside, args.busy, found, log)
            if args.out:
                write_rows(args.out, FIELDS, rows, args.backstory)
    return 0
