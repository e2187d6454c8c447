"""Has it become slower than it may be? Bounds that a busy machine does not break by chance.

What is promised is held elsewhere, on a quiet machine. Here a ratio must stay below what it was found to be there, with a margin, and it fails
only if the whole 95 % interval lies above; the caller measures such a workload once more before he believes it. Wall time is not judged where the
native runs themselves wait for a processor: a call that two processes answer waits twice there.
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
"""Wall and processor time (indexing included) as ratios to native that docs/performance.md tells, rounded up: of two machines the higher."""


@dataclass(frozen=True)
class Broken:
    """A bound that does not hold."""

    workload: str
    what: str
    found: Ratio
    bound: float

    def __str__(self) -> str:
        return f"{self.workload}: {self.what} {self.found} is above {self.bound:.2f}"


BUSY = 1.3
"""The native runs' wall time is so many times their processor time: others use the processors."""


def unjudged(results: Results, collector: str = "backstory") -> list[str]:
    """Workloads whose wall time says nothing, because the machine was busy."""
    found = []
    for workload, by in results.figure.items():
        walls = [native for _, native in by.get(collector, [])]
        cpus = [native for _, native in results.cpu[workload].get(collector, [])]
        if walls and statistics.median(walls) > BUSY * statistics.median(cpus):
            found.append(workload)
    return found


def broken(results: Results, collector: str = "backstory") -> list[Broken]:
    """The bounds that `collector` breaks in `results`; a workload without a good round breaks its own."""
    found = []
    busy = unjudged(results, collector)
    for workload, bounds in FOUND.items():
        if workload not in results.figure and (workload, collector) not in results.problems:
            continue
        for what, by, bound in zip(("wall time", "processor time"), (results.figure, results.cpu), bounds, strict=True):
            pairs = by[workload].get(collector, [])
            if by is results.figure and workload in busy:
                continue
            if not pairs:
                found.append(Broken(workload, f"{what}, never measured:", Ratio(0, 0, 0), bound * MARGIN))
                continue
            figure = ratio(pairs)
            if figure.low > bound * MARGIN:
                found.append(Broken(workload, what, figure, bound * MARGIN))
    return found
