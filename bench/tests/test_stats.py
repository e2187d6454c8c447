"""The statistics of paired rounds."""

import random

import pytest

from backstory_bench.stats import geometric_mean, ratio


def test_the_ratio_of_equal_series_is_one() -> None:
    r = ratio([(2.0, 2.0)] * 9)
    assert (r.value, r.low, r.high) == (1.0, 1.0, 1.0)


def test_the_interval_covers_the_true_ratio_of_noisy_pairs() -> None:
    rng = random.Random(7)
    hits = 0
    for _ in range(40):
        pairs = [(1.2 * rng.lognormvariate(0, 0.05), rng.lognormvariate(0, 0.05)) for _ in range(15)]
        r = ratio(pairs)
        hits += r.low <= 1.2 <= r.high
    assert hits >= 34


def test_the_geometric_mean_of_2_and_a_half_is_one() -> None:
    mean = geometric_mean({"a": [(2.0, 1.0)] * 3, "b": [(1.0, 2.0)] * 3})
    assert mean.value == pytest.approx(1.0)


def test_no_rounds_is_an_error_not_a_figure() -> None:
    with pytest.raises(ValueError):
        ratio([])
