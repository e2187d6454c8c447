"""UnixBench in the granularities of the trade-offs paper: files, and functions off and on.

The programs are compiled by gcc, by clang, by `backstory cc` (hooks), and by `backstory cc
--compiler=clang` (sleds). Sleds are compared with clang alone. Each round runs every test in every
mode, in an order of its own. The figure of a mode is the median rate of the rounds. Its index is
UnixBench's: the geometric mean over the tests of ten times the rate, divided by that of
`pgms/index.base`.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import progress
from .measure import become_subreaper, run
from .report import write_rows
from .workloads.sources import source

FIELDS = ["test", "mode", "round", "rate"]
TESTS = {
    "execl-xput": ("execl {s}", 43.0, 1),
    "fcopy-256": ("fstime -c -t {s} -d . -b 256 -m 500", 1655, 1),
    "fcopy-1024": ("fstime -c -t {s} -d . -b 1024 -m 2000", 3960, 1),
    "fcopy-4096": ("fstime -c -t {s} -d . -b 4096 -m 8000", 5800, 1),
    "pipe-xput": ("pipe {s}", 12440, 1),
    "pipe-cs": ("context1 {s}", 4000, 1),
    "spawn-xput": ("spawn {s}", 126, 1),
    "shell-1": ("looper {s} ./multi.sh 1", 42.4, 60),
    "shell-8": ("looper {s} ./multi.sh 8", 6, 60),
    "syscall": ("syscall {s}", 15000, 1),
}
"""The program of each test, its rate in UnixBench's index, and the seconds that the rate is for."""

DHRYSTONE = {"dhrystone": ("dhry2reg {s}", 116700, 1)}
"""The paper left it out. It calls the most functions, and is not in the index."""


@dataclass(frozen=True)
class Mode:
    """How the tests are compiled and run."""

    build: str
    recorder: tuple[str, ...]
    against: str
    """The mode whose rate counts as 1."""


MODES = {
    "none": Mode("gcc", (), "none"),
    "strace": Mode("gcc", ("strace", "-f", "-qq", "-o", "{log}"), "none"),
    "backstory": Mode("gcc", ("{backstory}", "record", "--contents=off", "--"), "none"),
    "hooks, off": Mode("hooks", (), "none"),
    "hooks, on": Mode("hooks", ("{backstory}", "record", "--contents=off", "--functions=*", "--"), "none"),
    "clang": Mode("clang", (), "clang"),
    "sleds, off": Mode("sleds", (), "clang"),
    "sleds, on": Mode("sleds", ("{backstory}", "record", "--contents=off", "--functions=*", "--"), "clang"),
}


def compilers(backstory: str) -> dict[str, str]:
    """Returns the compiler of each build."""
    return {
        "gcc": "gcc",
        "clang": "clang",
        "hooks": f"{backstory} cc --compiler=gcc",
        "sleds": f"{backstory} cc --compiler=clang",
    }


def build(tree: Path, name: str, compiler: str, base: Path) -> Path:
    """Compiles UnixBench, and returns the directory of its programs."""
    to = base / name
    shutil.copytree(tree / "UnixBench", to, ignore=shutil.ignore_patterns("results", "*.o"))
    for old in (to / "pgms").iterdir():
        if old.is_file() and old.read_bytes()[:4] == b"\x7fELF":
            old.unlink()
    options = "OPTON=-O3 -ffast-math -Wno-error"
    done = subprocess.run(["make", f"CC={compiler}", options], cwd=to, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"backstory-bench: make in {to} failed: {done.stderr[-500:]}")
    return to / "pgms"


