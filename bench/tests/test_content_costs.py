"""The program of `bench/content-costs`: its rows, and its failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory_bench import content_costs


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_each_printed_line_is_a_row_by_the_names_of_the_first(tmp_path: Path) -> None:
    made = program(tmp_path / "costs", 'printf "round,%s\\n0,1.5\\n1,2.5\\n" "$1"')
    rows = content_costs.measured(made, ["wall_s"])
    assert rows == [{"round": "0", "wall_s": "1.5"}, {"round": "1", "wall_s": "2.5"}]


def test_a_failure_of_the_program_ends_the_command_with_its_message(tmp_path: Path) -> None:
    made = program(tmp_path / "costs", "echo git has no blob of f >&2; exit 1")
    with pytest.raises(SystemExit, match="name 3: git has no blob of f"):
        content_costs.measured(made, ["name", "3"])


def test_without_a_checkout_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_costs, "CRATE", tmp_path / "content-costs")
    with pytest.raises(SystemExit, match="run the command from a checkout"):
        content_costs.built()
