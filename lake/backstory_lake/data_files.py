"""Writes Parquet files, and tells Iceberg about them.

Each file has the rows of one partition, sorted. Its columns have the tables' numbers. Keys and
moments are stored as differences, since neighbours are alike. The name has the digest of the bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from .digests import named_by
from .storage import is_local, local
from .tables import LakeTable

#: Rows in a row group: what a reader skips or reads at once.
ROW_GROUP = 1 << 17


def write(table: Table, of: LakeTable, rows: pa.Table) -> list[DataFile]:
    """Writes rows into one file for each partition."""
    return [_write_one(table, of, part) for part in _partitions(rows.select(of.arrow.names))]


def _partitions(rows: pa.Table) -> Iterator[pa.Table]:
    keys = rows.select(["day", "bucket"]).group_by(["day", "bucket"]).aggregate([])
    for key in keys.to_pylist():
        same_day = pc.equal(rows["day"], pa.scalar(key["day"], pa.date32()))
        yield rows.filter(pc.and_(same_day, pc.equal(rows["bucket"], key["bucket"])))


def _write_one(table: Table, of: LakeTable, rows: pa.Table) -> DataFile:
    # A lake of an older writer lacks columns.
    known = set(table.schema().column_names)
    schema = pa.schema([field for field in of.arrow if field.name in known])
    rows = rows.sort_by([(name, "ascending") for name in of.sorted_by])
    rows = rows.select(schema.names).cast(schema)
    day, bucket = rows["day"][0].as_py(), rows["bucket"][0].as_py()
    texts = [field.name for field in schema if field.type in (pa.string(), pa.binary())]
    numbers = [field.name for field in schema if field.type in (pa.int64(), pa.int32())]
    made = pa.BufferOutputStream()
    with pq.ParquetWriter(
        made,
        schema,
        compression="zstd",
        use_dictionary=texts,
        column_encoding={name: "DELTA_BINARY_PACKED" for name in numbers},
        bloom_filter_options={name: {"ndv": max(len(rows), 64)} for name in of.bloom} or None,
        sorting_columns=pq.SortingColumn.from_ordering(
            schema, [(name, "ascending") for name in of.sorted_by]
        ),
    ) as writer:
        writer.write_table(rows, row_group_size=ROW_GROUP)
    content = made.getvalue()
    path = f"{table.location()}/data/day={day}/bucket={bucket}/{named_by(content)}"
    with table.io.new_output(path).create() as out:
        out.write(content)
    make_durable(path)
    return parquet_file_to_data_file(table.io, table.metadata, path)


def make_durable(path: str) -> None:
    """Waits until a file of a local directory is on the disk."""
    if is_local(path):
        with open(local(path), "rb") as file:
            os.fsync(file.fileno())
