"""Predicts the overhead of a collector from a program's syscalls and a cost for each kind of call.

    ratio - 1  =  sum over kinds ( calls per native second x cost of one )  +  start / native
    seconds

The costs are fitted by non-negative least squares, because a collector makes no call cheaper. Each
workload is weighted by the inverse of its ratio, so that the fit minimizes relative errors. The
reported error is that on workloads which were left out of the fit.

The start is measured on a command that does nothing. If the results lack that measurement, the
start is fitted, too. A fitted start is imprecise: it comes from programs that run for seconds.
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
    """The costs of one collector."""

    collector: str
    cost: dict[str, float]
    """Seconds for one call of a kind."""
    start_s: float
    start_measured: bool
    """False if the start was fitted."""
    workloads: int
    error: float
    """The standard error of the logarithm of a predicted ratio, by leaving out each workload in
    turn. NaN if there are too few workloads."""

    def ratio(self, rates: dict[str, float], native_s: float) -> float:
        """Predicts the ratio of a program, from its calls per native second by kind and its native
        time.
        """
        return 1 + sum(rates.get(kind, 0.0) * cost for kind, cost in self.cost.items()) + self.start_s / native_s


@dataclass(frozen=True)
class Points:
    """The data to which a model is fitted."""

    rates: pd.DataFrame
    """Calls per native second, by workload and kind."""
    native_s: pd.Series
    ratios: dict[tuple[str, str], float]
    starts: dict[str, float]
    """Measured start times in seconds, by collector."""


def points(results: Results) -> Points:
    """Returns the data of the workloads that are timed and whose calls were counted.

    Workloads that print a figure of their own are not included.
    """
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
    """Fits the costs of the columns of `x`. `known` is the part of the ratio that is explained."""
    weight = 1 / ratio
    solution, _ = nnls(x * weight[:, None], (ratio - 1 - known) * weight)
    return np.asarray(solution)


def fit(at: Points, collector: str) -> Model | None:
    """Fits the model of one collector. Returns `None` for fewer than four measured workloads."""
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
    """Returns the models of all collectors with enough measurements."""
    at = points(results)
    collectors = sorted({c for _, c in at.ratios})
    return [m for c in collectors if (m := fit(at, c)) is not None]
