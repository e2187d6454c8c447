"""UnixBench in the granularities of the trade-offs paper: files, functions off and on, bytes.

`strace` writes a log that `backstory import strace` reads. That is the paper's configuration of
SPADE. The time in which the log becomes a graph is measured afterwards, and has a row of its own.

The programs are compiled by gcc, by clang, by `backstory cc` (hooks), and by `backstory cc
--compiler=clang` (sleds). Sleds are compared with clang alone. Each round runs every test in every
mode, in an order of its own. The figure of a mode is the median rate of the rounds. Its index is
UnixBench's: the geometric mean over the tests of ten times the rate, divided by that of
`pgms/index.base`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from . import backstory_program, progress, real_programs
from .measure import become_subreaper, reap_orphans
from .real_programs import BEYOND, RealProgram
from .report import all_rows, write_rows
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

BYTES_OF_A_CALL = "bytes of a call"
"""In the place of a test: the rate is the bytes of the log divided by the calls of Dhrystone."""

IMPORT = "import of a second"
"""In the place of a test: the seconds in which a second of strace's log becomes a graph."""

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
    "strace": Mode("gcc", ("strace", "-f", "-qq", "-y", "-ttt", "-s", "4096", "-o", "{log}"), "none"),
    "backstory": Mode("gcc", ("{backstory}", "record", "--contents=off", "--"), "none"),
    "hooks off": Mode("hooks", (), "none"),
    "hooks on": Mode("hooks", ("{backstory}", "record", "--contents=off", "--functions=*", "--"), "none"),
    "bytes": Mode("gcc", ("{backstory}", "record", "--contents=off", "--bytes", "--"), "none"),
    "clang": Mode("clang", (), "clang"),
    "sleds off": Mode("sleds", (), "clang"),
    "sleds on": Mode("sleds", ("{backstory}", "record", "--contents=off", "--functions=*", "--"), "clang"),
}


def compilers(backstory: str) -> dict[str, str]:
    """Returns the compiler of each build."""
    return {
        "gcc": "gcc",
        "clang": "clang",
        "hooks": f"{backstory} cc --compiler=gcc",
        "sleds": f"{backstory} cc --compiler=clang",
    }


def built(tree: Path, name: str, compiler: str, base: Path) -> Path:
    """Compiles UnixBench unless it is there already, and returns the directory of its programs."""
    to = base / name
    if (to / "pgms" / "dhry2reg").exists():
        return to / "pgms"
    shutil.copytree(tree / "UnixBench", to, ignore=shutil.ignore_patterns("results", "*.o"))
    for old in (to / "pgms").iterdir():
        if old.is_file() and old.read_bytes()[:4] == b"\x7fELF":
            old.unlink()
    options = "OPTON=-O3 -ffast-math -Wno-error"
    done = subprocess.run(["make", f"CC={compiler}", options], cwd=to, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"backstory-bench: make in {to} failed: {done.stderr[-500:]}")
    return to / "pgms"


def import_s(log: Path, store: Path, backstory: str) -> float:
    """Returns the seconds in which `backstory import strace` makes a graph of a log."""
    began = time.perf_counter()
    words = [backstory, "import", "--store", str(store), "strace", str(log)]
    subprocess.run(words, capture_output=True, check=True)
    return time.perf_counter() - began


def rate_of(mode: Mode, programs: Path, line: str, base: Path, backstory: str) -> tuple[float, float | None]:
    """Runs a test once. Returns its rate, and the seconds that a second of its log takes to import.

    The latter is `None` if the mode writes no log of strace.
    """
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
        command = [*recorder, "sh", "-c", f"exec pgms/{line}"]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, stdin=subprocess.DEVNULL)
        took = time.perf_counter() - began
        found = re.search(rb"COUNT\|([\d.]+)\|(\d+)", done.stdout + done.stderr)
        if found is None:
            raise SystemExit(f"backstory-bench: {line} gave no count: {(done.stdout + done.stderr)[-300:]!r}")
        imported = import_s(work / "log", work / "store", backstory) / took if "strace" in mode.recorder else None
        return float(found[1]), imported
    finally:
        # Without the store there is nothing to index, and the next test need not wait for it.
        shutil.rmtree(work, ignore_errors=True)
        reap_orphans()


LONGER = (1, 8, 64)
"""How many times the seconds a test gets, until it has ended something."""


