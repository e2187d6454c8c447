"""The results of a matrix: a directory with the plan, a journal of rows, and Parquet made from it.

A row is written and synchronised as soon as it is measured. Rows are only appended. A line that a
crash or a full disk left incomplete is skipped by readers. The name of a Parquet file contains its
number of rows. The file is written under another name and renamed when it is complete.
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
    """A directory of results cannot be read or written. The text says why, and what to do."""


class Journal:
    """The results of one matrix."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self, plan: Row) -> None:
        """Writes the plan into a new directory.

        # Errors
        `Unusable` if the directory has a plan, or cannot be written.
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
        """Reads the plan of the matrix."""
        try:
            return dict(json.loads((self.directory / PLAN).read_text()))
        except FileNotFoundError as error:
            raise Unusable(f"{self.directory} is not a directory of results: it has no {PLAN}") from error
        except ValueError as error:
            raise Unusable(f"{self.directory / PLAN} is damaged ({error}): its rows are still in {ROWS}") from error

    def append(self, row: Row) -> None:
        """Appends a row and synchronises the file.

        # Errors
        `Unusable` with the reason, such as a full disk. Earlier rows are unchanged.
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
                f"{path}: {error.strerror}; free some space and continue with --resume: all earlier rows are stored"
            ) from error

    def rows(self) -> Iterator[Row]:
        """Yields all complete rows."""
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
    """Returns the Parquet file of all present rows, with the plan as its metadata.

    Writes the file if it does not exist.
    """
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
    """Converts counts and lists to text, so that a column has one type."""
    return json.dumps(value) if isinstance(value, (dict, list)) else value
