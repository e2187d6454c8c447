"""The tables of `backstory-bench functions`."""

from pathlib import Path

import pytest

from backstory_bench.functions import BYTES_OF_A_CALL, MODES, TESTS, summary
from backstory_bench.granularity import METHODS, properties, put_tables


def rows(rates: dict[str, float]) -> list[dict[str, object]]:
    """Returns rows with the rate of a mode for every test."""
    return [{"test": test, "mode": mode, "round": 0, "rate": rate} for mode, rate in rates.items() for test in TESTS]


def test_a_rate_is_divided_by_that_of_the_same_compiler() -> None:
    lines = summary(rows({"none": 100, "hooks on": 50, "clang": 200, "sleds off": 200}), 1)
    assert lines[0] == "| Test | none | hooks on | clang | sleds off |"
    assert "| syscall | 1.000 | 0.500 | 1.000 | 1.000 |" in lines
    assert lines[-1] == "| Index, relative | 1.000 | 0.500 | 1.000 | 1.000 |"


def test_a_mode_without_all_tests_has_no_index() -> None:
    some = [row for row in rows({"none": 100, "backstory": 90}) if row["test"] != "syscall" or row["mode"] == "none"]
    lines = summary([*some, {"test": BYTES_OF_A_CALL, "mode": "backstory", "round": 0, "rate": 9.25}], 1)
    assert "| syscall | 1.000 | – |" in lines
    assert lines[-2:] == ["| Index, relative | 1.000 | – |", "| Bytes of a call | – | 9.2 |"]


def test_the_table_of_methods_has_a_slowdown_once_all_were_measured(tmp_path: Path) -> None:
    assert "slowdown" not in properties(rows({"none": 100, "strace": 10}))[0]
    measured = properties(rows({"none": 100, "clang": 200} | dict.fromkeys(METHODS, 50)))
    assert measured[0].endswith("| Median slowdown |")
    assert measured[2].endswith("| 2.00 |")
    assert next(line for line in measured if line.startswith("| sleds ")).endswith("| 4.00 |")
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- properties -->\nold\n<!-- end of properties -->\nb\n")
    put_tables(page, {"properties": measured})
    text = page.read_text()
    assert "old" not in text and text.startswith("a\n") and text.endswith("\nb\n") and measured[2] in text
    with pytest.raises(SystemExit):
        put_tables(page, {"other": measured})


def test_every_method_is_a_mode() -> None:
    assert set(METHODS) <= set(MODES)
