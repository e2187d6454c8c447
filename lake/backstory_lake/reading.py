"""Reads a table's files, which may be damaged or hostile.

Each error names the file or table. A file outside of its table's directory is neither read nor
removed: only a hostile manifest names one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import ValidationError
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile
from pyiceberg.table import DataScan, FileScanTask, Table

from . import digests
from .errors import LakeError, first_line
from .storage import is_local, local
from .tables import LakeTable

#: The libraries raise these errors for a damaged file.
DAMAGE = (
    pa.ArrowException,
    ValidationError,
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
)


def tasks(table: Table, scan: DataScan | None = None) -> list[FileScanTask]:
    """The data files of the present snapshot that a scan reads; by default all."""
    with intact(f"the metadata of {table.location()}"):
        found = list((scan or table.scan()).plan_files())
    for task in found:
        check_place(table, task.file.file_path)
    return found


def data_files(table: Table) -> list[DataFile]:
    """The data files of the present snapshot."""
    return [task.file for task in tasks(table)]


def scan(
    table: Table, columns: tuple[str, ...], condition: BooleanExpression | None = None
) -> pa.Table:
    """Some columns of the rows for which a condition holds."""
    wanted = condition or AlwaysTrue()
    plan = table.scan(row_filter=wanted, selected_fields=columns)
    found = tasks(table, plan)
    check_once(table, [local(task.file.file_path) for task in found])
    with intact(f"a data file of {table.location()}"):
        return ArrowScan(table.metadata, table.io, plan.projection(), wanted).to_table(found)


def rows_of(
    table: Table, of: LakeTable, file: DataFile, columns: tuple[str, ...] | None = None
) -> pa.Table:
    """All rows of a data file, with NULL in columns that it lacks; by default with all columns."""
    schema = schema_of(of, columns)
    found = columns_of(table, file.file_path, columns and set(columns))
    check_number(file.file_path, len(found), file.record_count, "rows")
    with intact(f"the data file {file.file_path}"):
        for field in schema:
            if field.name not in found.column_names:
                found = found.append_column(field, pa.nulls(len(found), field.type))
        return found.select(schema.names).cast(schema)


def check_number(path: str, found: int, known: int, of: str) -> None:
    """Compares a number of a data file's bytes or rows (`of`) with the one that the lake knows."""
    if found != known:
        raise LakeError(f"the data file {path} has {found} {of} instead of {known}: restore it")


def schema_of(of: LakeTable, columns: tuple[str, ...] | None = None) -> pa.Schema:
    """Some columns of a table, or all of them."""
    return pa.schema([of.arrow.field(name) for name in columns or of.arrow.names])


def columns_of(table: Table, path: str, wanted: set[str] | None = None) -> pa.Table:
    """The columns of a data file that have one of the names; by default all."""
    check_place(table, path)
    with intact(f"the data file {path}"):
        content = content_of(table, path)
        digests.check(path, content)
        file = pq.ParquetFile(pa.BufferReader(content))
        names = [name for name in file.schema_arrow.names if wanted is None or name in wanted]
        return file.read(columns=names)


def content_of(table: Table, path: str) -> bytes:
    """The bytes of a data file."""
    check_place(table, path)
    with intact(f"the data file {path}"), table.io.new_input(path).open() as stream:
        return bytes(stream.read())


def check_once(table: Table, paths: list[str]) -> None:
    """Compares local data files with their digests. A bucket has checksums of its own."""
    if is_local(table.location()):
        digests.check_once(table.location(), paths)


def check_place(table: Table, path: str) -> None:
    """Refuses a file outside of the table's directory."""
    inside = table.location().rstrip("/") + "/"
    if not path.startswith(inside) or ".." in unquote(path).split("/"):
        raise LakeError(
            f"the metadata of {table.location()} names the file {path} outside of it: "
            "another program damaged the lake; restore its metadata"
        )


@contextmanager
def intact(name: str) -> Iterator[None]:
    """Names what cannot be read, if the context raises an error of damage."""
    try:
        yield
    except DAMAGE as error:
        raise LakeError(f"{name} cannot be read: {first_line(error)}; restore it") from error
