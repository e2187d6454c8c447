"""A run is in the lake once or not at all, whatever happens to its shipments."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from conftest import PACKAGE, Machine, answer, command
from pyiceberg.catalog.sql import SqlCatalog
from test_query import BOTH_ENDS

from backstory_lake import batches, cli, shipping, tables, upkeep
from backstory_lake.errors import MisuseError
from backstory_lake.lake import Lake
from backstory_lake.privacy import Config
from backstory_lake.program import Program

TABLES = tuple(of.name for of in tables.TABLES)

#: Ships, and kills itself at the commit with this number, before or after it.
KILLED = """
import os, signal, sys
from backstory_lake import cli, lake
at, moment, *words = sys.argv[1:]
commit, count = lake.Lake.commit, 0
def killed(*given):
    global count
    count += 1
    if count == int(at) and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    commit(*given)
    if count == int(at):
        os.kill(os.getpid(), signal.SIGKILL)
lake.Lake.commit = killed
sys.exit(cli.main(words))
"""


def counts(machine: Machine) -> dict[str, int]:
    """The rows of the store's views."""
    return {of: machine.rows(f"SELECT count(*) n FROM {of}")[0]["n"] for of in TABLES}


def lake_counts(lake: Path) -> dict[str, int]:
    """The rows of the lake's views."""
    columns = ", ".join(f"(SELECT count(*) FROM {of})" for of in TABLES)
    return dict(zip(TABLES, answer(lake, f"SELECT {columns}")[0]))


def script(text: str, *words: str) -> subprocess.Popen[bytes]:
    """Starts a script of Python."""
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)}
    return subprocess.Popen([sys.executable, "-c", text, *words], env=environment)


def check_killed(machine: Machine, lake: Path, at: int, moment: str, commits: int) -> None:
    """Kills a shipment of one run at one of its commits, and then ships the run."""
    words = ("ship", "--store", str(machine.store), "--to", str(lake))
    killed = script(KILLED, str(at), moment, *words)
    assert killed.wait() == -9
    published = (at, moment) == (commits, "after")
    assert lake_counts(lake)["edges"] == (counts(machine)["edges"] if published else 0)
    done = machine.ship(lake)
    assert (len(done.sent), len(done.present)) == ((0, 1) if published else (1, 0))
    assert not done.cloned
    assert lake_counts(lake) == counts(machine)


@pytest.mark.parametrize(
    ("at", "moment"),
    [
        (7, "before"),
        *(pytest.param(at, "after", marks=pytest.mark.long) for at in range(1, 8)),
    ],
)
def test_a_killed_shipment_adds_nothing_or_all_and_the_next_one_completes_it(
    machine: Machine, lake: Path, at: int, moment: str
) -> None:
    machine.record("sort in > mid; mv mid out; true")
    check_killed(machine, lake, at, moment, commits=7)


@pytest.mark.long
@pytest.mark.parametrize("at", range(7, 10))
def test_a_killed_shipment_with_connections_adds_nothing_or_all(
    machine: Machine, lake: Path, at: int
) -> None:
    (machine.directory / "both.py").write_text(BOTH_ENDS)
    machine.record("sort in > mid; mv mid out; python3 both.py")
    # Each table gets rows, so that there are as many commits.
    assert all(counts(machine).values())
    check_killed(machine, lake, at, "after", commits=len(TABLES))


def test_a_run_that_several_machines_send_at_once_is_there_once(
    machine: Machine, lake: Path
) -> None:
    for name in "ab":
        machine.record(f"sort in > {name}")
    other = machine.store.with_name("other.store")
    shutil.copytree(machine.store, other)
    with ThreadPoolExecutor() as pool:
        words = [("ship", "--store", str(one), "--to", str(lake)) for one in (machine.store, other)]
        assert list(pool.map(lambda one: cli.main(one), words)) == [0, 0]
    assert lake_counts(lake) == counts(machine)
    done = machine.ship(lake)
    assert done.sent == [] and len(done.present) == 2


def test_a_directory_with_other_files_does_not_become_a_lake(lake: Path) -> None:
    (lake / "src").mkdir(parents=True)
    ended = command("ship", "--store", "none", "--to", str(lake))
    assert ended.returncode == 2 and "name a new or empty directory" in ended.stderr
    assert [entry.name for entry in lake.iterdir()] == ["src"]
    (lake / "src").rmdir()
    # The making of a lake was interrupted.
    (lake / "catalog.locks").touch()
    (lake / "lost+found").mkdir()
    Lake.open(str(lake), create=True)
    # A lake may have other files beside its own.
    (lake / "README").touch()
    Lake.open(str(lake), create=True)
    # A lake that lost its catalog does not begin anew.
    (lake / "catalog.sqlite").unlink()
    with pytest.raises(MisuseError, match=r"restore its catalog\.sqlite"):
        Lake.open(str(lake), create=True)


