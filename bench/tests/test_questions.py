"""The command `questions`: its repetitions and its table."""

from __future__ import annotations

from pathlib import Path

from backstory_bench import questions


def _program(tmp_path: Path) -> str:
    program = tmp_path / "backstory"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {tmp_path}/asked\nexit 1\n')
    program.chmod(0o755)
    return str(program)


def test_the_first_of_the_repetitions_is_not_counted(tmp_path: Path) -> None:
    wait = questions.ask(_program(tmp_path), tmp_path / "s", "log -- a", tmp_path, 2)
    assert (tmp_path / "asked").read_text().splitlines() == [f"log --store {tmp_path}/s -- a"] * 3
    assert wait.wall > 0 and wait.memory > 0


def test_a_table_has_a_row_for_each_question() -> None:
    text = questions.table("t", [questions.Wait("of x", 1.2, 0.9, 14.4)])
    assert text.splitlines()[-1] == "| `of x` | 1 ms | 1 ms | 14 MB |"
