"""The command `indexing`: what it measures in which order, and its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstory_bench import indexing_time
from backstory_bench.indexing_time import AGAIN, FIELDS, FILES, FIRST, LAZY, LOOKS, NATIVE, OFF, measure, summary
from backstory_bench.measure import become_subreaper


def _program(directory: Path) -> Path:
    """Makes a program that writes its calls, and whether an indexer may work, beside it."""
    program = directory / "backstory"
    program.write_text(
        '#!/bin/sh\nstore=$3\nfree=yes; flock -n "$store/index.lock" true 2>/dev/null || free=no\n'
        'shift 2; echo "${0##*/} $free $*" | sed "s,$store,S," >>"$0.calls"\n'
    )
    program.chmod(0o755)
    return program


def test_each_store_has_two_runs_and_no_indexer_works_beside_a_recording(tmp_path: Path) -> None:
    become_subreaper()
    root = tmp_path / "work"
    (root / "tree").mkdir(parents=True)
    (root / "tree" / "f").write_text("line of file 19999\n")
    program = _program(tmp_path)
    rows = measure("grep", root, 1, str(program))
    assert [list(row) for row in rows] == [FIELDS] * 5
    assert {(row["mode"], row["run"]) for row in rows} == {
        (NATIVE, FIRST),
        *((mode, run) for mode in (OFF, LAZY) for run in (FIRST, AGAIN)),
    }
    calls = (tmp_path / "backstory.calls").read_text().splitlines()
    assert len(calls) == 12
    for recording, indexing in zip(calls[::2], calls[1::2], strict=True):
        assert recording.startswith("backstory no S --contents")
        assert indexing == "backstory yes S --wait"
    assert not list(tmp_path.glob("store-*"))


def test_the_rate_counts_the_operations_of_a_file() -> None:
    rows: list[dict[str, object]] = []
    for mode, run in ((NATIVE, FIRST), (OFF, FIRST), (OFF, AGAIN), (LAZY, FIRST), (LAZY, AGAIN)):
        for number, index in enumerate((0.1, 0.2, 0.4)):
            rows.append(dict(zip(FIELDS, ["grep", mode, run, number, "0.05", str(index)], strict=True)))
    native, first = summary(rows)[2:4]
    assert native == "| `grep -r` | native | 0.050 (0.050 to 0.050) |  |  |  |"
    rate = f"{FILES * LOOKS['grep'].operations / 0.2:,.0f}"
    assert first.endswith(f"| 0.200 (0.100 to 0.400) | 10.0 (5.0 to 20.0) | {rate} |")


def test_an_unknown_workload_is_refused() -> None:
    class Arguments:
        workloads = "grep,none"

    with pytest.raises(SystemExit, match="none is none of"):
        indexing_time.main_indexing(Arguments())  # type: ignore[arg-type]
