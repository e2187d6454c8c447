"""The files of a table where they lie: in a directory, or in a bucket of an object store.

PyIceberg's configuration of the catalog has the addresses and keys of a bucket. They stay in this
process: DuckDB reads a bucket through the same connection, and gets no key.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from fsspec.implementations.arrow import ArrowFSWrapper
from pyarrow import fs
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table


class StoredFile(NamedTuple):
    """A file of a table's directory."""

    path: str
    size: int
    changed: datetime


def is_local(path: str) -> bool:
    """True for a path of this machine's file system."""
    return urlsplit(path).scheme in ("", "file")


def local(path: str) -> str:
    """A path of this machine without its scheme; other paths as they are."""
    return unquote(urlsplit(path).path) if path.startswith("file:") else path


def stored_files(table: Table, suffix: str) -> list[StoredFile]:
    """All files of a table's directory with a suffix, also those of no snapshot."""
    system, path = _filesystem(table)
    infos = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    prefix = table.location().removesuffix(path) if path else ""
    return [
        StoredFile(prefix + info.path, info.size, info.mtime or datetime.now(UTC))
        for info in infos
        if info.type == fs.FileType.File and info.path.endswith(suffix)
    ]


def bucket(table: Table) -> ArrowFSWrapper | None:
    """The bucket of a table in the form that DuckDB takes; `None` for a local table."""
    if is_local(table.location()):
        return None
    # The cache of fsspec knows connections by their addresses in memory, which are used again.
    return _Bucket(
        urlsplit(table.location()).scheme, _filesystem(table)[0], skip_instance_cache=True
    )


def _filesystem(table: Table) -> tuple[fs.FileSystem, str]:
    """The file system of a table, and the table's path in it."""
    assert isinstance(table.io, PyArrowFileIO)
    scheme, netloc, path = table.io.parse_location(table.location())
    return table.io.fs_by_scheme(scheme, netloc), path


class _Bucket(ArrowFSWrapper):
    """A file system of Arrow under the scheme of a table's paths."""

    def __init__(self, scheme: str, system: fs.FileSystem, **options: Any) -> None:
        super().__init__(system, **options)
        self._scheme = scheme

    @property
    def protocol(self) -> str:
        """The scheme."""
        return self._scheme
