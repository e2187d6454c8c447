"""Replaces data files of a table, and removes what only its former snapshots need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from sqlalchemy.exc import OperationalError

from .data_files import write
from .errors import LakeError
from .lake import ATTEMPTS, Lake
from .tables import LakeTable

#: Data files, and their rows afterwards.
Replacement = tuple[list[DataFile], pa.Table]


def data_files(table: Table) -> list[DataFile]:
    """The data files of the present snapshot."""
    return [task.file for task in table.scan().plan_files()]


def rows_of(table: Table, of: LakeTable, file: DataFile) -> pa.Table:
    """All rows of a data file, with NULL in the columns that it lacks."""
    with table.io.new_input(file.file_path).open() as stream:
        found = pq.read_table(stream)
    missing = [field for field in of.arrow if field.name not in found.column_names]
    for field in missing:
        found = found.append_column(field, pa.nulls(len(found), field.type))
    return found.select(of.arrow.names).cast(of.arrow)


def replace(lake: Lake, of: LakeTable, wanted: Callable[[Table], Iterable[Replacement]]) -> int:
    """Replaces data files in one commit. Returns the number of files that were replaced.

    If a competitor commits first, the function is called again for the new state.
    """
    for attempt in range(ATTEMPTS):
        table = lake.table(of)
        unknown = {field.name for field in table.schema().fields} - set(of.arrow.names)
        if unknown:
            raise LakeError(
                f"the table {of.name} of {lake.name} has columns that this program does not know "
                f"and would lose: {', '.join(sorted(unknown))}; install a newer backstory-lake"
            )
        gone, new = [], []
        for files, rows in wanted(table):
            gone += files
            new += write(table, of, rows) if len(rows) else []
        if not gone:
            return 0
        try:
            with table.transaction() as transaction:
                with transaction.update_snapshot().overwrite() as snapshot:
                    for file in gone:
                        snapshot.delete_data_file(file)
                    for file in new:
                        snapshot.append_data_file(file)
            return len(gone)
        except (CommitFailedException, OperationalError):
            for file in new:
                table.io.delete(file.file_path)
            time.sleep(min(0.02 * (attempt + 1), 1))
    raise LakeError(f"the table {of.name} of {lake.name} is changed by others all the time")


def remove_former(lake: Lake, of: LakeTable) -> int:
    """Removes all snapshots but the present one, and the files that only they need."""
    table = lake.table(of)
    if _has_deletions(table):
        # A snapshot that deletes files lists them, with the least and greatest values of their
        # columns. The next one does not.
        lake.renew(of)
        table = lake.table(of)
    current = table.current_snapshot()
    former = [
        one for one in table.snapshots() if current and one.snapshot_id != current.snapshot_id
    ]
    if not former or current is None:
        return 0
    needed = _files_of(table, current.snapshot_id)
    old: set[str] = set()
    for snapshot in former:
        old |= _files_of(table, snapshot.snapshot_id)
    table.maintenance.expire_snapshots().by_ids([one.snapshot_id for one in former]).commit()
    for path in old - needed:
        try:
            table.io.delete(path)
        except FileNotFoundError:
            # Another process removes the same files.
            continue
    return len(old - needed)


def _has_deletions(table: Table) -> bool:
    current = table.current_snapshot()
    manifests = current.manifests(table.io) if current else []
    return any(bool(manifest.deleted_files_count) for manifest in manifests)


def _files_of(table: Table, snapshot: int) -> set[str]:
    found = table.snapshot_by_id(snapshot)
    assert found is not None
    paths = {found.manifest_list}
    try:
        for manifest in found.manifests(table.io):
            paths.add(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(table.io)
            paths.update(entry.data_file.file_path for entry in entries)
    except FileNotFoundError:
        # An interrupted removal took it.
        pass
    return paths


def stored_files(table: Table) -> list[tuple[str, datetime]]:
    """All Parquet files of a table's directory, also those of no snapshot, and their times."""
    assert isinstance(table.io, PyArrowFileIO)
    scheme, netloc, path = table.io.parse_location(table.location())
    system = table.io.fs_by_scheme(scheme, netloc)
    infos = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    prefix = table.location().removesuffix(path) if path else ""
    return [
        (prefix + info.path, info.mtime or datetime.now(UTC))
        for info in infos
        if info.type == fs.FileType.File and info.path.endswith(".parquet")
    ]
