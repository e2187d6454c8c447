"""`check`: compares the data files of a lake with the digests in their names."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from . import digests
from .errors import LakeError
from .lake import Lake
from .reading import check_number, content_of, data_files, intact


@dataclass
class Verified:
    """Numbers of data files, and the errors about damaged files, and about unreadable tables."""

    sound: int = 0
    unknown: int = 0
    damaged: list[LakeError] = field(default_factory=list)
    unread: list[LakeError] = field(default_factory=list)


def verify(lake: Lake) -> Verified:
    """Reads all data files of the present snapshot."""
    report = Verified()
    for of in lake.tables:
        try:
            table = lake.table(of)
            files = data_files(table)
        except LakeError as error:
            report.unread.append(error)
            continue
        for file in files:
            try:
                _check(table, file)
            except LakeError as error:
                report.damaged.append(error)
                continue
            if digests.digest_in(file.file_path):
                report.sound += 1
            else:
                report.unknown += 1
    return report


def _check(table: Table, file: DataFile) -> None:
    path = file.file_path
    content = content_of(table, path)
    if digests.digest_in(path):
        digests.check(path, content)
        return
    check_number(path, len(content), file.file_size_in_bytes, "bytes")
    with intact(f"the data file {path}"):
        # This also reads all values.
        batches = pq.ParquetFile(pa.BufferReader(content)).iter_batches()
        rows = sum(len(batch) for batch in batches)
    check_number(path, rows, file.record_count, "rows")
