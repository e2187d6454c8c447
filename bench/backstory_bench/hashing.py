"""Measures BLAKE3 of one buffer: by one thread, and by the several threads of its feature `rayon`.

Each round hashes buffers of all sizes in both ways. Small buffers are hashed many times in a
measurement, whose figures are of one hash. Processor time is that of all threads, until they sleep.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Mapping, Sequence

from . import content_costs
from .report import write_rows
from .stats import paired

FIELDS = ["bytes", "mode", "processors", "round", "wall_s", "cpu_s"]
ONE, SEVERAL = "one", "several"
FIGURES = {"wall_s": "wall", "cpu_s": "processor"}


def amount(size: int) -> str:
    """Returns a number of bytes in words."""
    unit = 0
    while size >= 1024 and size % 1024 == 0 and unit < 3:
        size, unit = size // 1024, unit + 1
    return f"{size} {('bytes', 'KiB', 'MiB', 'GiB')[unit]}"


def time(seconds: float) -> str:
    """Returns a time in the unit that suits it."""
    for unit, least in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= least:
            return f"{seconds / least:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians. The ratios are those of one round, with the range."""
    heads = [f"{kind}, {what}" for kind in FIGURES.values() for what in ("one thread", "several threads", "ratio")]
    lines = [f"| buffer | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for size in dict.fromkeys(int(str(row["bytes"])) for row in rows):
        own = [row for row in rows if int(str(row["bytes"])) == size]
        cells = [amount(size)]
        for field in FIGURES:
            for mode in (ONE, SEVERAL):
                cells.append(time(statistics.median(float(str(row[field])) for row in own if row["mode"] == mode)))
            ratios = paired(own, field, SEVERAL, ONE)
            cells.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main_hashing(args: argparse.Namespace) -> int:
    """Runs the command."""
    program = content_costs.built()
    processors = len(os.sched_getaffinity(0))
    found = content_costs.measured(program, ["hash", str(args.rounds)])
    rows = [{**row, "processors": processors} for row in found]
    if args.out:
        write_rows(args.out, FIELDS, rows, str(program))
    print("\n".join(summary(rows)))
    return 0


def add_hashing(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser("hashing", help="measure BLAKE3 by one thread and by several (compiles a program)")
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_hashing)
