"""Counts the rows of no known run, which no answer has.

A shipment that is in progress, or that was interrupted, has such rows. `runs` has the number of
each run's processes, and a shipment appends the processes first. So in a lake without such rows,
two numbers are equal, and no data file is read.
"""

from __future__ import annotations

import sys

import duckdb

from .tables import RUNS, TABLES


def tell(connection: duckdb.DuckDBPyConnection, lake: str, processes: int) -> None:
    """Says how many there are. `processes`: the rows of that table."""
    known = "SELECT coalesce(sum(processes), 0) FROM runs"
    if processes == _number(connection, known):
        return
    rows = sum(_number(connection, _without_run(of.name)) for of in TABLES if of is not RUNS)
    if rows:
        print(
            f"backstory-lake: {rows} rows of {lake} belong to no known run, and are left out: a "
            "shipment is in progress, or was interrupted. `backstory store ship` sends its runs "
            "again, and `backstory-lake compact` drops the rows after a day. If no shipment was "
            "interrupted, compare the data files: `backstory-lake check`",
            file=sys.stderr,
        )


def _without_run(table: str) -> str:
    return f"SELECT count(*) FROM {table}_table ANTI JOIN runs_table USING (number, shipment)"


def _number(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    # All rows are fetched: an unfinished result keeps the connection busy.
    return int(connection.execute(sql).fetchall()[0][0])
