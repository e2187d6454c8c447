"""A damaged or hostile lake is a clear error for each command: nothing is lost or invented."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Machine, answer, command
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile

from backstory_lake import shipping
from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_lake.privacy import Config
from backstory_lake.program import Program
from backstory_lake.tables import FILES

HOUR = 3_600_000_000_000


def content_of(lake: Path) -> dict[str, bytes]:
    """The bytes of all files."""
    return {str(file): file.read_bytes() for file in lake.rglob("*") if file.is_file()}


def data_file(lake: Path, table: str) -> Path:
    """A data file of a table."""
    return next((lake / "backstory" / table / "data").rglob("*.parquet"))


def cut(lake: Path) -> None:
    """The end of a data file is missing."""
    file = data_file(lake, "files")
    file.write_bytes(file.read_bytes()[:-9])


def gone(lake: Path) -> None:
    """A data file is missing."""
    data_file(lake, "files").unlink()


def hostile(lake: Path) -> None:
    """The length is as it was, and the metadata of the columns is no Thrift."""
    content = data_file(lake, "files").read_bytes()
    changed = content[:200] + b"\xff" * (len(content) - 208) + content[-8:]
    data_file(lake, "files").write_bytes(changed)


def fewer_rows(lake: Path) -> None:
    """Another valid file lies in the place of a data file."""
    file = data_file(lake, "files")
    pq.write_table(pq.read_table(file).slice(1), file)


def some_bytes(lake: Path) -> None:
    """The length is as it was, and some bytes in a column are not."""
    file = max((lake / "backstory" / "edges" / "data").rglob("*.parquet"), key=size)
    column = pq.ParquetFile(file).metadata.row_group(0).column(2)
    assert column.path_in_schema == "shipment"
    content = bytearray(file.read_bytes())
    start = column.data_page_offset + column.total_compressed_size // 2
    content[start : start + 4] = bytes(byte ^ 255 for byte in content[start : start + 4])
    file.write_bytes(content)


def size(file: Path) -> int:
    """The number of its bytes."""
    return file.stat().st_size


def runs_cut(lake: Path) -> None:
    """The file with the runs lost its end."""
    file = data_file(lake, "runs")
    file.write_bytes(file.read_bytes()[:-9])


def no_manifest(lake: Path) -> None:
    """A manifest is no Avro."""
    next((lake / "backstory" / "files" / "metadata").glob("*-m0.avro")).write_bytes(b"no avro")


def no_metadata(lake: Path) -> None:
    """The metadata of a table is no JSON."""
    for file in (lake / "backstory" / "files" / "metadata").glob("*.json"):
        file.write_bytes(b"{")


def no_catalog(lake: Path) -> None:
    """The catalog is no database."""
    (lake / "catalog.sqlite").write_bytes(b"no database" * 1000)


QUICK = [cut, some_bytes]
LONG = [gone, hostile, fewer_rows, runs_cut, no_manifest, no_metadata, no_catalog]


@pytest.mark.parametrize(
    "damage",
    [*QUICK, *(pytest.param(one, marks=pytest.mark.long) for one in LONG)],
)
def test_no_command_changes_a_damaged_lake(
    machine: Machine, lake: Path, damage: Callable[[Path], None]
) -> None:
    run = machine.record("sort in > out")
    machine.ship(lake)
    damage(lake)
    before = content_of(lake)
    commands = [
        ("query", "--lake", str(lake), "SELECT path FROM files JOIN runs USING (run)"),
        ("compact", "--lake", str(lake)),
        ("forget", "--lake", str(lake), run),
    ]
    for words in commands:
        # One file is not joined with others: only a question needs it.
        if words[0] == "compact" and damage is runs_cut:
            continue
        ended = command(*words)
        assert ended.returncode == 1, words
        assert len(ended.stderr.splitlines()) == 1 and "restore" in ended.stderr, ended.stderr
        if damage in QUICK:
            assert ".parquet" in ended.stderr, ended.stderr
        lost = {name for name, content in before.items() if content_of(lake).get(name) != content}
        assert not {name for name in lost if name.endswith(".parquet")}, (words, lost)


def test_check_names_each_data_file_that_changed(machine: Machine, lake: Path) -> None:
    machine.record("sort in > out")
    machine.ship(lake)
    sound = command("check", "--lake", str(lake))
    assert sound.returncode == 0 and ", 0 are not" in sound.stdout, sound.stdout
    edges = "SELECT count(*) FROM edges"
    asked = answer(lake, edges)
    # The question above compared the file already.
    some_bytes(lake)
    named = data_file(lake, "edges").name
    with pytest.raises(LakeError, match=named):
        answer(lake, edges)
    ended = command("check", "--lake", str(lake))
    assert ended.returncode == 1 and ", 1 is not" in ended.stdout, ended.stdout
    assert named in ended.stderr and len(ended.stderr.splitlines()) == 1, ended.stderr
    assert asked[0][0] > 0
    # The metadata of a table are damaged: the others are still checked.
    no_manifest(lake)
    ended = command("check", "--lake", str(lake))
    assert ended.returncode == 1 and "not checked: 1" in ended.stdout, ended.stdout
    assert named in ended.stderr and len(ended.stderr.splitlines()) == 2, ended.stderr


def test_check_compares_size_and_rows_of_a_file_without_a_digest(
    machine: Machine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.record("sort in > out")
    with monkeypatch.context() as patch:
        patch.setattr("backstory_lake.data_files.named_by", lambda _: f"{uuid.uuid4()}.parquet")
        machine.ship(lake)
    ended = command("check", "--lake", str(lake))
    assert ended.returncode == 0 and "have no digest" in ended.stdout, ended.stdout
    fewer_rows(lake)
    ended = command("check", "--lake", str(lake))
    assert ended.returncode == 1 and "bytes instead of" in ended.stderr, ended.stderr
    # Another valid file can have the same size.
    file = data_file(lake, "files")
    known = DataFile.file_size_in_bytes.fget
    monkeypatch.setattr(
        DataFile,
        "file_size_in_bytes",
        property(lambda one: size(file) if file.name in one.file_path else known(one)),
    )
    ended = command("check", "--lake", str(lake))
    assert ended.returncode == 1 and "rows instead of" in ended.stderr, ended.stderr
    assert file.name in ended.stderr and len(ended.stderr.splitlines()) == 1, ended.stderr


@pytest.mark.long
def test_a_shipment_into_a_lake_with_damaged_runs_fails_and_is_sent_later(
    machine: Machine, lake: Path
) -> None:
    machine.record("sort in > out")
    machine.ship(lake)
    file = data_file(lake, "runs")
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    machine.record("sort in > out2")
    ended = command("ship", "--store", str(machine.store), "--to", str(lake))
    assert ended.returncode == 1 and "restore" in ended.stderr, ended.stderr
    file.write_bytes(content)
    assert len(machine.ship(lake).sent) == 1


def test_a_file_outside_of_the_lake_is_neither_read_nor_removed(
    machine: Machine, lake: Path, tmp_path: Path
) -> None:
    run = machine.record("sort in > out")
    machine.ship(lake)
    outside = tmp_path / "diary.parquet"
    inside = data_file(lake, "files")
    outside.write_bytes(inside.read_bytes())
    opened = Lake.open(str(lake))
    table = opened.table(FILES)
    named = parquet_file_to_data_file(table.io, table.metadata, outside.as_uri())
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
        snapshot.append_data_file(named)
    for words in (
        ["query", "--lake", str(lake), "SELECT path FROM files"],
        ["compact", "--lake", str(lake)],
        ["forget", "--lake", str(lake), run],
    ):
        ended = command(*words)
        assert ended.returncode == 1 and "outside of it" in ended.stderr, ended.stderr
        assert outside.exists()


class Twin(Program):
    """The program on a machine whose file `in` has the identity of a file of another machine."""

    def __init__(self, machine: Machine, identity: dict[str, Any]) -> None:
        super().__init__(str(machine.store))
        self._identity = identity

    def table(self, sql: str, schema: pa.Schema) -> pa.Table:
        rows = super().table(sql, schema)
        if " FROM files " not in sql:
            return rows
        changed = [
            row | self._identity if (row["path"] or "").endswith("/in") else row
            for row in rows.to_pylist()
        ]
        return pa.Table.from_pylist(changed, rows.schema)


def test_hosts_with_one_name_and_one_boot_id_are_kept_apart(machine: Machine, lake: Path) -> None:
    maker = machine.record("sort in > out")
    machine.ship(lake)
    columns = "device, inode, size, modified_ns, changed_ns, born_ns"
    made = machine.rows(f"SELECT {columns} FROM files WHERE path LIKE '%/out' AND last")[0]
    twin = Machine(machine.directory.with_name("twin"))
    (twin.directory / "in").write_text("c\nd\n")
    reader = twin.record("cat in > copy")
    program = Twin(twin, made)
    done = shipping.ship(program, Lake.open(str(lake)), [], Config(), forget=True)
    assert len(done.namesakes) == 1 and not done.clashes
    # A store erases no run that another machine sent.
    assert done.erased == []
    facts = "count(DISTINCT host), count(DISTINCT boot), count(DISTINCT machine)"
    assert answer(lake, f"SELECT {facts} FROM runs") == [(1, 1, 2)]
    assert {run for (run,) in answer(lake, "SELECT run FROM runs")} == {maker, reader}
    # The twin's file has the same identity, and other bytes: no link joins the machines.
    sql = f"""SELECT count(*) FROM lineage(
      (SELECT list(file) FROM files WHERE run = '{reader}' AND path LIKE '%/copy'), 'back', NULL)
      JOIN files ON file = from_file WHERE run = '{maker}'"""
    assert answer(lake, sql) == [(0,)]


def test_a_run_of_1970_keeps_its_lineage_and_expires_alone(machine: Machine, lake: Path) -> None:
    machine.record("sort in > out")
    machine.ship(lake)
    old = Machine(machine.directory.with_name("old"))
    (old.directory / "in").write_text("x\n")
    run = old.record("sort in > out")
    began = old.rows("SELECT started_ns FROM runs")[0]["started_ns"]

    class Clock1970(Program):
        def objects(self, sql: str) -> list[dict[str, Any]]:
            rows = super().objects(sql)
            return [row | {"started_ns": HOUR} for row in rows] if " FROM runs" in sql else rows

    assert began > HOUR
    shipping.ship(Clock1970(str(old.store)), Lake.open(str(lake)), [], Config())
    assert answer(lake, f"SELECT started::VARCHAR FROM runs WHERE run = '{run}'") == [
        ("1970-01-01 01:00:00",)
    ]
    links = old.rows("SELECT count(*) n FROM edges")[0]["n"]
    assert answer(lake, f"SELECT count(*) FROM edges WHERE run = '{run}'") == [(links,)]
    right = lake.with_name("right")
    old.ship(right)
    lineage = f"""SELECT flow, how, certainty, count(*) FROM lineage(
      (SELECT list(file) FROM files WHERE run = '{run}' AND path LIKE '%/out'), 'back', NULL)
      GROUP BY ALL ORDER BY ALL"""
    assert answer(lake, lineage) == answer(right, lineage) != []
    ended = command("expire", "--lake", str(lake), "--before", "1971-01-01")
    assert ended.returncode == 0 and ended.stdout.endswith(": 1\n"), ended
    assert len(answer(lake, "SELECT run FROM runs")) == 1


def test_opening_a_lake_leaves_the_locks_of_this_process(machine: Machine, lake: Path) -> None:
    machine.ship(lake)
    catalog = lake / "catalog.sqlite"
    other = f"import sqlite3; sqlite3.connect({str(catalog)!r}, 0).execute('BEGIN IMMEDIATE')"
    with closing(sqlite3.connect(catalog)) as committing:
        committing.execute("BEGIN IMMEDIATE")
        Lake.open(str(lake))
        ended = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True)
    assert "database is locked" in ended.stderr


def test_a_lake_without_locks_is_not_begun(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", refused)
    with pytest.raises(LakeError, match="without locks"):
        Lake.open(str(lake), create=True)
    with pytest.raises(LakeError, match="is no lake"):
        Lake.open(str(lake))
