"""Counts the processes of no known run. No answer has them, nor their other rows.

A shipment that is in progress, or that was interrupted, has such rows, and it appends the processes
first. `runs` has the number of each run's processes, and Iceberg knows the rows of a table. So the
count reads one column of `runs`, and no other table.
"""

from __future__ import annotations

import sys

import duckdb


def tell(connection: duckdb.DuckDBPyConnection, lake: str, processes: int) -> None:
    """Says how many there are. `processes`: the rows of that table."""
    known = connection.execute("SELECT coalesce(sum(processes), 0) FROM runs")
    # All rows are fetched: an unfinished result keeps the connection busy.
    loose = processes - int(known.fetchall()[0][0])
    if loose <= 0:
        return
    count = "1 process" if loose == 1 else f"{loose} processes"
    print(
        f"backstory-lake: {count} of no known run in {lake}: left out of all answers, with their "
        "files and edges. A shipment is in progress, or was interrupted. `backstory store ship` "
        "sends its runs again, and `backstory-lake compact` drops the rows after a day. If no "
        "shipment was interrupted, compare the data files: `backstory-lake check`",
        file=sys.stderr,
    )
