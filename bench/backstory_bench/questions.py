"""Measures the time and the memory that answers take in large stores.

There are three stores:

- synthetic builds with 10 million edges,
- many small synthetic runs,
- a run with 10,000 results and a run with 3,000 programs.

`cargo test -p backstory-query --test measure`
makes the first two, and this program records the last.

Each question is one process. GNU time starts it, because a child of Python would report Python's
memory as its own peak. The peak includes the pages of the database that the process read.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import backstory_program
from .projects import environment

SYNTHETIC = "/home/user/src/project3"
FILES = 10_000
PROGRAMS = 3_000

IN_SYNTHETIC = [
    f"of {SYNTHETIC}/build/lib4.a",
    f"uses {SYNTHETIC}/src/unit7.c",
    "uses /usr/include/sys/header1.h",
    "uses /usr/lib/x86_64-linux-gnu/libc.so.6",
    "log",
    "log -n 20",
    "log -- /usr/include/sys/header1.h",
    f"log --file {SYNTHETIC}/build/lib4.a",
    "files",
    "files --level process",
    "processes",
    "show",
    f"who {SYNTHETIC}/build/unit7.o",
    "who -n 20 /usr/include/sys/header1.h",
    f"status {SYNTHETIC}/build/lib4.a",
]
IN_LARGE_RUNS = [
    "status --root first",
    "of second/o77",
    "uses first/f77",
    "files",
    "files --level process",
    "processes",
    "show",
    "who first/f77",
]
IN_MANY_RUNS = [
    "of /home/user/src/out",
    "uses /home/user/src/in",
    "log",
    "log -n 20",
    "log --failed -n 20",
    "log --file /home/user/src/in -n 20",
    "log -- /home/user/src/out",
    "files",
    "show",
    "who -n 20 /home/user/src/in",
]


@dataclass(frozen=True)
class Wait:
    """The measurement of one question: median times in ms, peak memory in MB."""

    question: str
    wall: float
    cpu: float
    memory: float


def ask(backstory: str, store: Path, question: str, home: Path, rounds: int) -> Wait:
    """Asks a question several times. A first time, not counted, warms the page cache.

    A question that fails with a message stops the measurement: its time would be that of the error.
    """
    command = [backstory, *question.split(), "--store", str(store)]
    if " -- " in question:
        before, _, after = question.partition(" -- ")
        command = [backstory, *before.split(), "--store", str(store), "--", *after.split()]
    timer = shutil.which("time")
    if timer is None:
        raise RuntimeError("GNU time is not installed: it measures the memory of a question (package `time`)")
    walls, cpus, memory = [], [], 0.0
    with tempfile.NamedTemporaryFile("r") as peak, tempfile.TemporaryFile("w+") as errors:
        for _ in range(rounds + 1):
            begun = time.monotonic()
            process = subprocess.Popen(
                [timer, "--quiet", "-f", "%M", "-o", peak.name, *command],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=home,
                env=environment(),
            )
            _, status, used = os.wait4(process.pid, 0)
            walls.append((time.monotonic() - begun) * 1e3)
            cpus.append((used.ru_utime + used.ru_stime) * 1e3)
            errors.seek(0)
            if status and (said := errors.read()):
                raise RuntimeError(f"backstory {question}: {said.strip()}")
            peak.seek(0)
            memory = max(memory, int(peak.read()) / 1024)
    return Wait(question, statistics.median(walls[1:]), statistics.median(cpus[1:]), memory)


def _record(backstory: str, store: Path, home: Path, script: str) -> None:
    command = [backstory, "record", "--wait", "--store", str(store), "--", "sh", "-c", script]
    subprocess.run(command, check=True, cwd=home, env=environment())


def large_runs(backstory: str, top: Path) -> tuple[Path, Path]:
    """Makes a store with a run of many results and a run of many programs.

    Also returns the directory of their files.
    """
    store, home = top / "large-runs", top / "large-runs-files"
    if not home.exists():
        (home / "first").mkdir(parents=True)
        (home / "second").mkdir()
        (home / "in").write_text("text\n")
        loop = "i=0; while [ $i -lt {0} ]; do i=$((i+1)); {1}; done"
        _record(backstory, store, home, "read x < in; " + loop.format(FILES, "echo $x $i > first/f$i"))
        _record(backstory, store, home, loop.format(PROGRAMS, "cat first/f$i > second/o$i"))
    return store, home


def table(title: str, waits: list[Wait]) -> str:
    """Formats measurements as a Markdown table."""
    lines = [f"| {title} | wall | processor time | peak memory |", "|---|---|---|---|"]
    lines += [f"| `{w.question}` | {w.wall:.0f} ms | {w.cpu:.0f} ms | {w.memory:.0f} MB |" for w in waits]
    return "\n".join(lines)


def main_questions(builds: str, small_runs: str, directory: str, rounds: int) -> int:
    """Asks all questions and prints the tables."""
    backstory, top = backstory_program.chosen(), Path(directory).resolve()
    top.mkdir(parents=True, exist_ok=True)
    store, home = large_runs(backstory, top)
    stores = [(f"a run of {FILES:,} results, one of {PROGRAMS:,} programs", store, home, IN_LARGE_RUNS)]
    if builds:
        stores.append(("10 million edges, 256 builds", Path(builds).resolve(), top, IN_SYNTHETIC))
    if small_runs:
        stores.append(("10,000 small runs", Path(small_runs).resolve(), top, IN_MANY_RUNS))
    for title, store, home, questions in stores:
        print(
            table(title, [ask(backstory, store, question, home, rounds) for question in questions]),
            end="\n\n",
            flush=True,
        )
    return 0
