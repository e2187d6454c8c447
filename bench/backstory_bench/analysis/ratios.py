"""Ratios to native: geometric means with 95 % intervals by Student's t, assuming log-normality.

The means are computed by workload, by group, and over all groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.95


@dataclass(frozen=True)
class Mean:
    """A geometric mean of ratios."""

    value: float
    low: float
    high: float
    """Bounds of the 95 % interval; NaN if there is only one round."""
    rounds: int
    at_least: bool
    """True if a cell was stopped at the time limit, so that the true value is higher."""

    def __str__(self) -> str:
        if self.at_least:  # an interval would describe the time limit
            return f"≥ {self.value:.2f}"
        return f"{self.value:.2f}" if np.isnan(self.low) else f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def mean(logs: pd.Series, at_least: bool) -> Mean:
    """Returns the geometric mean of logarithms, one for each round."""
    n, middle = len(logs), float(logs.mean())
    low = high = float("nan")
    if n > 1:
        error = float(logs.std(ddof=1)) / np.sqrt(n)
        low, high = stats.t.interval(LEVEL, n - 1, middle, error) if error > 0 else (middle, middle)
    return Mean(float(np.exp(middle)), float(np.exp(low)), float(np.exp(high)), n, at_least)


def _good(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Selects the valid cells and adds the column `round`.

    `round` counts the measurements of one collector on one workload. Workloads that were measured
    in separate matrices have the same rounds.
    """
    good = cells[(cells["collector"] != "none") & cells[column].notna()]
    times, _ = pd.MultiIndex.from_frame(good[["source", "iteration"]]).factorize(sort=True)
    when = pd.Series(times, index=good.index)
    return good.assign(round=when.groupby([good["workload"], good["collector"]]).rank("dense"))


def by_workload(cells: pd.DataFrame, column: str = "log_ratio") -> dict[tuple[str, str], Mean]:
    """Returns the mean of each (workload, collector)."""
    good = _good(cells, column)
    return {
        (str(w), str(c)): mean(part.groupby("round")[column].mean(), bool(part["censored"].any()))
        for (w, c), part in good.groupby(["workload", "collector"])
    }


def _whole_rounds(part: pd.DataFrame, column: str) -> pd.Series:
    """Returns the mean over the workloads of one group, for each round in which all of them ran.

    A matrix that was stopped lacks some workloads in its last round. Without that round, the mean
    still describes the whole group.
    """
    return part.pivot_table(index="round", columns="workload", values=column).dropna().mean(axis="columns")


def by_group(cells: pd.DataFrame, column: str = "log_ratio") -> dict[tuple[str, str], Mean]:
    """Returns the mean of each (group, collector).

    The value of a round is the mean over all workloads of the group that the collector has ever
    finished. A round that lacks one of them does not count.
    """
    good = _good(cells, column)
    return {
        (str(g), str(c)): mean(_whole_rounds(part, column), bool(part["censored"].any()))
        for (g, c), part in good.groupby(["group", "collector"])
    }


def total_of_all(cells: pd.DataFrame, column: str = "log_ratio") -> dict[str, Mean]:
    """Returns the mean of each collector that finished a workload in every group.

    All groups have the same weight.
    """
    good = cells[(cells["collector"] != "none") & cells[column].notna()]
    groups = good.groupby("collector")["group"].nunique()
    whole = good[good["collector"].isin(groups[groups == good["group"].nunique()].index)]
    return total(whole, column)


def total(cells: pd.DataFrame, column: str = "log_ratio") -> dict[str, Mean]:
    """Returns the mean of each collector over the groups that all collectors finished.

    All groups have the same weight. A round that lacks a workload of any group does not count.
    """
    good = _good(cells, column)
    if good.empty:
        return {}
    collectors = good["collector"].nunique()
    have = good.groupby("group")["collector"].nunique()
    common = good[good["group"].isin(have[have == collectors].index)]
    found = {}
    for c, part in common.groupby("collector"):
        groups = pd.DataFrame({g: _whole_rounds(own, column) for g, own in part.groupby("group")})
        found[str(c)] = mean(groups.dropna().mean(axis="columns"), bool(part["censored"].any()))
    return found


def common_groups(cells: pd.DataFrame) -> list[str]:
    """Returns the groups over which `total` computes its means."""
    good = cells[(cells["collector"] != "none") & cells["log_ratio"].notna()]
    have = good.groupby("group")["collector"].nunique()
    return sorted(have[have == good["collector"].nunique()].index)
