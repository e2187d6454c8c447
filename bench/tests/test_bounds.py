"""A regression is found, and noise is not taken for one."""

import random

from backstory_bench.bounds import FOUND, MARGIN, broken, unjudged
from backstory_bench.report import Results

Pairs = list[tuple[float, float]]


def results(ratio: float, noise: float, seed: int) -> Results:
    rng = random.Random(seed)
    pairs = [(ratio * rng.lognormvariate(0, noise), rng.lognormvariate(0, noise)) for _ in range(5)]
    return Results("m", {"make": {"backstory": pairs}}, {"make": {"backstory": [(1.0, 1.0)] * 5}}, {})


def test_what_is_as_it_was_passes_however_noisy_the_machine() -> None:
    assert sum(bool(broken(results(FOUND["make"][0], 0.2, seed))) for seed in range(100)) <= 3


def test_what_has_become_half_as_fast_again_fails() -> None:
    (one,) = broken(results(FOUND["make"][0] * MARGIN * 1.2, 0.03, 1))
    assert (one.workload, one.what) == ("make", "wall time")
    assert "above 1.30" in str(one)


def test_wall_time_is_not_judged_where_native_runs_wait_for_a_processor() -> None:
    busy = results(9.0, 0.03, 1)
    busy.cpu["make"]["backstory"] = [(0.5, 0.5)] * 5
    assert broken(busy) == [] and unjudged(busy) == ["make"]
    busy.cpu["make"]["backstory"] = [(0.8, 0.5)] * 5
    assert [one.what for one in broken(busy)] == ["processor time"]


def test_a_workload_that_never_worked_fails() -> None:
    found = broken(Results("m", {"cp": {}}, {"cp": {}}, {("cp", "backstory"): "exit status 1"}))
    assert [one.workload for one in found] == ["cp", "cp"]


def test_workloads_that_were_not_asked_for_do_not() -> None:
    assert broken(Results("m", {}, {}, {})) == []
