"""Compares the ratios of the suite `ci` with the known ones, and lists what has become slower.

The known ratios are of a quiet machine. A workload counts as slower if the whole 95 % interval of
its ratio lies above the known ratio times a margin. Wall time is not compared if the native runs
wait for a processor: a call that two processes handle then waits twice.

This module gives no verdict. Time alone never fails a test; a workload without a valid round does
(`never_measured`).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from .report import Results
from .stats import Ratio, ratio

MARGIN = 1.25

ROUNDS = "2026-11-28-promises-all.csv"
"""The file in bench/runs from which the known ratios are. docs/performance.md has its table.

The suite `ci` has a new store in each round, so the rounds must have one, too. A later series,
2026-11-29-promises-kept.csv, has one store for all rounds of a mode.
"""

FOUND: dict[str, tuple[float, float]] = {
    "make": (1.06, 1.05),
    "tar": (1.19, 1.81),
    "cp": (1.13, 1.73),
    "python": (1.05, 1.12),
    "git": (1.04, 1.34),
    "find": (1.16, 1.74),
    "grep": (1.19, 2.61),
    "true": (1.25, 1.31),
}
"""Known ratios to native, of wall time and of processor time with indexing, rounded up."""


@dataclass(frozen=True)
class Slower:
    """A ratio above the known ratio with its margin."""

    workload: str
    what: str
    found: Ratio
    bound: float

    def __str__(self) -> str:
        return f"{self.workload}: {self.what} {self.found} is above {self.bound:.2f}"


BUSY = 1.3
"""If the native wall time exceeds this multiple of the processor time, the machine is busy."""


def unjudged(results: Results, collector: str = "backstory") -> list[str]:
    """Returns the workloads whose wall time is not compared, because the machine was busy."""
    found = []
    for workload, by in results.figure.items():
        walls = [native for _, native in by.get(collector, [])]
        cpus = [native for _, native in results.cpu[workload].get(collector, [])]
        if walls and statistics.median(walls) > BUSY * statistics.median(cpus):
            found.append(workload)
    return found


def never_measured(results: Results, collector: str = "backstory") -> list[str]:
    """Returns the workloads without a valid round: the command failed, or its result was wrong."""
    return [
        workload
        for workload in FOUND
        if (workload in results.figure or (workload, collector) in results.problems)
        and not results.figure.get(workload, {}).get(collector)
    ]


def slower(results: Results, collector: str = "backstory") -> list[Slower]:
    """Returns the ratios of `collector` that lie above the known ones."""
    found = []
    busy = unjudged(results, collector)
    for workload, bounds in FOUND.items():
        if workload not in results.figure:
            continue
        for what, by, bound in zip(("wall time", "processor time"), (results.figure, results.cpu), bounds, strict=True):
            pairs = by[workload].get(collector, [])
            if not pairs or (by is results.figure and workload in busy):
                continue
            figure = ratio(pairs)
            if figure.low > bound * MARGIN:
                found.append(Slower(workload, what, figure, bound * MARGIN))
    return found