def rate_of(mode: Mode, programs: Path, line: str, base: Path, backstory: str) -> float:
    """Runs a test once, and returns its rate."""
    work = Path(tempfile.mkdtemp(dir=base))
    try:
        (work / "pgms").symlink_to(programs)
        for name in ("multi.sh", "tst.sh"):
            (work / name).symlink_to(programs / name)
        (work / "sort.src").symlink_to(programs.parent / "testdir" / "sort.src")
        names = {"log": str(work / "log"), "backstory": backstory}
        recorder = [part.format(**names) for part in mode.recorder]
        environment = os.environ | {
            "UB_BINDIR": str(programs),
            "PATH": f"{os.environ['PATH']}:{programs}",
            "BACKSTORY_STORE": str(work / "store"),
        }
        cost = run([*recorder, "sh", "-c", f"exec pgms/{line}"], work, environment)
        found = re.search(rb"COUNT\|([\d.]+)\|(\d+)", cost.output)
        if found is None:
            raise SystemExit(f"backstory-bench: {line} gave no count: {cost.output[-300:]!r}")
        return float(found[1])
    finally:
        shutil.rmtree(work, ignore_errors=True)


def summary(rows: Sequence[Mapping[str, object]], seconds: int) -> list[str]:
    """Returns a table of rates relative to the mode's own native ones, and of indices."""
    rates: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        rates.setdefault((str(row["test"]), str(row["mode"])), []).append(float(str(row["rate"])))
    modes = [mode for mode in MODES if any(key[1] == mode for key in rates)]
    tests = dict.fromkeys(key[0] for key in rates)
    lines = [f"| Test | {' | '.join(modes)} |", "| --- |" + " ---: |" * len(modes)]

    def median(test: str, mode: str) -> float:
        return statistics.median(rates[test, mode])

    for test in tests:
        cells = [f"{median(test, mode) / median(test, MODES[mode].against):.3f}" for mode in modes]
        lines.append(f"| {test} | {' | '.join(cells)} |")

    def index(mode: str) -> float:
        logs = []
        for test, (_, standard, per) in TESTS.items():
            # fstime prints KB per second, the others what they did in all seconds.
            count = median(test, mode) * (1 if test.startswith("fcopy") else per / seconds)
            logs.append(math.log(10 * count / standard))
        return math.exp(statistics.fmean(logs))

    if all(test in tests for test in TESTS):
        indices = {mode: index(mode) for mode in modes}
        lines.append("| Index | " + " | ".join(f"{indices[mode]:.1f}" for mode in modes) + " |")
        relative = [f"{indices[mode] / indices[MODES[mode].against]:.3f}" for mode in modes]
        lines.append(f"| Index, relative | {' | '.join(relative)} |")
    return lines


def main_functions(args: argparse.Namespace) -> int:
    """Runs the command."""
    backstory = shutil.which(os.environ.get("BACKSTORY", "backstory"))
    if backstory is None:
        raise SystemExit("backstory-bench: no program backstory: set BACKSTORY to its path")
    tree = source("byte-unixbench").directory
    if tree is None:
        raise SystemExit(f"backstory-bench: {source('byte-unixbench').reason()}")
    backstory = os.path.abspath(backstory)
    modes = args.modes.split(",") if args.modes else list(MODES)
    modes = list(dict.fromkeys(one for mode in modes for one in (MODES[mode].against, mode)))
    tests = {**TESTS, **DHRYSTONE}
    chosen = {name: tests[name] for name in args.tests.split(",")} if args.tests else tests
    become_subreaper()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-functions-", dir=args.workdir) as directory:
        base = Path(directory)
        ways = compilers(backstory)
        programs = {name: build(tree, name, ways[name], base) for name in {MODES[mode].build for mode in modes}}
        order = [(test, mode) for test in chosen for mode in modes]
        random_order = random.Random(args.rounds)
        for number in range(args.rounds):
            random_order.shuffle(order)
            for test, mode in order:
                progress.show(f"round {number + 1}: {test}, {mode}")
                line = chosen[test][0].format(s=args.seconds)
                rate = rate_of(MODES[mode], programs[MODES[mode].build], line, base, backstory)
                rows.append({"test": test, "mode": mode, "round": number, "rate": rate})
    progress.show("")
    if args.out:
        write_rows(Path(args.out), FIELDS, rows)
    print("\n".join(summary(rows, args.seconds)))
    return 0
