"""A measurement counts the descendants that outlive the command, and names what it measured."""

import os
import sys
from pathlib import Path

import pytest

from backstory_bench import report
from backstory_bench.measure import become_subreaper, run
from backstory_bench.promises import PROMISED, SUITES, WORKLOADS, lacking


def test_processor_time_of_background_processes_is_counted_and_not_their_wall_time(tmp_path: Path) -> None:
    become_subreaper()
    burn = "import time\nend=time.process_time()+0.5\nwhile time.process_time()<end: pass"
    cost = run(["sh", "-c", f"{sys.executable} -c '{burn}' & exit 3"], tmp_path, os.environ)
    assert cost.status == 3
    assert cost.cpu >= 0.5
    assert cost.background >= 0.3
    assert cost.wall < cost.background


def test_a_table_of_rounds_names_the_machine_and_the_versions_of_the_measured_programs(tmp_path: Path) -> None:
    table, programs = tmp_path / "rounds.csv", ["backstory: backstory 0.1.0, commit 1", "fsatrace: commit 2"]
    with report.new_table(table, report.FIELDS, tmp_path, programs):
        pass
    machine = report.load(table).machine
    assert machine.endswith(f"workdir={tmp_path}; backstory: backstory 0.1.0, commit 1; fsatrace: commit 2")


def table_of(*rounds: tuple[str, str]) -> str:
    """Returns the table of one pair of rounds for each workload and collector."""
    pairs: dict[str, dict[str, report.Pairs]] = {}
    for workload, collector in rounds:
        pairs.setdefault(workload, {})[collector] = [(1.0, 1.0)]
    return report.markdown(report.Results("m", pairs, pairs, {}))


def test_the_goal_of_the_mean_is_that_of_stored_contents_where_a_column_stores_them() -> None:
    plain = [(workload, "backstory") for workload in ("find", "grep")]
    stored = [(workload, "backstory-lazy") for workload in ("find", "grep")]
    assert table_of(*plain).endswith("| 1.10 / 1.06 |")
    assert table_of(*plain, *stored).endswith("| 1.10 / 1.06; with contents 1.11 / 1.08 |")


def test_a_missing_bound_of_a_workload_is_shown_as_missing() -> None:
    rows = table_of(("go-build", "backstory"), ("busybox-script", "backstory"), ("call-read", "backstory")).splitlines()
    assert [row.rsplit("|", 2)[1].strip() for row in rows[-3:]] == ["1.10 / –", "1.10 / 1.20", ""]


def test_the_workload_dlopen_loads_its_library_and_is_in_no_promise(tmp_path: Path) -> None:
    if reason := lacking("dlopen"):
        pytest.skip(f"SKIPPED: {reason}")
    workload = WORKLOADS["dlopen"]
    assert "dlopen" not in PROMISED and [name for name, names in SUITES.items() if "dlopen" in names] == ["all"]
    become_subreaper()
    workload.prepare(tmp_path)
    assert workload.check(tmp_path, run(workload.command(tmp_path), tmp_path, os.environ)) is None
