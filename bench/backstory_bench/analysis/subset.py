"""The fewest workloads that tell what all of them do: section 3.4 of the paper on our own rows.

Features that do not change when a program runs ten times instead of once (log overhead in every collector, processor over wall time, calls of
each kind per second), standardised; clusters by k-means or Ward, with or without principal components before; of each cluster the workload
nearest to its middle. Scored by representativeness (distance of each workload to the nearest chosen one) and accuracy (how well the chosen
ones, with weights that are not negative and sum to one, make up the mean of all), both as root mean squares.
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
"""How often the equation that weights sum to one is added; a regression keeps what is repeated."""
PCA_SHARE = 0.9
"""Of the variance, kept by PCA."""
FINISHED = 0.9
"""A collector that finished fewer of the workloads is no feature: the workloads that it breaks would all be left out."""


@dataclass(frozen=True)
class Subset:
    """A choice of workloads."""

    method: str
    k: int
    chosen: tuple[str, ...]
    weights: tuple[float, ...]
    cluster: dict[str, int]
    """By workload: which of `chosen` stands for it."""
    representativeness: float
    accuracy: float


def features(results: Results) -> pd.DataFrame:
    """One row a workload, one column a feature, as measured; workloads that lack one are left out, and collectors that break many."""
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
    """Each feature as standard deviations from its mean; features that are the same everywhere are left out."""
    varied = table.loc[:, table.std(ddof=0) > 1e-12]
    return np.asarray(StandardScaler().fit_transform(varied))


def weights_of(z: np.ndarray, chosen: Sequence[int]) -> tuple[np.ndarray, float]:
    """Non-negative weights that sum to one, and the root mean square by which the chosen rows then miss the mean of all."""
    target = z.mean(axis=0)
    a = np.vstack([z[list(chosen)].T, np.ones((SUM_COPIES, len(chosen)))])
    solution, _ = nnls(a, np.concatenate([target, np.ones(SUM_COPIES)]))
    weights = solution / solution.sum()
    return weights, float(np.sqrt(np.mean((weights @ z[list(chosen)] - target) ** 2)))


def _labels(z: np.ndarray, method: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(cluster of each row, the space it was found in)"""
    space = PCA(PCA_SHARE, svd_solver="full").fit_transform(z) if method.startswith("PCA") else z
    if method.endswith("k-means"):
        return KMeans(k, n_init=10, random_state=0).fit_predict(space), space
    return AgglomerativeClustering(k, linkage="ward").fit_predict(space), space


def choose(names: Sequence[str], z: np.ndarray, method: str, k: int) -> Subset:
    """The subset of `k` by one method."""
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
    """Every method with every size."""
    z, names = standardised(table), list(table.index)
    return [choose(names, z, method, k) for method in METHODS for k in range(2, min(most, len(names) - 1) + 1)]


def diminishing(scores: Sequence[float]) -> int:
    """The position from which on more returns little: where the curve is farthest below the line between its ends."""
    if len(scores) < 3:
        return len(scores) - 1
    y = np.asarray(scores)
    line = np.linspace(y[0], y[-1], len(y))
    return int(np.argmax(line - y))


WITHIN = 1.05
"""A subset tells an iteration that it was chosen without, of each collector, within this factor."""


def best(found: Sequence[Subset], k: int | None) -> Subset:
    """Ward without PCA as in the paper, unless another method is more accurate at its own diminishing return."""
    options = []
    for method in METHODS:
        curve = sorted((s for s in found if s.method == method), key=lambda s: s.k)
        exact = [s for s in curve if s.k == k]
        if curve:
            options.append(exact[0] if exact else curve[diminishing([s.accuracy for s in curve])])
    return min(options, key=lambda s: (round(s.accuracy, 3), s.k, s.method != "Ward"))


def _miss(chosen: Subset, column: pd.Series) -> float:
    """How far the chosen workloads, weighed, are from the mean of all."""
    return float(np.dot(chosen.weights, column.loc[list(chosen.chosen)].to_numpy(float))) - float(column.mean())


def held_out(table: pd.DataFrame, like: Subset) -> dict[str, float]:
    """By collector: how far (a factor's logarithm) the subset misses its mean overhead when it was chosen without knowing that collector."""
    missed = {}
    for column in [c for c in map(str, table.columns) if c.startswith("log ratio ")]:
        rest = table.drop(columns=[column])
        chosen = choose(list(table.index), standardised(rest), like.method, like.k)
        missed[column.removeprefix("log ratio ")] = _miss(chosen, table[column])
    return missed


def held_back(results: Results, like: Subset) -> dict[str, float]:
    """By collector: how far a subset that was chosen from all iterations but the last misses its mean overhead in the last one (a factor's
    logarithm). Empty where there is one iteration."""
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
    """How it was chosen, and how good it is."""
    return f"{chosen.method}, k = {chosen.k}: accuracy {chosen.accuracy:.3f}, representativeness {chosen.representativeness:.3f}"


def members(chosen: Subset) -> list[list[str]]:
    """Weight, representative and whom else it stands for: the paper's table 5, heaviest first."""
    rows = []
    for number, name in sorted(enumerate(chosen.chosen), key=lambda pair: -chosen.weights[pair[0]]):
        others = [w for w, label in chosen.cluster.items() if label == number and w != name]
        rows.append([f"{100 * chosen.weights[number]:.1f} %", name, ", ".join(others)])
    return rows


def misses(table: pd.DataFrame, chosen: Subset, results: Results) -> list[tuple[str, list[list[str]]]]:
    """The errors on what was held out: what that was, and by collector how many percent its mean overhead is missed by."""
    held = [
        ("A subset chosen without one collector misses that collector's mean overhead by", held_out(table, chosen)),
        (
            "A subset chosen without the last iteration misses each collector's mean overhead there by",
            held_back(results, chosen),
        ),
    ]
    return [
        (what, [[c, f"{100 * (np.exp(miss) - 1):+.1f} %"] for c, miss in missed.items()])
        for what, missed in held
        if missed
    ]


def text(table: pd.DataFrame, chosen: Subset, results: Results) -> str:
    """Scores, members and errors."""
    lines = [scores(chosen), "", "| weight | representative | members |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in members(chosen)]
    for what, rows in misses(table, chosen, results):
        lines += ["", f"{what}:", "", *(f"- {collector}: {miss}" for collector, miss in rows)]
    return "\n".join(lines)


def chosen_of(results: Results, k: int | None = None) -> tuple[pd.DataFrame, list[Subset], Subset]:
    """Features, all candidates, and the choice: of `k`, or of as many as it takes from where returns diminish to tell the last iteration.

    # Errors
    `Unusable` where too few workloads were measured.
    """
    table = features(results)
    if len(table) < 6:
        raise Unusable(
            f"{len(table)} workloads have all features: a subset needs six (run with profiles, more workloads)"
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
    """The command `subset`."""
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
