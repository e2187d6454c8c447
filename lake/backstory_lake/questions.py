"""`query`: answers a question in the SQL of DuckDB over the present snapshot of a lake.

A question only reads, and reads no file but the lake's. It is bounded by time and memory. Rows
that do not fit into memory go to temporary files, which are bounded, too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import duckdb
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from . import history, lineage, loose, misspelt, printing, views
from .errors import LakeError, MisuseError, first_line
from .lake import Lake
from .reading import check_number, check_once, intact, tasks
from .storage import bucket, is_local, local, stored_files
from .tables import PROCESSES, RUNS

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Bounds of a question: seconds (0: none), and MB of 1,000,000 bytes."""

    seconds: int = 60
    megabytes: int = 512


#: Seconds after the time is over in which DuckDB ends a question by itself.
GRACE = 5
#: The bounds of a command without options.
USUAL = Limits()


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the bounds of a question."""
    parser.add_argument(
        "--timeout", type=int, default=USUAL.seconds, metavar="SECONDS", help="0: no bound"
    )
    parser.add_argument(
        "--memory", type=int, default=USUAL.megabytes, metavar="MB", help="most memory"
    )


def chosen_limits(given: argparse.Namespace) -> Limits:
    """The bounds that the options choose."""
    return Limits(given.timeout, given.memory)


@dataclass(frozen=True)
class DataFilePath:
    """A data file, and the size and the number of rows that the lake knows."""

    path: str
    size: int
    rows: int


class Question:
    """A connection to DuckDB with the views of a lake."""

    def __init__(self, lake: Lake, limits: Limits) -> None:
        self._lake = lake
        self._limits = limits
        #: Whether the program ends if DuckDB does not obey. It looks for an interruption between
        #: blocks of rows only, and one value can take very long.
        self.ends_program = False
        #: How a question becomes smaller, for the message that it takes too long.
        self.advice = "narrow the question"
        files = snapshot(lake, _data_files)
        self._paths = [file.path for of in files.values() for file in of]
        #: Whether the views of lineage are there, and the steps between runs are known.
        self._have_lineage, self._have_met = False, False
        self._scratch = tempfile.TemporaryDirectory(prefix="backstory-lake-")
        self.connection = duckdb.connect(":memory:")
        stored = bucket(lake.table(RUNS))
        if stored:
            self.connection.register_filesystem(stored)
        names = {table: [file.path for file in of] for table, of in files.items()}
        try:
            self._run(views.statements(names))
            self._confine()
            processes = sum(file.rows for file in files[PROCESSES.name])
            loose.tell(self.connection, lake, processes)
        except duckdb.Error as error:
            self.close()
            if isinstance(error, duckdb.OutOfMemoryException):
                raise self._explained(error) from error
            # The statements are right: only a file can be wrong.
            raise self._damaged(error) from error

    def _run(self, statements: list[str]) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def _confine(self) -> None:
        allowed = ", ".join(views.quoted(path) for path in self._paths)
        self._run(
            [
                f"SET temp_directory = {views.quoted(self._scratch.name)}",
                f"SET max_temp_directory_size = '{20 * self._limits.megabytes}MB'",
                f"SET memory_limit = '{self._limits.megabytes}MB'",
                f"SET threads = {os.cpu_count() or 1}",
                "SET enable_progress_bar = false",
                f"SET allowed_paths = [{allowed}]",
                "SET enable_external_access = false",
                "SET lock_configuration = true",
            ]
        )

    def close(self) -> None:
        """Ends all threads that read. They read buckets through Python, which must still run."""
        self.connection.close()
        self._scratch.cleanup()

    @contextmanager
    def rows(self, sql: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """The answer, while the context lasts."""
        statement = self._one_select(sql)
        with self.bounded():
            with self.watched():
                self.prepare(sql)
                if lineage.needs_jumps(sql):
                    self.meet()
                found = self.connection.execute(statement)
            yield found

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Bounds the time of what the context executes, and explains its errors."""
        timer = None
        if self._limits.seconds:
            timer = threading.Timer(self._limits.seconds, self.connection.interrupt)
            timer.daemon = True
            timer.start()
        try:
            yield
        except duckdb.Error as error:
            raise self._explained(error) from error
        finally:
            if timer:
                timer.cancel()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Ends the program if DuckDB does not obey an interruption.

        DuckDB computes rows when they are fetched, too. Printing may take any time, as in a pager.
        """
        timer = None
        if self._limits.seconds and self.ends_program:
            timer = threading.Timer(self._limits.seconds + GRACE, self._end)
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            if timer:
                timer.cancel()

    def _end(self) -> None:
        try:
            print(f"backstory-lake: {self._late()}", file=sys.stderr, flush=True)
            # DuckDB may still write there.
            shutil.rmtree(self._scratch.name, ignore_errors=True)
        finally:
            os._exit(1)

    def _late(self) -> str:
        return (
            f"no answer within {self._limits.seconds} s: {self.advice}, "
            "or allow more with --timeout"
        )

    def execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Executes a statement, which may name views of lineage."""
        self.prepare(sql)
        return self.connection.execute(sql)

    def prepare(self, sql: str) -> None:
        """Makes the views of lineage, once a text names one. They take longer than most answers:
        DuckDB reads the heads of the data files again for each of them."""
        if not self._have_lineage and lineage.is_needed(sql):
            self._run([*lineage.STATEMENTS, history.MACRO])
            self._have_lineage = True

    def meet(self) -> None:
        """Finds the steps between runs, once."""
        if not self._have_met:
            self.prepare(lineage.MET)
            self._run(lineage.MEET)
            self._have_met = True

    def _one_select(self, sql: str) -> duckdb.Statement:
        if not printing.is_utf8(sql):
            raise MisuseError(
                "the question is not UTF-8; a path that is not is found by its bytes: "
                "path_bytes = unhex('...')"
            )
        try:
            found = self.connection.extract_statements(sql)
        except duckdb.Error as error:
            raise misspelt.explained(error) from error
        if len(found) != 1:
            raise MisuseError(f"expected one SELECT statement; {misspelt.TABLES}")
        if found[0].type != duckdb.StatementType.SELECT:
            raise MisuseError(
                f"only SELECT is allowed: a question never changes the lake; {misspelt.TABLES}"
            )
        return found[0]

    def _explained(self, error: duckdb.Error) -> LakeError:
        text = first_line(error)
        if isinstance(error, duckdb.InterruptException):
            return LakeError(self._late())
        if isinstance(error, duckdb.OutOfMemoryException):
            return LakeError(
                f"the question needs more than {self._limits.megabytes} MB of memory: narrow it, "
                "or allow more with --memory. If that does not help, a data file may be damaged: "
                "restore it"
            )
        wrong = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
        if isinstance(error, wrong):
            return misspelt.explained(error)
        is_wrong = any(words in text for words in lineage.WRONG)
        if isinstance(error, duckdb.InvalidInputException) and is_wrong:
            return MisuseError(text)
        if isinstance(error, duckdb.PermissionException):
            return MisuseError("a question reads no files but the lake's")
        # An error without a class of its own comes from the reader of Parquet.
        if (
            type(error) is duckdb.Error
            or any(path in str(error) for path in self._paths)
            or "arquet" in text
            or "Invalid unicode" in text
        ):
            return self._damaged(error)
        return LakeError(text)

    def _damaged(self, error: Exception) -> LakeError:
        what = first_line(error)
        return LakeError(f"a data file of {self._lake.name} is damaged: {what}; restore it")


