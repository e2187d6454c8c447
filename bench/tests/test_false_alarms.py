"""The command `hunt`: what counts as a run with a finding, and which runs are recorded."""

import argparse
from collections import Counter
from pathlib import Path

import pytest

from backstory_bench import false_alarms
from backstory_bench.matrix.journal import Unusable
from backstory_bench.workloads import EVERY, ORDINARY, Instance
from backstory_bench.workloads.ordinary import kind

RULES = [{"rule": "storm", "level": "high"}, {"rule": "quiet", "level": "low"}]
NAMES = {"r1": "build", "r2": "build", "r3": "tar", "r4": "tar"}


def _given(tmp_path: Path, **options: object) -> argparse.Namespace:
    usual: dict[str, object] = {
        "dir": tmp_path / "top", "results": None, "out": None, "runs": 0, "workloads": "paper", "backstory": "backstory"
    }  # fmt: skip
    return argparse.Namespace(**usual | options)


def test_a_run_counts_once_for_a_rule_however_often_it_matches() -> None:
    findings = [{"rule": "storm", "run": run} for run in ("r1", "r1", "r2", "r3")]
    rows = false_alarms.counted(RULES, findings, NAMES)
    assert [tuple(row.values()) for row in rows] == [
        ("storm", "high", "other", "build", 2, 2, 3),
        ("storm", "high", "other", "tar", 2, 1, 1),
        ("quiet", "low", "other", "build", 2, 0, 0),
        ("quiet", "low", "other", "tar", 2, 0, 0),
    ]
    assert false_alarms.table(rows)[2:] == [
        "| storm | high | 3 | 75.0 % | 4 | build (2), tar (1) |",
        "| quiet | low | 0 | 0.0 % | 0 |  |",
    ]


def test_a_row_names_few_workloads_and_counts_the_others() -> None:
    names = {f"r{i}": f"w{i}" for i in range(6)}
    rows = false_alarms.counted(RULES[:1], [{"rule": "storm", "run": run} for run in names], names)
    assert false_alarms.table(rows)[2].endswith("| w0 (1), w1 (1), w2 (1), 3 more |")


def test_the_kinds_of_all_runs_are_counted_once() -> None:
    names = {f"r{i}": "Test-suites-pytest" for i in range(3)} | {"r3": "Builds-cmake"}
    rows = false_alarms.counted(RULES, [], names)
    assert false_alarms.by_kind(rows) == "4 runs of 2 workloads: build 1 (25 %), suite 3 (75 %)"


def test_the_table_can_be_made_from_the_csv_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = false_alarms.counted(RULES, [{"rule": "storm", "run": "r1"}], NAMES)
    monkeypatch.setattr(false_alarms, "_measured", lambda _: rows)
    out = tmp_path / "hunt.csv"
    assert false_alarms.main_false_alarms(_given(tmp_path, out=str(out))) == 0
    printed = capsys.readouterr().out
    assert false_alarms.main_false_alarms(_given(tmp_path, dir=None, results=str(out))) == 0
    assert capsys.readouterr().out == printed
    out.write_text("rule,level\n")
    with pytest.raises(Unusable, match="lacks kind, workload"):
        false_alarms.main_false_alarms(_given(tmp_path, results=str(out)))


def test_the_name_of_a_workload_is_the_name_of_a_run() -> None:
    names = [false_alarms.name_of(instance) for instance in EVERY.values()]
    assert not any(" " in name or "/" in name for name in names)
    assert len(set(names)) == len(EVERY)


def test_more_than_half_of_the_ordinary_workloads_are_builds_suites_and_installs() -> None:
    kinds = [kind(instance) for instance in ORDINARY.values()]
    assert set(kinds) == {"build", "suite", "install", "tool"}
    assert 2 * sum(one != "tool" for one in kinds) > len(kinds)


def test_the_page_has_the_number_of_workloads_of_each_kind() -> None:
    page = (Path(__file__).parents[2] / "docs/howto/hunt.md").read_text()
    kinds = Counter(kind(instance) for instance in ORDINARY.values())
    missing = [name for name, number in kinds.items() if f"| {name} | {number} |" not in page]
    assert not missing


PROGRAM = """#!/bin/sh
# Stands for the program: a store with the name of each recorded run.
store=$2
case $3 in
    log) printf '['; sed 's/.*/{"run": "&", "name": "&"}/' "$store" | paste -sd, | tr -d '\\n'; echo ']' ;;
    record) echo "$8" >>"$store"; while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
    rm) shift 3; for run; do sed -i "/^$run$/d" "$store"; done ;;
esac
"""


def test_a_workload_that_fails_leaves_the_store_and_the_others_make_up_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    good = Instance("g", "good", "what", "echo done >>../done")
    bad = Instance("g", "bad", "what", "test ! -e ../bad && touch ../bad")
    false_alarms.record(str(program), tmp_path, [bad, good], 5)
    # The runs of the other one are gone, also the one that did not fail.
    assert (tmp_path / "store").read_text().count("g-good-") == 5
    assert "bad" not in (tmp_path / "store").read_text()
    assert (tmp_path / "done").read_text().count("done\n") == 5
    assert "left out: g/bad" in capsys.readouterr().err
    false_alarms.record(str(program), tmp_path, [good], 7)
    assert (tmp_path / "done").read_text().count("done\n") == 7
