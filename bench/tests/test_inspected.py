"""Postmark's text files, the places they are measured in, and the tables of their inspection."""

import subprocess
from pathlib import Path

import pytest

from backstory_bench import inspected
from backstory_bench.cli import _parser
from backstory_bench.inspected import COLUMNS, FIELDS, Work, measure, places_of_round, sizes, summary
from backstory_bench.mounted import LIBFUSE, PAPER, Place, compiled
from backstory_bench.report import all_rows

REST = {"inspected_files": 4, "inspection_s": "2", "inspection_cpu_s": "0.1"}
"""The columns of an inspection."""


def test_a_share_of_the_files_is_text_and_each_phase_takes_the_files_of_the_one_before(tmp_path: Path) -> None:
    program, at = compiled(tmp_path), tmp_path / "files"
    at.mkdir()

    def postmark(phases: str) -> None:
        subprocess.run([program, at, "2", "3", "200", "100", "1000", "512", "25", phases], check=True)

    postmark("m")
    made = sizes(at)
    assert len(made) == 50
    assert len(list(at.glob("*/*"))) == 200
    postmark("t")
    changed = [path for path, size in sizes(at).items() if made.get(path, size) != size]
    assert changed
    assert all("x\n" in path.read_text() for path in changed if path.stat().st_size > 64)


def executable(path: Path) -> str:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def names(places: list[Place]) -> list[str]:
    return [place.name for place in places]


def test_a_mount_is_measured_beside_a_pass_through_one_and_record_is_not(tmp_path: Path) -> None:
    backstory = executable(tmp_path / "backstory")
    assert names(places_of_round(backstory, str(tmp_path), mounted=False)) == ["the directory", "record"]
    passthrough = executable(tmp_path / "passthrough_ll")
    found = places_of_round(backstory, str(tmp_path), mounted=True)
    assert names(found) == ["the directory", "passthrough_ll", "mount --contents=all"]
    assert [place.command[:2] for place in found] == [(), (passthrough, "-f"), (backstory, "mount")]
    assert [COLUMNS[name] for name in names(found)] == ["native_s", "passthrough_s", "recorded_s"]


def test_without_passthrough_ll_a_mount_is_not_measured_and_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY", executable(tmp_path / "backstory"))
    monkeypatch.setattr(inspected, "measure", lambda *_: pytest.fail("it was measured"))
    assert _parser().parse_args(["inspected", "--mounted"]).libfuse == LIBFUSE
    args = _parser().parse_args(["inspected", "--mounted", "--libfuse", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"passthrough_ll is not installed \(scripts/foreign-sources fuse3\)"):
        args.do(args)


def test_a_place_that_records_nothing_has_the_seconds_of_its_column_alone(tmp_path: Path) -> None:
    size = PAPER | {"threads": 2, "directories": 3, "files": 20, "transactions": 20, "mean": 1000}
    work = Work(str(tmp_path / "absent"), compiled(tmp_path), size, 25)
    found = measure([Place("the directory")], work, str(tmp_path))
    assert list(found) == ["native_s"]
    assert not list(tmp_path.glob("bench-inspected-*"))


@pytest.mark.parametrize("mounted", [False, True])
def test_results_with_and_without_a_mount_have_the_same_columns(
    mounted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "passthrough_ll")
    monkeypatch.setenv("BACKSTORY", executable(tmp_path / "backstory"))
    monkeypatch.setattr(inspected, "measure", lambda chosen, *_: {COLUMNS[name]: "1" for name in names(chosen)} | REST)
    out = tmp_path / "results.csv"
    words = ["--rounds", "1", "--text", "5", "--libfuse", str(tmp_path), "--out", str(out)]
    args = _parser().parse_args(["inspected", *words, *(["--mounted"] if mounted else [])])
    assert args.do(args) == 0
    (row,) = all_rows(out)
    assert list(row) == FIELDS
    assert (row["by"], row["passthrough_s"]) == (("mount", "1") if mounted else ("record", ""))


def test_the_table_tells_the_processor_time_of_each_inspection() -> None:
    row = {
        "by": "record",
        "text_percent": 5,
        "round": 0,
        "native_s": 1,
        "recorded_s": 2,
        "inspected_files": 4,
        "inspection_cpu_s": 0.1,
    }
    assert summary([row])[-1] == "| 5 % | 1.00 | 2.00 | 4 | 25.0 |"


def test_ratios_are_those_of_one_round_with_and_without_the_inspection_and_beside_the_papers() -> None:
    seconds = [("1", "2", "3"), ("2", "4", "8"), ("1", "5", "10")]
    of = ("native_s", "passthrough_s", "recorded_s")
    rows = [
        {"by": "mount", "text_percent": 25, "round": number, **dict(zip(of, each, strict=True)), **REST}
        for number, each in enumerate(seconds)
    ]
    assert summary(rows) == [
        "| text files | native (s) | passthrough_ll (s) | recorded (s) | inspected | processor time each (ms) |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
        "| 25 % | 1.00 | 4.00 | 8.00 | 4 | 25.0 |",
        "",
        "| text files | recorded / passthrough_ll | with inspection / passthrough_ll "
        "| recorded / native | with inspection / native |",
        "| ---: | ---: | ---: | ---: | ---: |",
        "| 25 % | 2.00 | 2.50 | 4.00 | 5.00 |",
        "| the paper's TxtFS, at first |  | 1.09 |  | 1.76 |",
        "| the paper's TxtFS, 25 % |  | 1.40 |  | 2.2 |",
    ]