def test_a_lake_that_another_machine_makes_at_once_is_made_once(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Lake.open(str(lake), create=True)
    exists = SqlCatalog.namespace_exists
    looks: list[str] = []

    def looked_too_early(catalog: SqlCatalog, namespace: str) -> bool:
        looks.append(namespace)
        return len(looks) > 1 and exists(catalog, namespace)

    monkeypatch.setattr(SqlCatalog, "namespace_exists", looked_too_early)
    assert Lake.open(str(lake), create=True).identity == first.identity
    assert len(looks) > 1


def test_a_clone_gets_a_name_of_its_own_and_is_reported(machine: Machine, lake: Path) -> None:
    machine.record("sort in > a")
    machine.ship(lake)
    clone = Machine(machine.directory.with_name("clone"))
    shutil.copytree(machine.store, clone.store)
    machine.record("sort in > b")
    assert not machine.ship(lake).cloned
    (clone.directory / "in").write_text("c\n")
    clone.record("sort in > c")
    done = clone.ship(lake)
    assert done.cloned and len(done.namesakes) == 1
    hosts = answer(lake, "SELECT count(DISTINCT host), count(DISTINCT machine) FROM runs")
    assert hosts == [(1, 2)]
    assert not clone.ship(lake).cloned and not machine.ship(lake).cloned


def test_another_run_with_the_same_id_is_reported_and_not_mixed(
    machine: Machine, lake: Path
) -> None:
    run = machine.record("sort in > a")
    machine.ship(lake)
    before = lake_counts(lake)

    class Other(Program):
        def objects(self, sql: str) -> list[dict[str, Any]]:
            rows = super().objects(sql)
            return [row | {"boot": "another"} for row in rows] if " FROM runs" in sql else rows

    made = shipping.ship(Other(str(machine.store)), Lake.open(str(lake)), [], Config())
    assert (made.clashes, made.sent) == ([run], [])
    assert lake_counts(lake) == before


@pytest.mark.long
def test_a_clock_before_1970_changes_no_row(machine: Machine, lake: Path) -> None:
    machine.record("sort in > a")

    class OldClock(Program):
        def objects(self, sql: str) -> list[dict[str, Any]]:
            rows = super().objects(sql)
            return [row | {"started_ns": -1} for row in rows] if " FROM runs" in sql else rows

    shipping.ship(OldClock(str(machine.store)), Lake.open(str(lake), True), [], Config())
    assert lake_counts(lake) == counts(machine)
    started = answer(lake, "SELECT started::VARCHAR FROM runs")
    assert started == [("1969-12-31 23:59:59.999999",)]


def test_the_partitions_are_days_and_buckets_of_machines(machine: Machine, lake: Path) -> None:
    machine.record("sort in > a")
    machine.ship(lake)
    row = batches.run_rows(Program(str(machine.store)))[0]
    run = batches.ShippedRun(row, 0)
    folder = lake / "backstory" / "edges" / "data" / f"day={run.day}" / f"bucket={run.bucket}"
    assert len(list(folder.glob("*.parquet"))) == 1


def check_order(lake: Path) -> None:
    """Compares the rows of each data file, and the order that it states, with its table's order."""
    for of in tables.TABLES:
        for path in (lake / "backstory" / of.name / "data").rglob("*.parquet"):
            file = pq.ParquetFile(path)
            keys = file.read(columns=list(of.sorted_by))
            in_order = keys.sort_by([(name, "ascending") for name in of.sorted_by])
            assert keys.equals(in_order), path
            for number in range(file.num_row_groups):
                stated = file.metadata.row_group(number).sorting_columns
                names = [file.schema.names[one.column_index] for one in stated]
                assert names == list(of.sorted_by), path
                assert not any(one.descending or one.nulls_first for one in stated), path


def test_rows_are_sorted_by_identity_and_digest_also_after_compact(
    machine: Machine, lake: Path
) -> None:
    assert tables.FILES.sorted_by[:4] == ("device", "inode", "modified_ns", "digest")
    for name in "ba":
        # Later files have lesser names, and a file is read again after younger ones.
        line = f"cat in > z{name}; cat z{name} in > y{name}; sort -r in > x{name}; cat z{name} in"
        machine.ship(lake, machine.record(line))
    check_order(lake)
    done = upkeep.compact(Lake.open(str(lake)))
    assert done.after < done.before
    check_order(lake)


def check_bloom_filters(lake: Path) -> None:
    """Each data file of `files` has them for digests and paths."""
    for file in (lake / "backstory" / "files" / "data").rglob("*.parquet"):
        sql = f"SELECT path_in_schema, bloom_filter_offset FROM parquet_metadata('{file}')"
        assert {name for name, at in duckdb.sql(sql).fetchall() if at} == {"digest", "path"}


def test_digests_and_paths_have_bloom_filters(machine: Machine, lake: Path) -> None:
    for name in "ab":
        machine.ship(lake, machine.record(f"sort in > {name}"))
    check_bloom_filters(lake)
    done = upkeep.compact(Lake.open(str(lake)))
    assert done.after < done.before
    check_bloom_filters(lake)
    assert tables.RUNS.bloom == ("run",)


def test_a_lake_of_a_future_form_is_refused(machine: Machine, lake: Path) -> None:
    machine.record("true")
    machine.ship(lake)
    with Lake.open(str(lake)).table(shipping.RUNS).transaction() as transaction:
        transaction.set_properties({"backstory.format": "2"})
    for words in (
        ["query", "--lake", str(lake), "SELECT 1"],
        ["ship", "--store", str(machine.store), "--to", str(lake)],
    ):
        ended = command(*words)
        assert ended.returncode == 1
        assert "has form 2" in ended.stderr and "install a newer" in ended.stderr


@pytest.mark.long
def test_ship_prints_what_it_did(machine: Machine, lake: Path) -> None:
    run = machine.record("true")
    ended = command("ship", "--store", str(machine.store), "--to", str(lake), "--json", run)
    assert json.loads(ended.stdout)["sent"] == [run]
    ended = command("ship", "--store", str(machine.store), "--to", str(lake), "zzzzzzzz")
    assert ended.returncode == 2 and "no run" in ended.stderr
