"""The command `naming`: its clone, and its tables."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from backstory_bench import naming
from backstory_bench.naming import FIELDS, LAZY, NAMED, OFF, PARTS, clone, parts, text, whole


def test_all_files_of_the_clone_are_committed_different_and_of_one_size(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("SKIPPED: git is not installed")
    work = clone(tmp_path, 230, 1000)
    git = ["git", "-C", str(work)]
    assert not subprocess.run([*git, "status", "--porcelain"], capture_output=True, check=True).stdout
    files = [path for path in work.glob("src/*/*") if path.is_file()]
    contents = {path.read_bytes() for path in files}
    assert (len(files), len(contents)) == (230, 230)
    assert {len(content) for content in contents} == {1000}
    assert len({path.parent for path in files}) == 3


def test_the_text_compresses_as_sources_do() -> None:
    made = text(200_000, 1)
    assert len(made) == 200_000
    assert 2 < len(made) / len(zlib.compress(made)) < 6


def row(what: str, number: int, wall: float, cpu: float, stored: object = "") -> dict[str, object]:
    return dict(zip(FIELDS, [1000, what, number, 2000, wall, cpu, stored], strict=True))


def test_naming_a_content_is_the_sum_of_its_parts_in_each_round_without_the_note() -> None:
    costs = dict.fromkeys(PARTS, 100.0) | {"look-up": 1.0, "both-sums": 2.0, "blob": 3.0}
    rows = [row(part, number, 50.0, cost * (number + 1)) for part, cost in costs.items() for number in range(3)]
    lines = parts(rows)
    assert set(NAMED) < set(PARTS)
    assert "| **name it**: look-up, both sums, blob | 12.0 (6.0 to 18.0) |" in lines
    assert "| **store it** | 200.0 (100.0 to 300.0) |" in lines
    assert "| wall time: note of the place | 50.0 (50.0 to 50.0) |" in lines


def test_the_bytes_of_the_store_are_those_of_one_file() -> None:
    rows = [row(mode, 0, 9.0, cpu, stored) for mode, cpu, stored in ((OFF, 5.0, 0), (LAZY, 30.0, 900_000))]
    assert whole(rows)[2:] == ["| 2,000 of 1,000 bytes | 5.0 (5.0 to 5.0) | 30.0 (30.0 to 30.0) | 450 |"]


def test_a_row_of_the_program_becomes_a_row_of_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{"part": "zstd", "round": "0", "files": "3", "wall_us": "1", "cpu_us": "2"}]
    monkeypatch.setattr(naming, "clone", lambda *_: tmp_path)
    monkeypatch.setattr(naming.content_costs, "measured", lambda *_: found)
    monkeypatch.setattr(naming, "indexed", lambda *_: {"files": 3, "wall_us": 1, "cpu_us": 2, "store_bytes": 4})
    rows = naming.measure(tmp_path, 3, 1000, 1, "backstory", tmp_path / "costs")
    assert {str(of["what"]) for of in rows} == {"zstd", OFF, LAZY}
    assert all(set(of) == set(FIELDS) for of in rows)