def counted_rate(
    mode: Mode, programs: Path, test: str, seconds: int, base: Path, backstory: str
) -> tuple[float, float | None]:
    """Runs a test until it has a rate above 0: a slow method may end no script at first.

    The rate is that of `seconds`, however long the test took. The second value is as in `rate_of`.
    """
    words = {**TESTS, **DHRYSTONE}[test][0]
    for longer in LONGER:
        rate, imported = rate_of(mode, programs, words.format(s=seconds * longer), base, backstory)
        if rate > 0:
            return rate / (1 if is_per_second(test) else longer), imported
    raise SystemExit(f"backstory-bench: {test} ended nothing in {seconds * LONGER[-1]} s: give more --seconds")


def is_per_second(test: str) -> bool:
    """True if a test prints what it did in a second (fstime), and not in all seconds."""
    return test.startswith("fcopy")


def real_rate(mode: Mode, real: RealProgram, program: str, base: Path, backstory: str) -> float:
    """Runs a real program once, and returns its rate."""
    work = Path(tempfile.mkdtemp(dir=base))
    work.chmod(0o755)
    try:
        names = {"log": str(work / "log"), "backstory": backstory}
        return real_programs.rate(real, program, [part.format(**names) for part in mode.recorder], work, work / "store")
    finally:
        shutil.rmtree(work, ignore_errors=True)
        reap_orphans()


def real_pairs(tests: Sequence[str], modes: Sequence[str], backstory: str, base: Path) -> dict[tuple[str, str], str]:
    """Returns the program of each real test in each mode that can run here."""
    ways, found = compilers(backstory), dict[tuple[str, str], str]()
    for test in tests:
        real = BEYOND[test]
        lacking = real.missing()
        if lacking:
            print(f"SKIPPED: {test}: {lacking}")
            continue
        for mode in modes:
            build = MODES[mode].build
            # The mode `none` has the installed program, unless all are compiled.
            program = real.compiled(build, ways[build], base)
            program = program or (real.installed() if build == "gcc" else None)
            if program is None:
                print(f"SKIPPED: {test}, {mode}: no tree {real.source or test} in --sources")
            else:
                found[test, mode] = program
    return found


def bytes_per_call(programs: Path, base: Path, backstory: str) -> tuple[int, int]:
    """Records Dhrystone, and returns the bytes of its log and the number of its calls."""
    store = Path(tempfile.mkdtemp(dir=base))
    environment = os.environ | {"BACKSTORY_STORE": str(store)}
    record = [backstory, "record", "--wait", "--contents=off", "--functions=*", "--", f"{programs}/dhry2reg", "1"]
    subprocess.run(record, cwd=base, env=environment, capture_output=True, check=True)
    listed = subprocess.run([backstory, "processes", "--json"], env=environment, capture_output=True, check=True)
    counted = [process["attributes"] for process in json.loads(listed.stdout)]
    calls = sum(int(count) for one in counted for name, count in one.items() if name.startswith("calls of "))
    logs = sum(path.stat().st_size for path in store.rglob("*") if path.is_file() and path.suffix == ".log")
    shutil.rmtree(store, ignore_errors=True)
    return logs, calls


def median_rates(rows: Sequence[Mapping[str, object]]) -> dict[tuple[str, str], float]:
    """Returns the median rate of each test in each mode. A median of 0 is no rate."""
    rates: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        rates.setdefault((str(row["test"]), str(row["mode"])), []).append(float(str(row["rate"])))
    medians = {measured: statistics.median(values) for measured, values in rates.items()}
    return {measured: median for measured, median in medians.items() if median > 0}


