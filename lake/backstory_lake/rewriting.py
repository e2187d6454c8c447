"""Replaces data files of a table, and removes what only its former snapshots need."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterable

import pyarrow as pa
from pyiceberg.avro.file import AvroFile
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)
from pyiceberg.table import Table
from sqlalchemy.exc import OperationalError

from .data_files import write
from .errors import LakeError
from .lake import ATTEMPTS, Lake
from .reading import check_place
from .storage import stored_files
from .tables import LakeTable

#: Data files, and their rows afterwards.
Replacement = tuple[list[DataFile], pa.Table]


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
    for path in paths:
        check_place(table, path)
    return paths


def remove_orphans(lake: Lake, of: LakeTable) -> int:
    """Removes manifests of no snapshot that list a data file which is gone.

    An interrupted removal leaves them. They have the least and greatest values of that file's
    columns. A manifest of a shipment in progress lists no such file.
    """
    table = lake.table(of)
    current = table.current_snapshot()
    needed = _files_of(table, current.snapshot_id) if current else set()
    stored = {file.path for file in stored_files(table, ".parquet")}
    orphans = [
        file.path
        for file in stored_files(table, ".avro")
        if file.path not in needed and not _listed(table, file.path) <= stored
    ]
    for path in orphans:
        table.io.delete(path)
    return len(orphans)


def _listed(table: Table, path: str) -> set[str]:
    """The data files that a manifest lists. A list of manifests lists none."""
    if posixpath.basename(path).startswith("snap-"):
        return set()
    try:
        with AvroFile[ManifestEntry](
            table.io.new_input(path),
            MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as entries:
            return {entry.data_file.file_path for entry in entries}
    except (FileNotFoundError, EOFError, ValueError):
        # It is gone, or another process writes it at this moment.
        return set()
