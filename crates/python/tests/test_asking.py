"""The program answers the questions of the package: what happens if it gives no answer."""

from __future__ import annotations

import json
import shlex
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import backstory as bs
import pytest

Replace = Callable[[str], None]


@pytest.fixture
def replace(recorded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replace:
    """Puts a shell script into the place of the program."""

    def act(script: str) -> None:
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("BACKSTORY_PROGRAM", str(program))

    return act


def test_a_program_that_gives_no_answer_is_an_error_with_its_complaint(replace: Replace) -> None:
    replace("echo 'backstory: no room' >&2; exit 3")
    with pytest.raises(bs.BackstoryError, match="program gave no answer: no room$"):
        bs.Store()


def test_a_program_that_is_killed_is_an_error_that_names_the_signal(replace: Replace) -> None:
    replace("kill -KILL $$")
    with pytest.raises(bs.BackstoryError, match=f"signal: {signal.SIGKILL.value}"):
        bs.Store()


def test_a_program_that_does_not_exist_is_an_error(
    recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_PROGRAM", "/nowhere/backstory")
    with pytest.raises(bs.BackstoryError, match="^/nowhere/backstory gave no answer: No such file"):
        bs.Store()


@pytest.mark.parametrize("length", [4, 20, 200])
def test_an_answer_that_was_cut_is_refused(recorded: Any, replace: Replace, length: int) -> None:
    replace(f'{shlex.quote(recorded.program)} "$@" | head -c {length}')
    with pytest.raises(bs.BackstoryError):
        bs.Store().runs()


def test_an_answer_of_another_version_is_refused(replace: Replace, tmp_path: Path) -> None:
    header = json.dumps({"version": "9.9.9", "outcome": {"Ok": ["None", []]}}).encode()
    (tmp_path / "answer").write_bytes(struct.pack("<Q", len(header)) + header)
    replace(f"exec cat {shlex.quote(str(tmp_path / 'answer'))}")
    with pytest.raises(bs.BackstoryError, match="the program is of version 9.9.9"):
        bs.Store()
