"""Counts the processes of no known run. No answer has them, nor their other rows.

A shipment that is in progress, or that was interrupted, has such rows, and it appends the processes
first. So has an erasure, which changes `runs` first. `runs` has the number of each run's processes,
and Iceberg knows the rows of a table. So the count reads one column of `runs`, and no other table.
Rows that known runs lack make it smaller, down to less than none.
"""

from __future__ import annotations

import sys

import duckdb

from . import erasure
from .lake import RETAINED_PROPERTY, Lake
from .tables import RUNS


def tell(connection: duckdb.DuckDBPyConnection, lake: Lake, processes: int) -> None:
    """Says how many there are. `processes`: the rows of that table."""
    known = connection.execute("SELECT coalesce(sum(processes), 0) FROM runs")
    # All rows are fetched: an unfinished result keeps the connection busy.
    loose = processes - int(known.fetchall()[0][0])
    if loose == 0:
        return
    if loose < 0:
        message = (
            f"{_counted(-loose)} of known runs are missing in {lake.name}: answers lack them. "
            "Compare the data files: `backstory-lake check`"
        )
    else:
        message = (
            f"{_counted(loose)} of no known run in {lake.name}: left out of all answers, with "
            f"their files and edges. {_cause(lake)}"
        )
    print(f"backstory-lake: {message}", file=sys.stderr)


def _cause(lake: Lake) -> str:
    """The possible causes, and what ends each."""
    if runs := erasure.pending(lake):
        return (
            "An erasure is in progress, or was interrupted. "
            f"`backstory-lake forget {runs[0]}` ends it, for all of its runs"
        )
    causes = [
        "A shipment is in progress, or was interrupted. `backstory store ship` sends its runs "
        "again, and `backstory-lake compact` drops the rows after a day."
    ]
    if day := lake.table(RUNS).properties.get(RETAINED_PROPERTY):
        causes.append(
            "Or `expire` is in progress, or was interrupted: "
            f"`backstory-lake expire --before {day}` erases the rest."
        )
    causes.append("If it is neither, compare the data files: `backstory-lake check`")
    return " ".join(causes)


def _counted(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
