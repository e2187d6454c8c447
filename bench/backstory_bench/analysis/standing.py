"""Compares the overhead of each collector with its recall of files and of process starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .frame import Results
from .ratios import Mean, total


@dataclass(frozen=True)
class Standing:
    """One collector, measured over the groups that every collector finished."""

    collector: str
    cost: Mean
    """Wall time as a ratio to native."""
    files: float
    """Mean recall of files; NaN if the log is not read for files."""
    starts: float
    """Mean recall of process starts; NaN if the log has no process starts."""

    def sees(self) -> str:
        """Describes both recalls, as a part of a sentence."""
        if np.isnan(self.files):
            return "files that were not counted"
        starts = "no process starts" if np.isnan(self.starts) else f"{percent(self.starts)} of the process starts"
        return f"{percent(self.files)} of the files and {starts}"


def percent(share: float) -> str:
    """Formats a share in percent. Only 1 is written as 100 %; 0.9997 is written as 99.97 %."""
    for digits in range(3):
        text = f"{100 * share:.{digits}f}"
        if share == 1 or float(text) < 100:
            return f"{text} %"
    return "almost 100 %"


def standings(results: Results) -> list[Standing]:
    """Returns the standings of all collectors, cheapest first."""
    quality = results.quality
    measured = quality[quality["files_true"].notna()] if "files_true" in quality else quality.iloc[:0]
    found = []
    for name, cost in total(results.cells).items():
        part = measured[measured["collector"] == name]
        files = starts = float("nan")
        if len(part):
            files = float((part["files_recalled"] / part["files_true"]).mean())
            if "starts_recalled" in part and part["starts_recalled"].notna().any():
                starts = float((part["starts_recalled"] / part["starts_true"].replace(0, np.nan)).mean())
        found.append(Standing(name, cost, files, starts))
    return sorted(found, key=lambda s: (s.cost.value, s.collector))
