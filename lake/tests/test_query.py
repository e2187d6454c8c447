"""`query --lake` has the views of `backstory query`, and is bounded and read only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIMITS, PACKAGE, Machine, answer, command
from pyiceberg.types import StringType

from backstory_lake import history, lineage, upkeep, views
from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_lake.program import Program
from backstory_lake.questions import Question
from backstory_lake.tables import FILES, TABLES

#: A program that has both ends of a connection.
BOTH_ENDS = """import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
client.sendall(b'x')
server.accept()[0].recv(1)
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machine, Path]:
    """A machine with three runs, and a lake that has them."""
    directory = tmp_path_factory.mktemp("shipped")
    machine = Machine(directory / "work")
    (machine.directory / "in").write_text("b\na\n")
    machine.record(
        "sort in > mid; head -1 mid > out; mv mid 'a,\"b\"\nc'; cat *c > $(printf 'x\\377')"
    )
    machine.record("cat out | tr a b > last; (exit 3); true")
    (machine.directory / "both.py").write_text(BOTH_ENDS)
    machine.record("python3 both.py; python3 both.py")
    lake = directory / "lake"
    machine.ship(lake)
    return machine, lake


def test_the_views_have_the_columns_of_the_program_in_its_order() -> None:
    schema = Program(None).schema()
    # Inspectors are asked where the contents are.
    schema = {name: columns for name, columns in schema.items() if name not in ("facts", "changes")}
    assert set(schema) == set(views.VIEWS) == {table.name for table in TABLES}
    for name, columns in schema.items():
        shown = [one if isinstance(one, str) else one[0] for one in views.VIEWS[name]]
        shared = [column for column in shown if column in columns]
        assert shared == [column for column in columns if column in shown], name
        # Only the lake's own columns are not the program's.
        own = {"machine", "owner", "sensitivity", "format", "shipped", "host", "path_bytes"}
        assert set(columns) <= set(shown) <= set(columns) | own, name


def test_each_column_that_the_schema_lists_has_its_meaning(shipped: tuple[Machine, Path]) -> None:
    ended = command("query", "--lake", str(shipped[1]), "--schema", "--json")
    listed = [one for one in json.loads(ended.stdout) if one["table"] in views.VIEWS]
    assert {one["table"] for one in listed} == set(views.VIEWS)
    assert [one for one in listed if not one["about"]] == []
    about = {(one["table"], one["column"]): one["about"] for one in listed}
    assert about["files", "file"] == "key, unique in the lake"
    assert about["runs", "machine"].startswith("the store that sent the run")


