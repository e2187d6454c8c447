"""The command `hashing`: its table."""

from __future__ import annotations

from backstory_bench.hashing import FIELDS, ONE, SEVERAL, amount, summary, time


def test_an_amount_and_a_time_have_the_unit_that_suits_them() -> None:
    sizes = (500, 64 << 10, 128 << 10, 10 << 20, 1 << 30)
    assert [amount(size) for size in sizes] == ["500 bytes", "64 KiB", "128 KiB", "10 MiB", "1 GiB"]
    assert [time(seconds) for seconds in (0.0000214, 0.0105, 1.25)] == ["21.4 µs", "10.50 ms", "1.25 s"]


def test_a_ratio_compares_both_ways_of_one_round_and_one_size() -> None:
    def row(size: int, mode: str, number: int, wall: float, cpu: float) -> dict[str, object]:
        return dict(zip(FIELDS, [size, mode, 2, number, wall, cpu], strict=True))

    rows = [row(1 << 20, ONE, 0, 0.002, 0.002), row(1 << 20, SEVERAL, 0, 0.001, 0.003)]
    rows += [row(1 << 20, ONE, 1, 0.004, 0.004), row(1 << 20, SEVERAL, 1, 0.004, 0.004)]
    rows += [row(64 << 10, mode, 0, 0.00001, 0.00001) for mode in (ONE, SEVERAL)]
    lines = summary(rows)
    assert lines[2] == "| 1 MiB | 3.00 ms | 2.50 ms | 0.75 (0.50 to 1.00) | 3.00 ms | 3.50 ms | 1.25 (1.00 to 1.50) |"
    assert lines[3].startswith("| 64 KiB | 10.0 µs | 10.0 µs | 1.00 (1.00 to 1.00) |")