def snapshot(lake: Lake, read: Callable[[Lake, Table], T]) -> dict[str, T]:
    """Reads all tables, such that each run of `runs` has its rows in the others.

    `runs` is read first: a shipment changes it last. Another change of `runs` in between, as by
    `forget`, makes the others begin again.
    """
    for _ in range(10):
        runs = lake.table(RUNS)
        found = {RUNS.name: read(lake, runs)}
        try:
            for table in lake.tables:
                if table is not RUNS:
                    found[table.name] = read(lake, lake.table(table))
        except LakeError:
            if lake.table(RUNS).metadata_location == runs.metadata_location:
                raise
            continue
        known = {snapshot.snapshot_id for snapshot in runs.snapshots()}
        newer = [one for one in lake.table(RUNS).snapshots() if one.snapshot_id not in known]
        if all(one.summary and one.summary.operation == Operation.APPEND for one in newer):
            return found
    raise LakeError(f"{lake.name} is changed by others all the time; try again")


def _data_files(lake: Lake, table: Table) -> list[DataFilePath]:
    """The data files of the present snapshot. Each must have the size that the lake knows."""
    found = []
    for task in tasks(table):
        if task.delete_files:
            raise LakeError(
                f"the table {lake.name}:{table.name()[-1]} has delete files, which another "
                "program made; let that program compact it"
            )
        file = task.file
        path = local(file.file_path)
        found.append(DataFilePath(path, file.file_size_in_bytes, file.record_count))
    _check_sizes(table, found)
    check_once(table, [file.path for file in found])
    return found


def _check_sizes(table: Table, files: list[DataFilePath]) -> None:
    stored = None if is_local(table.location()) else _stored_sizes(table)
    for file in files:
        try:
            size = os.stat(file.path).st_size if stored is None else stored[file.path]
        except (OSError, KeyError) as error:
            reason = (
                error.strerror if isinstance(error, OSError) else "the bucket has no such object"
            )
            raise LakeError(
                f"cannot read the data file {file.path}: {reason}; restore it"
            ) from error
        check_number(file.path, size, file.size, "bytes")


def _stored_sizes(table: Table) -> dict[str, int]:
    with intact(f"the list of the files of {table.location()}"):
        return {file.path: file.size for file in stored_files(table, ".parquet")}
