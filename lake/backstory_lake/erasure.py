"""`forget` and `expire`: runs leave the lake, with all files that have their rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from .errors import LakeError
from .lake import PENDING_PROPERTY, RETAINED_PROPERTY, Lake
from .reading import columns_of, data_files, rows_of
from .rewriting import (
    Replacement,
    remove_former,
    remove_orphans,
    replace,
)
from .storage import stored_files
from .tables import RUNS, LakeTable

#: A file of no snapshot that is younger may belong to a shipment in progress.
IN_PROGRESS = timedelta(hours=1)


@dataclass
class Erased:
    """What `forget` checked."""

    checked: int = 0


def forget(lake: Lake, runs: list[str]) -> Erased:
    """Erases runs. Their ids stay, so that no machine ships them again.

    The runs of an interrupted `forget` are erased, too.
    """
    known = _known(lake, runs)
    unknown = [run for run in runs if run not in known]
    if unknown:
        raise LakeError(f"{lake.name} has no run {', '.join(unknown)}")
    every = sorted({*runs, *pending(lake)})
    _set_pending(lake, every)
    wanted = pa.array(every, pa.string())
    replace(lake, RUNS, lambda table: _tombstones(table, wanted))
    for of in lake.tables:
        if of is not RUNS:
            replace(lake, of, lambda table, of=of: _without(table, of, wanted))  # type: ignore[misc]
    for of in lake.tables:
        remove_former(lake, of)
    report = Erased(sum(_check(lake, of, wanted) for of in lake.tables))
    for of in lake.tables:
        remove_orphans(lake, of)
    _set_pending(lake, [])
    return report


def pending(lake: Lake) -> list[str]:
    """The runs whose erasure began, and perhaps did not end."""
    found: list[str] = json.loads(lake.table(RUNS).properties.get(PENDING_PROPERTY, "[]"))
    return found


def _set_pending(lake: Lake, runs: list[str]) -> None:
    with lake.table(RUNS).transaction() as transaction:
        transaction.set_properties({PENDING_PROPERTY: json.dumps(runs)})


def expire(lake: Lake, day: date) -> int:
    """Erases all runs that began before a day, and refuses them from now on."""
    table = lake.table(RUNS)
    before = table.properties.get(RETAINED_PROPERTY, "")
    if str(day) > before:
        with table.transaction() as transaction:
            transaction.set_properties({RETAINED_PROPERTY: str(day)})
    count = 0

    def older(table: Table, of: LakeTable) -> Iterable[Replacement]:
        nonlocal count
        count = 0
        for file in data_files(table):
            # The first field of a partition is the day, in days since 1970.
            if date(1970, 1, 1) + timedelta(days=file.partition[0]) < day:
                count += file.record_count
                yield [file], of.arrow.empty_table()

    erased = 0
    for of in reversed(lake.tables):
        replace(lake, of, lambda table, of=of: older(table, of))  # type: ignore[misc]
        erased = count if of is RUNS else erased
    for of in lake.tables:
        remove_former(lake, of)
    return erased


def _known(lake: Lake, runs: list[str]) -> set[str]:
    table = lake.table(RUNS)
    found: set[str] = set()
    for file in data_files(table):
        found.update(rows_of(table, RUNS, file)["run"].to_pylist())
    return found & set(runs)


def _tombstones(table: Table, runs: pa.Array) -> Iterable[Replacement]:
    """Rows of `runs` that only say that a run was forgotten."""
    for file in data_files(table):
        rows = rows_of(table, RUNS, file)
        gone = pc.and_(
            pc.is_in(rows["run"], runs), pc.invert(pc.coalesce(rows["forgotten"], False))
        )
        if not pc.any(gone).as_py():
            continue
        columns = []
        for field in RUNS.arrow:
            values = rows[field.name]
            if field.name not in ("day", "bucket", "run"):
                left = True if field.name == "forgotten" else None
                values = pc.if_else(gone, pa.scalar(left, field.type), values)
            columns.append(values)
        yield [file], pa.table(columns, schema=RUNS.arrow)


def _without(table: Table, of: LakeTable, runs: pa.Array) -> Iterable[Replacement]:
    for file in data_files(table):
        if _has(table, file.file_path, runs):
            rows = rows_of(table, of, file)
            yield [file], rows.filter(pc.invert(pc.is_in(rows["run"], runs)))


def _has(table: Table, path: str, runs: pa.Array) -> bool:
    """True if a file has a row of one of the runs that is more than a tombstone."""
    rows = columns_of(table, path, {"run", "forgotten"})
    found = pc.is_in(rows["run"], runs)
    if "forgotten" in rows.column_names:
        found = pc.and_(found, pc.invert(pc.coalesce(rows["forgotten"], False)))
    return bool(pc.any(found).as_py())


def _check(lake: Lake, of: LakeTable, runs: pa.Array) -> int:
    """Reads all stored files of a table, and removes remains of interrupted shipments."""
    table = lake.table(of)
    needed = {file.file_path for file in data_files(table)}
    checked = 0
    for path, _, changed in stored_files(table, ".parquet"):
        checked += 1
        if not _has(table, path, runs):
            continue
        if path in needed or datetime.now(UTC) - changed < IN_PROGRESS:
            raise LakeError(
                f"{path} still has rows of a forgotten run, perhaps of a shipment in progress; "
                "try again in an hour"
            )
        table.io.delete(path)
    return checked
