"""Ratios of medians and their geometric means, with bootstrap intervals."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RESAMPLES = 2000
SEED = 20241


@dataclass(frozen=True)
class Ratio:
    """A ratio to native with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def _medians_ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(p[0] for p in pairs) / statistics.median(p[1] for p in pairs)


def _interval(samples: list[float]) -> tuple[float, float]:
    samples.sort()
    return samples[int(0.025 * len(samples))], samples[min(len(samples) - 1, int(0.975 * len(samples)))]


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Returns the ratio of the medians of (collector, native) seconds of the same rounds.

    The interval comes from resampling the rounds.
    """
    if not pairs:
        raise ValueError("no rounds to compare")
    rng = random.Random(SEED)
    samples = [_medians_ratio(rng.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES)]
    return Ratio(_medians_ratio(pairs), *_interval(samples))


def geometric_mean(rows: Mapping[str, Sequence[tuple[float, float]]]) -> Ratio:
    """Returns the geometric mean of the ratios of several workloads.

    The interval comes from resampling the rounds of each workload independently.
    """
    if not rows:
        raise ValueError("no workloads to average")
    rng = random.Random(SEED)

    def once(draw: bool) -> float:
        logs = (math.log(_medians_ratio(rng.choices(p, k=len(p)) if draw else p)) for p in rows.values())
        return math.exp(sum(logs) / len(rows))

    return Ratio(once(False), *_interval([once(True) for _ in range(RESAMPLES)]))


def paired(rows: Sequence[Mapping[str, object]], field: str, mode: str, to: str) -> list[float]:
    """Returns the ratio of a field of two modes in each round, in order of size."""
    values = {(str(row["round"]), str(row["mode"])): float(str(row[field])) for row in rows}
    rounds = sorted({number for number, _ in values})
    return sorted(values[number, mode] / values[number, to] for number in rounds)
