"""The command `background`: the priority of the indexer, its processor time, and the table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backstory_bench import background
from backstory_bench.background import ALONE, FIELDS, LAST, LOOP, MODES, ORDINARY, PRIORITY, commands, indexer, summary


def test_only_the_mode_last_has_the_lowest_priority() -> None:
    words = {mode: indexer(mode, "backstory", Path("/pending"), Path("/copies/store")) for mode in (LAST, ORDINARY)}
    assert words[LAST][: len(PRIORITY)] == list(PRIORITY)
    assert words[ORDINARY][:3] == ["sh", "-c", LOOP]
    arguments = ["backstory", "/pending", "/copies/store", str(os.getpid())]
    assert all(of[-4:] == arguments for of in words.values())


def test_the_indexer_takes_one_copy_of_the_store_after_the_other_until_it_fails(tmp_path: Path) -> None:
    store, program = tmp_path / "pending", tmp_path / "backstory"
    store.mkdir()
    program.write_text('#!/bin/sh\necho "$@" >>"$0.calls"; test $(wc -l <"$0.calls") -lt 4\n')
    program.chmod(0o755)
    subprocess.run(indexer(ORDINARY, str(program), store, tmp_path / "copy"), check=False, timeout=60)
    calls = (tmp_path / "backstory.calls").read_text().splitlines()
    assert calls == [f"index --store {tmp_path / 'copy'}"] * 4
    # The copies before it are gone.
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy"]


def test_the_indexer_ends_with_the_measurement(tmp_path: Path) -> None:
    (tmp_path / "pending").mkdir()
    words = indexer(ORDINARY, "true", tmp_path / "pending", tmp_path / "copy")
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    words[-1] = str(gone.pid)
    subprocess.run(words, check=False, timeout=60, stderr=subprocess.DEVNULL)
    assert not (tmp_path / "copy").exists()


def test_the_processor_time_of_a_session_has_processes_that_ended() -> None:
    computes = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"]
    words = ["sh", "-c", '"$@"; echo; read _', "sh", *computes]
    with subprocess.Popen(words, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        assert 0.2 < background.used(process.pid) < 10
        process.stdin.close()


def test_an_indexer_that_does_not_work_ends_the_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pending").mkdir()
    monkeypatch.setattr(background, "PATIENCE_S", 0.5)
    with (
        pytest.raises(SystemExit, match="the indexer does not work"),
        background.beside(ORDINARY, "false", tmp_path / "pending"),
    ):
        raise AssertionError("the foreground ran without an indexer")
    assert not (tmp_path / "copies").exists()


def test_a_foreground_uses_every_processor() -> None:
    assert "-j4" in commands("make", Path("/w"), 4)[0]
    assert len(commands("open", Path("/w"), 4)) == 4


def test_the_table_compares_the_modes_of_one_round() -> None:
    figures = {ALONE: (4.0, 5.0, 4.0), LAST: (4.1, 5.0, 4.0), ORDINARY: (6.0, 7.0, 6.0)}
    rows: list[dict[str, object]] = []
    for mode in MODES:
        for number, figure in enumerate(figures[mode]):
            other = {ALONE: 0.0, LAST: 0.5, ORDINARY: 3.0}[mode]
            rows.append(dict(zip(FIELDS, ["make", 2, number, mode, figure, 7.5, other], strict=True)))
    assert summary(rows)[2:] == [
        "| `make -j2` | 4.00 s | 1.000 (1.000 to 1.025) | 1.500 (1.400 to 1.500) | 0.50 s, 3.00 s |"
    ]
