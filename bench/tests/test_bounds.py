"""A regression is reported, noise is not, and a workload fails only without a valid round."""

import math
import random
from pathlib import Path

from backstory_bench.bounds import FOUND, MARGIN, ROUNDS, never_measured, slower, unjudged
from backstory_bench.report import Results, load
from backstory_bench.stats import ratio as of_medians

Pairs = list[tuple[float, float]]


def results(ratio: float, noise: float, seed: int) -> Results:
    rng = random.Random(seed)
    pairs = [(ratio * rng.lognormvariate(0, noise), rng.lognormvariate(0, noise)) for _ in range(5)]
    return Results("m", {"make": {"backstory": pairs}}, {"make": {"backstory": [(1.0, 1.0)] * 5}}, {})


def test_the_known_ratios_are_those_of_the_published_rounds() -> None:
    rounds = load(Path(__file__).parents[1] / "runs" / ROUNDS)
    for workload, known in FOUND.items():
        both = (of_medians(by[workload]["backstory"]).value for by in (rounds.figure, rounds.cpu))
        assert known == tuple(math.ceil(value * 100) / 100 for value in both), workload


def test_an_unchanged_ratio_is_not_reported_on_a_noisy_machine() -> None:
    assert sum(bool(slower(results(FOUND["make"][0], 0.2, seed))) for seed in range(100)) <= 3


def test_a_ratio_that_has_grown_by_half_is_reported() -> None:
    (one,) = slower(results(FOUND["make"][0] * MARGIN * 1.2, 0.03, 1))
    assert (one.workload, one.what) == ("make", "wall time")
    assert f"above {FOUND['make'][0] * MARGIN:.2f}" in str(one)


def test_wall_time_is_not_compared_on_a_busy_machine() -> None:
    busy = results(9.0, 0.03, 1)
    busy.cpu["make"]["backstory"] = [(0.5, 0.5)] * 5
    assert slower(busy) == [] and unjudged(busy) == ["make"]
    busy.cpu["make"]["backstory"] = [(0.8, 0.5)] * 5
    assert [one.what for one in slower(busy)] == ["processor time"]


def test_a_workload_without_a_valid_round_fails() -> None:
    never = Results("m", {"cp": {}}, {"cp": {}}, {("cp", "backstory"): "exit status 1"})
    assert never_measured(never) == ["cp"] and slower(never) == []


def test_a_valid_or_unrequested_workload_does_not_fail() -> None:
    assert never_measured(results(9.0, 0.03, 1)) == []
    assert never_measured(Results("m", {}, {}, {})) == []
