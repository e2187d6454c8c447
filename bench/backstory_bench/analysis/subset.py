"""Chooses few workloads that represent all of them, by the method of section 3.4 of the paper.

The features do not change if a program runs ten times instead of once:

- the logarithm of the overhead in every collector,
- processor time over wall time,
- calls of each kind per second.

They are standardised. The workloads are clustered by k-means or Ward's method, with or without a
principal component analysis before. Of each cluster, the workload nearest to the centre is chosen.
A subset has two scores, both root mean squares:

- Representativeness: the distance of each workload to the nearest chosen one.
- Accuracy: the distance between the mean of all workloads and the weighted mean of the chosen ones.
  The weights are not negative and sum to one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from ..matrix.journal import Unusable
from .calls import PAPER
from .frame import Results, load
from .ratios import by_workload

METHODS = ("k-means", "Ward", "PCA, k-means", "PCA, Ward")
SUM_COPIES = 100
"""The weight of the condition that the weights sum to one, as a number of repeated equations."""
PCA_SHARE = 0.9
"""The share of the variance that the principal components keep."""
FINISHED = 0.9
"""The least share of the workloads that a collector must finish to be a feature.

A collector that fails on more workloads would exclude them all.
"""


@dataclass(frozen=True)
class Subset:
    """A choice of workloads."""

    method: str
    k: int
    chosen: tuple[str, ...]
    weights: tuple[float, ...]
    cluster: dict[str, int]
    """For each workload, the index of its representative in `chosen`."""
    representativeness: float
    accuracy: float


def features(results: Results) -> pd.DataFrame:
    """Returns the features, with a row for each workload.

    Workloads that lack a feature are left out, as are collectors that fail on many workloads.
    """
    cells = results.cells
    logs = {key: np.log(m.value) for key, m in by_workload(cells).items()}
    columns: dict[str, dict[str, float]] = {
        f"log ratio {c}": {w: v for (w, name), v in logs.items() if name == c} for c in sorted({c for _, c in logs})
    }
    native = cells[(cells["collector"] == "none") & (cells["mark"] == "ok")]
    wall = native.groupby("workload")["wall_s"].mean().astype(float)
    columns["cpu / wall"] = (native.groupby("workload")["cpu_s"].mean().astype(float) / wall).to_dict()  # type: ignore[assignment]
    counts, loops = results.counts, native.groupby("workload")["loops"].first().astype(float)
    for kind in PAPER:
        if kind in counts:
            columns[f"{kind} calls / s"] = {
                w: counts.loc[w, kind] * loops[w] / wall[w] for w in counts.index if w in wall.index
            }
    table = pd.DataFrame(columns)
    of_collectors = table.columns.str.startswith("log ratio ")
    return table.loc[:, ~of_collectors | (table.notna().mean() >= FINISHED)].dropna()


def standardised(table: pd.DataFrame) -> np.ndarray:
    """Converts each feature to standard deviations from its mean.

    Constant features are left out.
    """
    varied = table.loc[:, table.std(ddof=0) > 1e-12]
    return np.asarray(StandardScaler().fit_transform(varied))


def weights_of(z: np.ndarray, chosen: Sequence[int]) -> tuple[np.ndarray, float]:
    """Fits non-negative weights that sum to one.

    Also returns the root mean square by which the weighted rows differ from the mean of all rows.
    """
    target = z.mean(axis=0)
    a = np.vstack([z[list(chosen)].T, np.ones((SUM_COPIES, len(chosen)))])
    solution, _ = nnls(a, np.concatenate([target, np.ones(SUM_COPIES)]))
    weights = solution / solution.sum()
    return weights, float(np.sqrt(np.mean((weights @ z[list(chosen)] - target) ** 2)))


def _labels(z: np.ndarray, method: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cluster of each row, and the space in which the clusters were found."""
    space = PCA(PCA_SHARE, svd_solver="full").fit_transform(z) if method.startswith("PCA") else z
    if method.endswith("k-means"):
        return KMeans(k, n_init=10, random_state=0).fit_predict(space), space
    return AgglomerativeClustering(k, linkage="ward").fit_predict(space), space


def choose(names: Sequence[str], z: np.ndarray, method: str, k: int) -> Subset:
    """Chooses a subset of `k` workloads by one method."""
    labels, space = _labels(z, method, k)
    chosen = []
    for cluster in range(k):
        members = np.flatnonzero(labels == cluster)
        middle = space[members].mean(axis=0)
        chosen.append(int(members[np.argmin(((space[members] - middle) ** 2).sum(axis=1))]))
    distances = np.sqrt(((z[:, None, :] - z[None, chosen, :]) ** 2).sum(axis=2)).min(axis=1)
    weights, accuracy = weights_of(z, chosen)
    return Subset(
        method,
        k,
        tuple(names[i] for i in chosen),
        tuple(map(float, weights)),
        {name: int(label) for name, label in zip(names, labels, strict=True)},
        float(np.sqrt(np.mean(distances**2))),
        accuracy,
    )


def sweep(table: pd.DataFrame, most: int = 20) -> list[Subset]:
    """Returns the subsets of every method and size."""
    z, names = standardised(table), list(table.index)
    return [choose(names, z, method, k) for method in METHODS for k in range(2, min(most, len(names) - 1) + 1)]


def diminishing(scores: Sequence[float]) -> int:
    """Returns the index of the point of diminishing returns.

    There the curve is farthest below the line between its ends.
    """
    if len(scores) < 3:
        return len(scores) - 1
    y = np.asarray(scores)
    line = np.linspace(y[0], y[-1], len(y))
    return int(np.argmax(line - y))


WITHIN = 1.05
"""The greatest error, as a factor, of a subset on an iteration that was not used to choose it."""


