"""The measurement of `--durability` compares runs of one round."""

from pathlib import Path

from backstory_bench.durability import MODES, NATIVE, recorded, summary
from backstory_bench.stats import paired


def _row(number: int, mode: str, wall: float) -> dict[str, object]:
    return {"workload": "mail", "round": number, "mode": mode, "wall_s": wall}


def test_a_ratio_compares_two_modes_of_one_round() -> None:
    rows = [_row(0, "after", 2.0), _row(0, "ordered", 2.2), _row(1, "ordered", 6.0), _row(1, "after", 4.0)]
    assert paired(rows, "wall_s", "ordered", "after") == [1.1, 1.5]


def test_the_table_has_the_median_of_the_ratios_and_their_range() -> None:
    rows = [_row(number, mode, 1.0 + index) for number in range(3) for index, mode in enumerate(MODES)]
    assert summary(rows)[-1] == "| mail | 1.00 | 2.00 (2.00 to 2.00) | 1.50 (1.50 to 1.50) | 2.00 (2.00 to 2.00) |"


def test_the_native_run_has_no_recording() -> None:
    assert recorded(["true"], NATIVE, Path("/store"), "backstory") == ["true"]
    assert "ordered" in recorded(["true"], "ordered", Path("/store"), "backstory")
