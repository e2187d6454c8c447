"""The results of a matrix: a directory with the plan, an append-only journal of rows, and Parquet made from it.

A row is written and synchronised as soon as it is measured; a line that was torn by a crash or a full disk is left out when read and
never overwritten. Parquet files are numbered by the rows they hold and made under another name first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PLAN, ROWS = "plan.json", "rows.jsonl"
Row = dict[str, Any]


class Unusable(RuntimeError):
    """A results directory that can't be read or written; the text says why and what to do."""


class Journal:
    """One matrix's results."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self, plan: Row) -> None:
        """Writes the plan into a new directory.

        # Errors
        `Unusable` where there is one already, or it can't be written.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with (self.directory / PLAN).open("x") as file:
                json.dump(plan, file, indent=1)
                file.write("\n")
        except FileExistsError as error:
            raise Unusable(f"{self.directory} holds results already: give --resume, or another --out") from error
        except OSError as error:
            raise Unusable(f"{self.directory / PLAN}: {error.strerror}") from error

    def plan(self) -> Row:
        """What was to be measured."""
        try:
            return dict(json.loads((self.directory / PLAN).read_text()))
        except FileNotFoundError as error:
            raise Unusable(f"{self.directory} is no results directory: it has no {PLAN}") from error
        except ValueError as error:
            raise Unusable(f"{self.directory / PLAN} is damaged ({error}): its rows are still in {ROWS}") from error

    def append(self, row: Row) -> None:
        """Adds a row, durably.

        # Errors
        `Unusable` with the reason, a full disk first among them; what was there stays as it was.
        """
        path = self.directory / ROWS
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        try:
            with path.open("ab") as file:
                end = file.tell()
                try:
                    file.write((b"\n" if end and not _ends_well(path, end) else b"") + line)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(path, end)
                    raise
        except OSError as error:
            raise Unusable(
                f"{path}: {error.strerror}; free room and give --resume: nothing measured is lost"
            ) from error

    def rows(self) -> Iterator[Row]:
        """All whole rows."""
        path = self.directory / ROWS
        if not path.exists():
            return
        with path.open("rb") as file:
            for line in file:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict):
                    yield row


def _ends_well(path: Path, end: int) -> bool:
    with path.open("rb") as file:
        file.seek(end - 1)
        return file.read(1) == b"\n"


def parquet(journal: Journal) -> Path:
    """The Parquet file of all rows there are now, with the plan as its metadata; made if it isn't there yet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{k: _flat(v) for k, v in row.items()} for row in journal.rows()]
    if not rows:
        raise Unusable(f"{journal.directory} has no rows yet")
    path = journal.directory / f"results-{len(rows):06d}.parquet"
    if path.exists():
        return path
    names = list(dict.fromkeys(k for row in rows for k in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    table = table.replace_schema_metadata({"backstory_bench": json.dumps(journal.plan())})
    part = path.with_suffix(".part")
    pq.write_table(table, part, compression="zstd")
    os.link(part, path)
    part.unlink()
    return path


def _flat(value: object) -> object:
    """Counts and lists as text, so that a column has one type."""
    return json.dumps(value) if isinstance(value, (dict, list)) else value
