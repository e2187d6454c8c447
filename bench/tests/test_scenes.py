"""The reconstruction of scenes reads what backstory answers, and counts no failure as equal."""

import random
from pathlib import Path

import pytest

from backstory_bench.scenes import CASES
from backstory_bench.scenes.run import EQUAL, difference, summary
from backstory_bench.scenes.web import SIZES, make_files


def row(verdict: str, **more: object) -> dict[str, object]:
    return {"case": "nginx", "verdict": verdict, "calls": "20", "recorded_calls": "1000", "share": "0.02"} | more


def test_a_row_counts_its_verdicts_and_gives_the_first_difference() -> None:
    rows = [
        row("equal", tries="1", seconds="0.5", why=""),
        row("equal-but-volatile", tries="3", seconds="1.5", why="other output of a socket, byte 7"),
        row("different", tries="14", seconds="2.5", why="less output of a socket, byte 0"),
        {"case": "nginx", "verdict": "failed", "why": "no result"},
    ]
    line = summary(rows)[-1]
    assert line == "| nginx | 1000 | 20 (2.00 %) | 1 | 1 | 2 | 1 to 14 | less output of a socket, byte 0 |"


def test_a_case_that_could_not_be_recorded_has_a_row_with_its_reason() -> None:
    lines = summary([{"case": "sshd", "verdict": "failed", "why": "the server does not begin"}])
    assert lines[-1] == "| sshd | 0 | 0 (0.00 %) | 0 | 0 | 1 |  | the server does not begin |"


@pytest.mark.parametrize("verdict", ["different", "failed"])
def test_no_failure_counts_as_equal(verdict: str) -> None:
    assert verdict not in EQUAL


def test_the_first_difference_is_named_with_its_place() -> None:
    found = {
        "stopped": None,
        "not_started": [],
        "processes": [
            {"difference": None},
            {"difference": {"kind": "other output", "object": "the socket to 127.0.0.1:9", "position": 7}},
        ],
    }
    assert difference({"reconstruction": found}) == "other output of the socket to 127.0.0.1:9, byte 7"
    assert difference({"reconstruction": found | {"stopped": "no process made a call"}}) == "no process made a call"


def test_the_files_of_a_server_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert len(make_files(tmp_path / name)) == len(SIZES) + 1
    for path in (tmp_path / "a/files").iterdir():
        assert path.read_bytes() == (tmp_path / "b/files" / path.name).read_bytes()


def test_each_client_views_a_page_that_its_server_has(tmp_path: Path) -> None:
    for scene in CASES.values():
        if scene.is_client and scene.name != "git":
            path = scene.prepare(tmp_path, random.Random(1))  # type: ignore[attr-defined]
            assert (tmp_path / "files" / path).exists()
