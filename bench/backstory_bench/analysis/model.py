"""What would a collector cost? Overhead from a workload's syscalls per second and the collector's cost for each kind of call.

    ratio - 1  =  sum over kinds ( calls per native second x cost of one )  +  start / native seconds

The costs are fitted by non-negative least squares (a collector makes no call cheaper), each workload weighing by its ratio, so
that it is relative errors that are small. The error reported is of workloads that the fit has not seen. The start is what was measured on a command
that does nothing; results that have no such rows have it fitted, too, from programs of seconds, which tell little of milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from .calls import CATEGORIES
from .frame import Results
from .ratios import by_workload


@dataclass(frozen=True)
class Model:
    """One collector's costs."""

    collector: str
    cost: dict[str, float]
    """Seconds for one call of a kind."""
    start_s: float
    start_measured: bool
    """And not fitted."""
    workloads: int
    error: float
    """Standard error of the logarithm of a predicted ratio, each workload left out in turn; not a number if there are too few."""

    def ratio(self, rates: dict[str, float], native_s: float) -> float:
        """The predicted ratio of a program with so many calls per native second, by kind, that takes `native_s`."""
        return 1 + sum(rates.get(kind, 0.0) * cost for kind, cost in self.cost.items()) + self.start_s / native_s


@dataclass(frozen=True)
class Points:
    """What a model is fitted to."""

    rates: pd.DataFrame
    """Calls per native second, by workload and kind."""
    native_s: pd.Series
    ratios: dict[tuple[str, str], float]
    starts: dict[str, float]
    """Seconds, of the collectors for which they were measured."""


def points(results: Results) -> Points:
    """Of workloads that are timed (not those that print a figure of their own) and whose calls were counted."""
    cells = results.cells
    timed = cells[
        (cells["collector"] == "none")
        & (cells["mark"] == "ok")
        & pd.to_numeric(cells["figure"], errors="coerce").isna()
    ]
    native = np.exp(np.log(timed.groupby("workload")["native_wall"].mean()))
    loops = timed.groupby("workload")["loops"].first()
    counts = results.counts
    names = sorted(set(native.index) & set(counts.index))
    rates = counts.loc[names].reindex(columns=list(CATEGORIES), fill_value=0.0)
    rates = rates.mul(loops.loc[names].astype(float) / native.loc[names], axis="index")
    ratios = {key: m.value for key, m in by_workload(cells).items() if not m.at_least}
    return Points(rates, native.loc[names], ratios, results.starts)


def _fit(x: np.ndarray, ratio: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Costs of the columns of `x`, where `known` of the ratio is explained already."""
    weight = 1 / ratio
    solution, _ = nnls(x * weight[:, None], (ratio - 1 - known) * weight)
    return np.asarray(solution)


def fit(at: Points, collector: str) -> Model | None:
    """The model of one collector; None where fewer than four workloads were measured."""
    names = [name for name in at.rates.index if (name, collector) in at.ratios]
    if len(names) < 4:
        return None
    per_start = 1 / at.native_s.loc[names].to_numpy(float)
    start = at.starts.get(collector)
    x = at.rates.loc[names].to_numpy(float)
    if start is None:
        x = np.column_stack([x, per_start])
    known = (start or 0.0) * per_start
    scale = np.where(x.max(axis=0) > 0, x.max(axis=0), 1.0)
    ratio = np.array([at.ratios[name, collector] for name in names])
    solution = _fit(x / scale, ratio, known) / scale
    missed = []
    for i in range(len(names)):
        rest = np.arange(len(names)) != i
        guess = 1 + known[i] + x[i] @ (_fit(x[rest] / scale, ratio[rest], known[rest]) / scale)
        missed.append(np.log(guess / ratio[i]))
    cost = dict(zip(CATEGORIES, map(float, solution[: len(CATEGORIES)]), strict=True))
    error = float(np.sqrt(np.mean(np.square(missed))))
    return Model(collector, cost, float(solution[-1]) if start is None else start, start is not None, len(names), error)


def models(results: Results) -> list[Model]:
    """Of every collector that was measured enough."""
    at = points(results)
    collectors = sorted({c for _, c in at.ratios})
    return [m for c in collectors if (m := fit(at, c)) is not None]