def test_a_program_that_cannot_be_executed_only_costs_the_schema_its_meanings(
    shipped: tuple[Machine, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_PROGRAM", str(shipped[1] / "missing"))
    ended = command("query", "--lake", str(shipped[1]), "--schema", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    about = {(one["table"], one["column"]): one["about"] for one in json.loads(ended.stdout)}
    assert about["files", "file"] == "key, unique in the lake"
    assert about["runs", "command"] == ""


def test_each_view_and_macro_of_lineage_is_made_for_a_question_that_names_it() -> None:
    for statement in [*lineage.STATEMENTS, history.MACRO]:
        name = statement.removeprefix("CREATE OR REPLACE ").split(" ")[1].split("(")[0]
        assert lineage.is_needed(f'SELECT * FROM "{name.upper()}"'), name
    assert not any(lineage.is_needed(f"SELECT * FROM {name}") for name in views.VIEWS)


def test_views_that_an_interrupted_question_began_are_made_again(
    shipped: tuple[Machine, Path],
) -> None:
    question = Question(Lake.open(str(shipped[1])), LIMITS)
    for statement in [*lineage.STATEMENTS, history.MACRO]:
        question.connection.execute(statement)
    with question.rows("SELECT count(*) FROM lake_same") as rows:
        assert len(rows.fetchall()) == 1


@pytest.mark.parametrize("name", sorted(views.VIEWS))
def test_a_view_has_the_rows_of_the_store(shipped: tuple[Machine, Path], name: str) -> None:
    machine, lake = shipped
    columns = [one for one in Program(None).schema()[name]]
    keys = {"process", "file", "reply", "parent", "previous", "origin"}
    # A key is the run's number << 32 | its place in the run: the number differs.
    listed = ", ".join(f"{one} & 4294967295 AS {one}" if one in keys else one for one in columns)
    sql = f"SELECT {listed} FROM {name}"
    expected = machine.rows(sql)
    ended = command("query", "--lake", str(lake), "--json", sql)
    found = json.loads(ended.stdout)

    def sorted_rows(rows: list[dict[str, object]]) -> list[str]:
        for row in rows:
            for column, value in row.items():
                if isinstance(value, str):
                    # Texts of a lake are UTF-8: other bytes are in `path_bytes`.
                    readable = value.encode(errors="surrogateescape").decode(errors="replace")
                    row[column] = readable
        return sorted(json.dumps(row) for row in rows)

    missing = set(sorted_rows(expected)) ^ set(sorted_rows(found))
    assert not missing, sorted(missing)[:4]
    assert len(expected) > 1


def test_the_bytes_of_a_name_that_is_not_utf8_are_there(shipped: tuple[Machine, Path]) -> None:
    rows = answer(shipped[1], "SELECT path_bytes FROM files WHERE path_bytes IS NOT NULL")
    assert rows and all(row[0].endswith(b"/x\xff") for row in rows)


def test_a_question_only_reads_and_only_the_lake(shipped: tuple[Machine, Path]) -> None:
    question = Question(Lake.open(str(shipped[1])), LIMITS)
    for sql, status, words in [
        ("DELETE FROM runs", 2, "only SELECT is allowed"),
        ("SELECT 1; SELECT 2", 2, "expected one SELECT"),
        ("COPY runs TO '/tmp/stolen.csv'", 2, "only SELECT is allowed"),
        ("SELECT * FROM read_text('/etc/passwd')", 2, "no files but the lake's"),
        ("SELECT * FROM nothing", 2, "nothing"),
        ("FROM lineage([1], 'sideways', NULL)", 2, "back or forth"),
    ]:
        with pytest.raises(LakeError) as raised, question.rows(sql) as rows:
            rows.fetchall()
        assert (raised.value.status, words in str(raised.value)) == (status, True), raised.value
        assert len(str(raised.value).splitlines()) == 1


def test_a_question_that_takes_too_long_or_too_much_ends(shipped: tuple[Machine, Path]) -> None:
    endless = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    large = "SELECT list(a.range ORDER BY hash(a.range)) FROM range(100000000) a"
    for limit, sql, words in [
        ("--timeout", endless, "no answer within 1 s"),
        ("--memory", large, "memory"),
    ]:
        number = "1" if limit == "--timeout" else "50"
        ended = command("query", "--lake", str(shipped[1]), limit, number, sql)
        assert ended.returncode == 1 and words in ended.stderr, ended.stderr


@pytest.mark.long
@pytest.mark.parametrize("before", [0, 100_000])
def test_a_value_that_takes_too_long_ends_the_program(
    shipped: tuple[Machine, Path], before: int
) -> None:
    # The value of the last row, which DuckDB does not interrupt. Many rows before it are fetched.
    slow = f"repeat('a', 20000 + range::INT) LIKE '{'%a' * 20}%b%' ESCAPE '$'"
    value = f"CASE WHEN range < {before} THEN repeat('x', 100) ELSE ({slow})::VARCHAR END"
    sql = f"SELECT {value} FROM range({before + 1})"
    words = [sys.executable, "-m", "backstory_lake.cli", "query", "--timeout", "1"]
    ended = subprocess.run(
        [*words, "--lake", str(shipped[1]), sql],
        env=os.environ | {"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1 and "no answer within 1 s" in ended.stderr, ended.stderr


def test_files_of_older_and_newer_writers_are_read_together(machine: Machine, lake: Path) -> None:
    machine.record("sort in > out")
    machine.ship(lake)
    with Lake.open(str(lake)).table(FILES).update_schema() as update:
        update.add_column("colour", StringType())
    machine.record("sort in > out2")
    machine.ship(lake)
    found = answer(lake, "SELECT count(DISTINCT run) FROM files")
    assert found == [(2,)]
    # Files that are written anew would lose the column.
    with pytest.raises(LakeError, match="does not know and would lose: colour"):
        upkeep.compact(Lake.open(str(lake)))


def test_no_lake_is_a_clear_error(tmp_path: Path) -> None:
    ended = command("query", "--lake", str(tmp_path), "SELECT 1")
    assert ended.returncode == 1 and "is no lake" in ended.stderr


def test_an_empty_lake_has_empty_views(tmp_path: Path) -> None:
    Lake.open(str(tmp_path / "lake"), create=True)
    with Question(Lake.open(str(tmp_path / "lake")), LIMITS).rows("FROM edges") as rows:
        assert rows.fetchall() == []
