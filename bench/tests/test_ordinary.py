"""Ordinary work for the command `hunt`: each workload can be done again and again."""

import subprocess
from pathlib import Path

import pytest

from backstory_bench.workloads import INSTANCES, ORDINARY, ordinary, select

# Their caches are cold, and take most of a minute.
COLD = {"Builds/go", "Test suites/go-test"}


@pytest.mark.parametrize("key", [instance.key for instance in ordinary.INSTANCES if instance.key not in COLD])
def test_ordinary_work_ends_well_also_the_second_time_and_leaves_its_results(key: str, tmp_path: Path) -> None:
    instance = ORDINARY[key]
    if reason := instance.lacking():
        pytest.skip(f"SKIPPED: {reason}")
    instance.prepare(tmp_path)
    for _ in range(2):
        instance.reset(tmp_path)
        done = subprocess.run(instance.command(1), cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
    missing = [name for name in instance.clean if not list(tmp_path.glob(name))]
    assert not missing


def test_ordinary_work_has_builds_suites_and_installs_of_many_tools() -> None:
    names = {instance.key for instance in ordinary.INSTANCES}
    assert names >= {"Builds/make-install", "Builds/cmake", "Builds/cargo", "Builds/go"}
    assert names >= {"Test suites/pytest", "Test suites/shell", "Package installs/pip", "Package installs/npm"}


def test_a_name_of_the_matrix_selects_no_other_ordinary_work() -> None:
    assert all(instance.key in INSTANCES for instance in select(["gzip", "node"]))
    assert [instance.key for instance in select(["Tools/gzip", "pytest"])] == ["Tools/gzip", "Test suites/pytest"]
