"""A model of what questions cost, in seconds of one core.

In: measurements. A cost is a sum of terms, such as the number of edges, each with a factor that is
not negative. Half of the measurements decide about the factors, and the other half checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .measure import Measurement

Array = np.ndarray[Any, Any]
Term = Callable[[Measurement], float]

#: The terms by their names on the page.
TERMS: dict[str, Term] = {
    "question": lambda one: 1.0,
    "edge": lambda one: float(one.edges),
    "link": lambda one: float(one.links),
    "round": lambda one: float(one.rounds),
    "edge and round": lambda one: float(one.edges) * one.rounds,
    "data file": lambda one: float(one.files),
}


@dataclass(frozen=True)
class Kind:
    """Measurements with one model."""

    name: str
    engine: str
    #: The beginnings of its questions.
    questions: tuple[str, ...]
    terms: tuple[str, ...]

    def has(self, one: Measurement) -> bool:
        """True for a measurement of this kind."""
        return one.engine == self.engine and one.question.startswith(self.questions)


LINEAGE = ("of ", "uses of ")
#: The question about a fleet that costs most.
OWNERS = "bytes written by each owner"
#: An edge costs something else for each question about a fleet, so that each is a kind.
FLEET = ("hosts that read a content", "hosts that executed a program", OWNERS)
KINDS = (
    Kind("write", "lake", ("write",), ("question", "edge")),
    Kind("DuckDB: open", "duckdb", ("open",), ("question", "data file")),
    Kind("DuckDB: lineage", "duckdb", LINEAGE, ("question", "edge", "link")),
    *(Kind(f"DuckDB: {name}", "duckdb", (name,), ("question", "edge")) for name in FLEET),
    Kind("Spark: first", "spark", ("first question",), ("question", "edge")),
    Kind("Spark: lineage", "spark", LINEAGE, ("round", "edge and round", "link")),
    *(Kind(f"Spark: {name}", "spark", (name,), ("question", "edge")) for name in FLEET),
)


@dataclass(frozen=True)
class Model:
    """The factors of a kind, and their errors on measurements that did not decide about them."""

    kind: Kind
    factors: dict[str, float]
    #: Numbers of measurements that decided and checked.
    fitted: int
    checked: int
    #: The relative errors of the check: the median and the greatest.
    median: float
    worst: float
    #: The greatest relative error for the largest lake, if only smaller ones decide.
    beyond: float | None

    def predict(self, one: Measurement) -> float:
        """The seconds of one core."""
        return _seconds(self.factors, one)


def models(measured: list[Measurement]) -> list[Model]:
    """The models of all kinds with enough measurements: two for each factor."""
    found = []
    for kind in KINDS:
        rows = sorted(
            (one for one in measured if kind.has(one) and one.cpu > 0),
            key=lambda one: (one.edges, one.question, one.workers),
        )
        if len(rows) >= 2 * len(kind.terms):
            found.append(_model(kind, rows))
    return found


def _model(kind: Kind, rows: list[Measurement]) -> Model:
    half, other = rows[::2], rows[1::2]
    factors = fit(kind.terms, half)
    errors = _errors(factors, other)
    most = max(one.edges for one in rows)
    smaller = [one for one in rows if one.edges < most]
    beyond = None
    if len(smaller) >= len(kind.terms):
        largest = [one for one in rows if one.edges == most]
        beyond = float(_errors(fit(kind.terms, smaller), largest).max())
    median, worst = float(np.median(errors)), float(errors.max())
    return Model(kind, factors, len(half), len(other), median, worst, beyond)


def _errors(factors: dict[str, float], rows: list[Measurement]) -> Array:
    return np.array([abs(_seconds(factors, one) / one.cpu - 1) for one in rows])


def _seconds(factors: dict[str, float], one: Measurement) -> float:
    """The seconds of one core that the factors give for a measurement."""
    return sum(factor * TERMS[name](one) for name, factor in factors.items())


def fit(terms: tuple[str, ...], rows: list[Measurement]) -> dict[str, float]:
    """The factors with the least squares of relative errors, none of them negative."""
    wanted = np.array([[TERMS[name](one) / one.cpu for name in terms] for one in rows])
    scale = np.maximum(np.abs(wanted).max(axis=0), 1e-300)
    used = list(range(len(terms)))
    # Leaves out the term with the most negative factor, as long as one is negative.
    while True:
        solved, *_ = np.linalg.lstsq(wanted[:, used] / scale[used], np.ones(len(rows)), rcond=None)
        if len(used) == 1 or solved.min() >= 0:
            break
        used.pop(int(solved.argmin()))
    factors = dict.fromkeys(terms, 0.0)
    for at, value in zip(used, solved):
        factors[terms[at]] = max(float(value / scale[at]), 0.0)
    return factors
