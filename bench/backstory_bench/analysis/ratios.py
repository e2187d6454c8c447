"""Ratios to native, log-normal: geometric means with intervals of Student's t, by workload, by group, and over groups."""

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
    """Bounds of the 95 % interval; not numbers where one iteration gives none."""
    rounds: int
    at_least: bool
    """Some of it was cut off: the true value is higher."""

    def __str__(self) -> str:
        if self.at_least:  # an interval would be of where it was cut off
            return f"≥ {self.value:.2f}"
        return f"{self.value:.2f}" if np.isnan(self.low) else f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def mean(logs: pd.Series, at_least: bool) -> Mean:
    """Of logarithms, one an iteration."""
    n, middle = len(logs), float(logs.mean())
    low = high = float("nan")
    if n > 1:
        error = float(logs.std(ddof=1)) / np.sqrt(n)
        low, high = stats.t.interval(LEVEL, n - 1, middle, error) if error > 0 else (middle, middle)
    return Mean(float(np.exp(middle)), float(np.exp(low)), float(np.exp(high)), n, at_least)


def _good(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """The cells that count, each with its `round`: which time it is that this collector was measured on this workload. Workloads that were measured
    apart, as one matrix each, have the same rounds."""
    good = cells[(cells["collector"] != "none") & cells[column].notna()]
    times, _ = pd.MultiIndex.from_frame(good[["source", "iteration"]]).factorize(sort=True)
    when = pd.Series(times, index=good.index)
    return good.assign(round=when.groupby([good["workload"], good["collector"]]).rank("dense"))


def by_workload(cells: pd.DataFrame, column: str = "log_ratio") -> dict[tuple[str, str], Mean]:
    """By (workload, collector)."""
    good = _good(cells, column)
    return {
        (str(w), str(c)): mean(part.groupby("round")[column].mean(), bool(part["censored"].any()))
        for (w, c), part in good.groupby(["workload", "collector"])
    }


def by_group(cells: pd.DataFrame, column: str = "log_ratio") -> dict[tuple[str, str], Mean]:
    """By (group, collector); an iteration's figure is the mean over the group's workloads that the collector finished in all iterations."""
    good = _good(cells, column)
    found = {}
    for (g, c), part in good.groupby(["group", "collector"]):
        wide = part.pivot_table(index="round", columns="workload", values=column)
        whole = wide.dropna(axis="columns") if wide.dropna(axis="columns").shape[1] else wide
        found[str(g), str(c)] = mean(whole.mean(axis="columns"), bool(part["censored"].any()))
    return found


def total_of_all(cells: pd.DataFrame, column: str = "log_ratio") -> dict[str, Mean]:
    """By collector that finished some workload of every group: over all groups, each weighing the same."""
    good = cells[(cells["collector"] != "none") & cells[column].notna()]
    groups = good.groupby("collector")["group"].nunique()
    whole = good[good["collector"].isin(groups[groups == good["group"].nunique()].index)]
    return total(whole, column)


def total(cells: pd.DataFrame, column: str = "log_ratio") -> dict[str, Mean]:
    """By collector: over the groups that every collector finished, each group weighing the same."""
    good = _good(cells, column)
    if good.empty:
        return {}
    collectors = good["collector"].nunique()
    have = good.groupby("group")["collector"].nunique()
    common = good[good["group"].isin(have[have == collectors].index)]
    found = {}
    for c, part in common.groupby("collector"):
        groups = part.groupby(["round", "group"])[column].mean()
        rounds = groups.groupby("round")
        complete = rounds.mean()[rounds.size() == rounds.size().max()]
        found[str(c)] = mean(complete, bool(part["censored"].any()))
    return found


def common_groups(cells: pd.DataFrame) -> list[str]:
    """The groups that `total` is over."""
    good = cells[(cells["collector"] != "none") & cells["log_ratio"].notna()]
    have = good.groupby("group")["collector"].nunique()
    return sorted(have[have == good["collector"].nunique()].index)
