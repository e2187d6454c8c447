"""Measures how much a background indexer slows programs that use all processors.

After a run, backstory indexes it and stores its contents in the background, with the lowest
priority. This command first records runs that read many files, and keeps the indexer from them.
Then each round measures every foreground in three modes, in random order:

- alone: without an indexer;
- last: beside an indexer with the priority that a background indexer has;
- ordinary: beside an indexer with ordinary priority. It shows what the lowest one saves.

The indexer indexes a copy of the store, and then the next copy, until the foreground has ended.
A pause of the indexer could at most save the difference between `alone` and `last`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from . import backstory_program, progress
from .measure import become_subreaper, reap_orphans
from .pending_runs import checked, environment, held, recorded
from .promises import WORKLOADS
from .report import write_rows
from .stats import paired

FIELDS = ["foreground", "processors", "round", "mode", "figure", "cpu_s", "indexer_cpu_s"]
ALONE, LAST, ORDINARY = "alone", "last", "ordinary"
MODES = (ALONE, LAST, ORDINARY)
LOOP = 'while kill -0 "$4" && cp -r "$2" "$3" && "$1" index --store "$3"; do rm -r "$3"; done'
"""Indexes copies of a store, one after the other, while the measurement lives.

The arguments: the program, the store, the copy, the process of the measurement.
"""
PRIORITY = ("chrt", "--idle", "0", "ionice", "-c", "3", "nice", "-n", "19")
SESSION = "echo 19 2>/dev/null >/proc/self/autogroup;"
"""The priority of a background indexer: `come_last` and `let_session_come_last` in `crates/sys`."""
WORKING_S = 0.2
"""Processor time after which an indexer has begun to work."""
PATIENCE_S = 60.0
OPENS = 10
"""Repetitions of the loop of opens, which takes a third of a second."""
UNITS = {"make": "s", "open": "ns"}


def prepare(top: Path, runs: int, files: int, size: int, backstory: str) -> Path:
    """Records runs that read files of their own. Returns the store where they wait."""
    store, rng = top / "pending", random.Random(1)
    with held(store):
        for number in range(runs):
            read = top / f"read-{number}"
            read.mkdir()
            for file in range(files):
                (read / f"f{file:05d}").write_text(rng.randbytes(size // 2).hex())
            progress.show(f"run {number + 1} of {runs}")
            checked(recorded(["sh", "-c", "cat f* >/dev/null"], store, backstory, "lazy"), read)
    progress.show("")
    return store


def indexer(mode: str, backstory: str, store: Path, copies: Path) -> list[str]:
    """Returns the words of the indexer in a mode."""
    arguments = ["sh", backstory, str(store), str(copies), str(os.getpid())]
    if mode == LAST:
        return [*PRIORITY, "sh", "-c", f"{SESSION} {LOOP}", *arguments]
    return ["sh", "-c", LOOP, *arguments]


def used(session: int) -> float:
    """Returns the processor time of all processes of a session, with those that they waited for."""
    ticks = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        # A process may have ended.
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def begun(process: subprocess.Popen[bytes], mode: str) -> None:
    """Waits until the indexer works, and checks its priority.

    Raises
    ------
    SystemExit
        It does not work, or has another priority.
    """
    until = time.monotonic() + PATIENCE_S
    while used(process.pid) < WORKING_S:
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("backstory-bench: the indexer does not work")
        time.sleep(0.01)
    policy = os.sched_getscheduler(process.pid)
    if (policy == os.SCHED_IDLE) != (mode == LAST):
        raise SystemExit(f"backstory-bench: the indexer of mode {mode} has the scheduling policy {policy}")


@contextlib.contextmanager
def beside(mode: str, backstory: str, store: Path) -> Iterator[int | None]:
    """Lets an indexer work, and yields its session. Then removes its copies of the store."""
    if mode == ALONE:
        yield None
        return
    copies = store.with_name("copies")
    copies.mkdir()
    process = subprocess.Popen(
        indexer(mode, backstory, store, copies / "store"),
        env=environment(),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        begun(process, mode)
        yield process.pid
        if process.poll() is not None:
            raise SystemExit("backstory-bench: the indexer ended before the foreground")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reap_orphans()
        shutil.rmtree(copies)


def commands(foreground: str, root: Path, processors: int) -> list[list[str]]:
    """Returns the commands of a foreground, which run at once."""
    if foreground == "make":
        return [["make", "-s", f"-j{processors}", "-C", str(root / "project")]]
    loop = f'i=0; while [ $i -lt {OPENS} ]; do "$0" open "$1" || exit; i=$((i+1)); done'
    return [["sh", "-c", loop, str(root / "micro"), str(root / "one")]] * processors


def figure(foreground: str, root: Path, processors: int) -> float:
    """Runs a foreground. Returns the seconds of `make`, or the mean ns of an open.

    Raises
    ------
    SystemExit
        It fails.
    """
    began = time.perf_counter()
    all_of = [
        subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        for words in commands(foreground, root, processors)
    ]
    said = [process.communicate()[0] for process in all_of]
    took = time.perf_counter() - began
    if any(process.returncode for process in all_of):
        raise SystemExit(f"backstory-bench: {foreground} failed")
    return took if foreground == "make" else statistics.fmean(map(float, b" ".join(said).split()))


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(foreground: str, top: Path, store: Path, rounds: int, backstory: str) -> list[dict[str, object]]:
    """Measures a foreground in all modes."""
    root, processors = top / foreground, len(os.sched_getaffinity(0))
    root.mkdir()
    workload = WORKLOADS["make" if foreground == "make" else "call-open"]
    workload.prepare(root)
    figure(foreground, root, processors)  # warms caches, not counted
    rows: list[dict[str, object]] = []
    for number in range(rounds):
        for mode in random.sample(MODES, k=len(MODES)):
            workload.reset(root)
            os.sync()
            with beside(mode, backstory, store) as session:
                before, cpu = used(session) if session else 0.0, _cpu()
                took = figure(foreground, root, processors)
                own, other = _cpu() - cpu, used(session) - before if session else 0.0
            values = [foreground, processors, number, mode, f"{took:.4f}", f"{own:.3f}", f"{other:.2f}"]
            rows.append(dict(zip(FIELDS, values, strict=True)))
        progress.show(f"{foreground}: round {number + 1} of {rounds}")
    progress.show("")
    return rows


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians, and of the ratios in one round with their range."""
    lines = [
        "| Foreground | alone | last / alone | ordinary / alone | processor time of the indexer meanwhile |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for foreground in dict.fromkeys(str(row["foreground"]) for row in rows):
        own = [row for row in rows if row["foreground"] == foreground]
        names = {"make": f"`make -j{own[0]['processors']}`", "open": f"{own[0]['processors']} loops of opens"}
        alone = statistics.median(float(str(row["figure"])) for row in own if row["mode"] == ALONE)
        cells = [names[foreground], f"{alone:.{2 if foreground == 'make' else 0}f} {UNITS[foreground]}"]
        for mode in (LAST, ORDINARY):
            ratios = paired(own, "figure", mode, ALONE)
            cells.append(f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
        spent = [
            statistics.median(float(str(row["indexer_cpu_s"])) for row in own if row["mode"] == mode)
            for mode in (LAST, ORDINARY)
        ]
        cells.append(f"{spent[0]:.2f} s, {spent[1]:.2f} s")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main_background(args: argparse.Namespace) -> int:
    """Runs the command."""
    if missing := [name for name in ("chrt", "ionice", "make", "gcc") if shutil.which(name) is None]:
        raise SystemExit(f"backstory-bench: not installed: {', '.join(missing)}")
    become_subreaper()
    backstory = backstory_program.needed()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-background-", dir=args.workdir) as top:
        store = prepare(Path(top), args.runs, args.files, args.size, backstory)
        for foreground in args.foregrounds.split(","):
            if foreground not in UNITS:
                raise SystemExit(f"backstory-bench: {foreground} is none of {', '.join(UNITS)}")
            rows += measure(foreground, Path(top), store, args.rounds, backstory)
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory)
    print("\n".join(summary(rows)))
    return 0


def add_background(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser("background", help="measure how much a background indexer slows programs")
    p.add_argument("--foregrounds", default=",".join(UNITS), help=f"comma-separated: {', '.join(UNITS)}")
    p.add_argument("--runs", type=int, default=8, help="the number of runs that wait for the indexer")
    p.add_argument("--files", type=int, default=2000, help="the number of files that each run reads")
    p.add_argument("--size", type=int, default=16 << 10, help="bytes of each file")
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of files and stores")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_background)