def summary(rows: Sequence[Mapping[str, object]], seconds: int) -> list[str]:
    """Returns a table of rates relative to the mode's own native ones, and of indices."""
    rates = median_rates(rows)
    sizes = {mode: value for (test, mode), value in rates.items() if test == BYTES_OF_A_CALL}
    imports = {mode: value for (test, mode), value in rates.items() if test == IMPORT}
    rates = {key: values for key, values in rates.items() if key[0] not in (BYTES_OF_A_CALL, IMPORT)}
    modes = [mode for mode in MODES if any(key[1] == mode for key in rates)]
    tests = dict.fromkeys(key[0] for key in rates)
    lines = [f"| Test | {' | '.join(modes)} |", "| --- |" + " ---: |" * len(modes)]

    def relative_rate(test: str, mode: str) -> str:
        against = MODES[mode].against
        if (test, mode) not in rates or (test, against) not in rates:
            return "–"
        return f"{rates[test, mode] / rates[test, against]:.3f}"

    for test in tests:
        cells = [relative_rate(test, mode) for mode in modes]
        lines.append(f"| {test} | {' | '.join(cells)} |")

    def index(mode: str) -> float:
        logs = []
        for test, (_, standard, per) in TESTS.items():
            count = rates[test, mode] * (1 if is_per_second(test) else per / seconds)
            logs.append(math.log(10 * count / standard))
        return math.exp(statistics.fmean(logs))

    whole = [mode for mode in modes if all((test, mode) in rates for test in TESTS)]
    if whole:
        indices = {mode: index(mode) for mode in whole}
        cells = [f"{indices[mode]:.1f}" if mode in whole else "–" for mode in modes]
        lines.append(f"| Index | {' | '.join(cells)} |")
        native = {mode: indices.get(MODES[mode].against) for mode in whole}
        relative = []
        for mode in modes:
            base = native.get(mode)
            relative.append("–" if base is None else f"{indices[mode] / base:.3f}")
        lines.append(f"| Index, relative | {' | '.join(relative)} |")
    if sizes:
        cells = [f"{sizes[mode]:.1f}" if mode in sizes else "–" for mode in modes]
        lines.append(f"| Bytes of a call | {' | '.join(cells)} |")
    if imports:
        cells = [f"{imports[mode]:.2f}" if mode in imports else "–" for mode in modes]
        lines.append(f"| Import of a second, s | {' | '.join(cells)} |")
    return lines


def measured(args: argparse.Namespace, backstory: str) -> Iterator[dict[str, object]]:
    """Runs the chosen tests in the chosen modes, and gives a row for each."""
    modes = args.modes.split(",") if args.modes else list(MODES)
    modes = list(dict.fromkeys(one for mode in modes for one in (MODES[mode].against, mode)))
    tests = {**TESTS, **DHRYSTONE}
    names = args.tests.split(",") if args.tests else [*tests, *BEYOND]
    chosen = {name: tests[name] for name in names if name not in BEYOND}
    tree = source("byte-unixbench").directory
    if tree is None and chosen:
        raise SystemExit(f"backstory-bench: {source('byte-unixbench').reason()}")
    with nullcontext(args.programs) if args.programs else tempfile.TemporaryDirectory(dir=args.workdir) as name:
        base = Path(name).resolve()
        base.mkdir(mode=0o755, parents=True, exist_ok=True)
        base.chmod(0o755)
        ways = compilers(backstory)
        builds = {MODES[mode].build for mode in modes} if tree and chosen else set()
        programs = {name: built(tree, name, ways[name], base) for name in sorted(builds) if tree}
        real = real_pairs([name for name in names if name in BEYOND], modes, backstory, base)
        order = [*((test, mode) for test in chosen for mode in modes), *real]
        random_order = random.Random(args.rounds)
        for number in range(args.rounds):
            random_order.shuffle(order)
            for test, mode in order:
                progress.show(f"round {number + 1}: {test}, {mode}")
                if (test, mode) in real:
                    rate = real_rate(MODES[mode], BEYOND[test], real[test, mode], base, backstory)
                    yield {"test": test, "mode": mode, "round": number, "rate": rate}
                    continue
                directory = programs[MODES[mode].build]
                rate, imported = counted_rate(MODES[mode], directory, test, args.seconds, base, backstory)
                yield {"test": test, "mode": mode, "round": number, "rate": rate}
                if imported is not None:
                    yield {"test": IMPORT, "mode": mode, "round": number, "rate": imported}
        for mode in modes if programs else ():
            if "{backstory}" in MODES[mode].recorder and "--functions=*" in MODES[mode].recorder:
                progress.show(f"bytes of a call, {mode}")
                logged, calls = bytes_per_call(programs[MODES[mode].build], base, backstory)
                yield {"test": BYTES_OF_A_CALL, "mode": mode, "round": 0, "rate": logged / max(calls, 1)}
    progress.show("")


def measured_rows(args: argparse.Namespace, out: str | None) -> list[Mapping[str, object]]:
    """Measures, and writes each row at once, so that an interruption loses none."""
    backstory = backstory_program.needed()
    become_subreaper()
    rows: list[Mapping[str, object]] = []
    for row in measured(args, backstory):
        rows.append(row)
        if out:
            write_rows(out, FIELDS, rows, backstory)
    return rows


def main_functions(args: argparse.Namespace) -> int:
    """Measures, or reads earlier measurements, and prints the table."""
    rows: list[Mapping[str, object]] = []
    for path in args.results or []:
        rows += all_rows(path)
    if not args.results:
        rows = measured_rows(args, args.out)
    print("\n".join(summary(rows, args.seconds)))
    return 0
