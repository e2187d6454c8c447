"""The command `instructions`: its program has each case, and its table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from backstory_bench import instructions


def test_the_program_measures_each_case_or_says_that_the_machine_does_not_have_it(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("SKIPPED: gcc is not installed")
    program = instructions.compiled(tmp_path)
    for case in instructions.CASES:
        took = instructions.measure(program, case, 20)
        assert took is None or took > 0, case
    with pytest.raises(SystemExit, match="no-case failed: usage"):
        instructions.measure(program, "no-case", 20)


def test_the_table_has_medians_and_names_cases_that_a_machine_lacks() -> None:
    def row(case: str, mode: str, ns: float) -> dict[str, object]:
        return dict(zip(instructions.FIELDS, [case, mode, 0, ns], strict=True))

    rows = [row("rdtsc", "alone", ns) for ns in (7.0, 9.0, 37.0)] + [row("rdtsc", "exact", 460.0)]
    lines = instructions.summary(rows)[2:]
    assert lines[0] == "| `rdtsc` | 9.0 (7.0 to 37.0) | 460.0 (460.0 to 460.0) |"
    assert all("not available" in line for line in lines[1:])
    assert len(lines) == len(instructions.CASES)
