"""Compares the ratios of the suite `ci` with the known ones, and lists what has become slower.

docs/performance.md has the ratios of a quiet machine. A workload counts as slower if the whole 95 %
interval of its ratio lies above the known ratio times a margin. Wall time is not compared if the
native runs wait for a processor: a call that two processes handle then waits twice.

This module gives no verdict. Time alone never fails a test; a workload without a valid round does
(`never_measured`).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from .report import Results
from .stats import Ratio, ratio

MARGIN = 1.25

FOUND: dict[str, tuple[float, float]] = {
    "make": (1.04, 1.06),
    "tar": (1.24, 2.01),
    "cp": (1.21, 2.10),
    "python": (1.05, 1.10),
    "git": (1.06, 1.15),
    "find": (1.14, 1.70),
    "grep": (1.18, 2.75),
    "true": (1.31, 1.36),
}
"""Known ratios to native, of wall time and of processor time with indexing.

They are those of docs/performance.md, rounded up, from the slower of two machines.
"""


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