def best(found: Sequence[Subset], k: int | None) -> Subset:
    """Returns the most accurate subset, each method at its own point of diminishing returns.

    Among equals, Ward's method without principal components wins, as in the paper.
    """
    options = []
    for method in METHODS:
        curve = sorted((s for s in found if s.method == method), key=lambda s: s.k)
        exact = [s for s in curve if s.k == k]
        if curve:
            options.append(exact[0] if exact else curve[diminishing([s.accuracy for s in curve])])
    return min(options, key=lambda s: (round(s.accuracy, 3), s.k, s.method != "Ward"))


def _miss(chosen: Subset, column: pd.Series) -> float:
    """Returns the error of the weighted mean of the chosen workloads against the mean of all."""
    return float(np.dot(chosen.weights, column.loc[list(chosen.chosen)].to_numpy(float))) - float(column.mean())


def held_out(table: pd.DataFrame, like: Subset) -> dict[str, float]:
    """Returns the error on each collector of a subset that was chosen without that collector.

    The error is the logarithm of a factor in the mean overhead.
    """
    missed = {}
    for column in [c for c in map(str, table.columns) if c.startswith("log ratio ")]:
        rest = table.drop(columns=[column])
        chosen = choose(list(table.index), standardised(rest), like.method, like.k)
        missed[column.removeprefix("log ratio ")] = _miss(chosen, table[column])
    return missed


def held_back(results: Results, like: Subset) -> dict[str, float]:
    """Returns the error on the last iteration of a subset that was chosen without it, by collector.

    The error is the logarithm of a factor in the mean overhead. Empty if there is one iteration.
    """
    rows = results.rows
    last = rows["iteration"].max()
    before = rows[rows["iteration"].isna() | (rows["iteration"] < last)]
    if before["iteration"].isna().all():
        return {}
    table = features(Results(before, results.plans))
    chosen = choose(list(table.index), standardised(table), like.method, like.k)
    after = features(Results(rows[rows["iteration"].isna() | (rows["iteration"] == last)], results.plans))
    shared = [c for c in map(str, table.columns) if c.startswith("log ratio ") and c in after]
    after = after.loc[[w for w in table.index if w in after.index]]
    if not set(chosen.chosen) <= set(after.index):
        return {}
    return {c.removeprefix("log ratio "): _miss(chosen, after[c]) for c in shared}


def scores(chosen: Subset) -> str:
    """Describes the method of choice, and its scores."""
    return f"{chosen.method}, k = {chosen.k}: accuracy {chosen.accuracy:.3f}, representativeness {chosen.representativeness:.3f}"


def members(chosen: Subset) -> list[list[str]]:
    """Returns weight, representative and cluster: table 5 of the paper, heaviest first."""
    rows = []
    for number, name in sorted(enumerate(chosen.chosen), key=lambda pair: -chosen.weights[pair[0]]):
        others = [w for w, label in chosen.cluster.items() if label == number and w != name]
        rows.append([f"{100 * chosen.weights[number]:.1f} %", name, ", ".join(others)])
    return rows


def misses(table: pd.DataFrame, chosen: Subset, results: Results) -> list[tuple[str, list[list[str]]]]:
    """Returns the errors on data that was held out: a title, and percentages by collector."""
    held = [
        (
            "The error in a collector's mean overhead of a subset that was chosen without that collector",
            held_out(table, chosen),
        ),
        (
            "The error in each collector's mean overhead in the last iteration of a subset that was chosen without that iteration",
            held_back(results, chosen),
        ),
    ]
    return [
        (what, [[c, f"{100 * (np.exp(miss) - 1):+.1f} %"] for c, miss in missed.items()])
        for what, missed in held
        if missed
    ]


def text(table: pd.DataFrame, chosen: Subset, results: Results) -> str:
    """Returns the scores, the members and the errors as Markdown."""
    lines = [scores(chosen), "", "| weight | representative | members |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in members(chosen)]
    for what, rows in misses(table, chosen, results):
        lines += ["", f"{what}:", "", *(f"- {collector}: {miss}" for collector, miss in rows)]
    return "\n".join(lines)


def chosen_of(results: Results, k: int | None = None) -> tuple[pd.DataFrame, list[Subset], Subset]:
    """Returns the features, all candidates, and the chosen subset.

    The subset has `k` workloads. Without `k`, the size is the point of diminishing returns. It
    grows until the subset predicts the last iteration within the factor `WITHIN`.

    # Errors
    `Unusable` if too few workloads were measured.
    """
    table = features(results)
    if len(table) < 6:
        raise Unusable(
            f"{len(table)} workloads have all features, but a subset needs six (run with profiles, or more workloads)"
        )
    found = sweep(table)
    chosen = best(found, k)
    sizes = range(chosen.k + 1, max(subset.k for subset in found) + 1) if k is None else ()
    for larger in sizes:
        if all(abs(miss) <= np.log(WITHIN) for miss in held_back(results, chosen).values()):
            break
        chosen = best(found, larger)
    return table, found, chosen


def main_subset(path: Path, k: int | None, write: bool) -> int:
    """Runs the command `subset`."""
    results = load(path)
    table, _, chosen = chosen_of(results, k)
    print(text(table, chosen, results))
    if write:
        target = Path(str(resources.files(__package__))).parent / "data" / "minimal.json"
        kept = {n: round(w, 6) for n, w in zip(chosen.chosen, chosen.weights, strict=True)}
        source = f"subset of {path.name}: {chosen.method}, k = {chosen.k}"
        target.write_text(json.dumps({"source": source, "weights": kept}, indent=1) + "\n")
        print(f"suite minimal: {target}", file=sys.stderr)
    return 0
