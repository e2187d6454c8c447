"""Measures the instructions, modes and locks by which designs of deep recording were chosen.

Each round measures every case once, in random order, by a process of its own. With `--recorded`,
some cases are also measured under `record --deep --time exact`. There, the recorder answers
`rdtsc`, `cpuid`, and the functions that take the time without a system call.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from . import backstory_program, progress
from .report import write_rows

CASES: Mapping[str, str] = {
    "rdtsc": "`rdtsc`",
    "rdtsc-fault": "the same as a fault (`PR_SET_TSC`)",
    "rdtsc-mode": "this mode on and off",
    "cpuid": "`cpuid`",
    "cpuid-fault": "the same as a fault (`ARCH_SET_CPUID`)",
    "switch": "a switch between two threads",
    "switch-cpuid": "the same, with this mode in one of them",
    "vdso": "the time, without a system call",
    "syscall": "the time, by a system call",
    "lock": "a lock and its release",
    "lock-record": "the same with a record of 48 bytes",
}
RECORDED = ("rdtsc", "cpuid", "vdso", "syscall")
"""The cases that are measured recorded, too."""
ALONE, EXACT = "alone", "exact"
FIELDS = ["case", "mode", "round", "ns"]
UNAVAILABLE = 3
"""The exit status of the program if the machine does not have a case."""


def compiled(top: Path) -> Path:
    """Compiles the program, and returns its path."""
    source, program = top / "instructions.c", top / "instructions"
    source.write_text(resources.files(__package__).joinpath("instructions.c").read_text())
    subprocess.run(["gcc", "-O2", "-pthread", "-o", str(program), str(source)], check=True)
    return program


def measure(program: Path, case: str, count: int, before: Sequence[str] = ()) -> float | None:
    """Returns ns per operation. `None` if this machine does not have the case."""
    words = [*before, str(program), case, str(count)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == UNAVAILABLE:
        return None
    if done.returncode != 0:
        raise SystemExit(f"backstory-bench: {case} failed: {(done.stderr or done.stdout).strip()[-300:]}")
    return float(done.stdout)


def _exact(top: Path, number: int) -> list[str]:
    store = ["--store", str(top / f"store-{number}")]
    return [backstory_program.needed(), "record", *store, "--contents=off", "--deep", "--time=exact", "--"]


def rounds(top: Path, count: int, number: int, recorded: bool) -> list[dict[str, object]]:
    """Measures all cases in so many rounds."""
    program = compiled(top)
    pairs = [(case, ALONE) for case in CASES] + [(case, EXACT) for case in RECORDED if recorded]
    rows: list[dict[str, object]] = []
    for turn in range(number):
        for case, mode in random.sample(pairs, k=len(pairs)):
            before = _exact(top, len(rows)) if mode == EXACT else []
            took = measure(program, case, count, before)
            if took is not None:
                rows.append(dict(zip(FIELDS, [case, mode, turn, took], strict=True)))
        progress.show(f"round {turn + 1} of {number}")
    progress.show("")
    return rows


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians, with the smallest and the largest."""
    lines = ["| operation | alone (ns) | `record --deep --time exact` (ns) |", "| --- | ---: | ---: |"]
    for case, what in CASES.items():
        cells = []
        for mode in (ALONE, EXACT):
            all_of = [float(str(row["ns"])) for row in rows if (row["case"], row["mode"]) == (case, mode)]
            figures = f"{statistics.median(all_of):.1f} ({min(all_of):.1f} to {max(all_of):.1f})" if all_of else ""
            cells.append(figures)
        lines.append(f"| {what} | {cells[0] or 'not available'} | {cells[1]} |")
    return lines


def add_instructions(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser("instructions", help="measure instructions, modes and locks behind designs of deep records")
    p.add_argument("--count", type=int, default=300_000, help="the number of operations of each measurement")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--recorded", action="store_true", help="measure under `record --deep --time exact`, too")
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of program and stores")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_instructions)


def main_instructions(args: argparse.Namespace) -> int:
    """Runs the command."""
    with tempfile.TemporaryDirectory(prefix="bench-instructions-", dir=args.workdir) as top:
        rows = rounds(Path(top), args.count, args.rounds, args.recorded)
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory_program.chosen())
    print("\n".join(summary(rows)))
    return 0
