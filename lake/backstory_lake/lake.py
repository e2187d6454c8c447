"""Opens a lake, and commits to its tables.

A lake is a directory with a catalog in SQLite and tables in Parquet, or a catalog that PyIceberg's
configuration names. Each commit replaces a table's snapshot at once, or fails.
"""

from __future__ import annotations

import errno
import fcntl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError

from .errors import LakeError, MisuseError, first_line
from .tables import FORMAT, LATER, TABLES, LakeTable

NAMESPACE = "backstory"
#: The property of each table with the version of its form.
FORMAT_PROPERTY = "backstory.format"
#: The property of `runs` with the first day that the lake keeps.
RETAINED_PROPERTY = "backstory.retained-since"
#: The property of `runs` with unpublished shipments, and when `compact` saw them first.
UNPUBLISHED_PROPERTY = "backstory.unpublished"
#: The property of `runs` with the runs whose erasure has begun.
PENDING_PROPERTY = "backstory.erasing"
#: The file in a lake's directory that a lock is tried on.
LOCK = "catalog.locks"
#: The file in a lake's directory that makes it a lake.
CATALOG = "catalog.sqlite"
#: Names in a directory that may become a lake. The first ones are there while another process makes
#: it, or after that was interrupted. The last one is there in an empty file system.
BEGUN = {LOCK, f"{CATALOG}-journal", f"{CATALOG}-wal", f"{CATALOG}-shm", "lost+found"}
#: Begins the name of a catalog of PyIceberg's configuration.
NAMED = "catalog:"
#: Attempts to commit, each after a competitor succeeded.
ATTEMPTS = 100


class Lake:
    """The tables of a lake."""

    def __init__(self, name: str, catalog: Catalog) -> None:
        self.name = name
        self._catalog = catalog

    @classmethod
    def open(cls, name: str, create: bool = False) -> Lake:
        """Opens a lake by its directory, or as `catalog:NAME`."""
        lake = cls(name, _catalog(name, create))
        if create:
            lake._create()
        for table in lake.tables:
            lake.table(table)
        return lake

    @property
    def tables(self) -> tuple[LakeTable, ...]:
        """The tables that the lake has: a lake of older writers lacks those that came later."""
        return tuple(of for of in TABLES if of not in LATER or self._has(of))

    def _has(self, table: LakeTable) -> bool:
        # The catalog reads the table's metadata.
        with self._reading(table):
            return bool(self._catalog.table_exists((NAMESPACE, table.name)))

    @contextmanager
    def _reading(self, table: LakeTable) -> Iterator[None]:
        """Explains the errors of reading a table's metadata."""
        try:
            yield
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise LakeError(
                f"{self.name} is no lake: it has no table {table.name}; "
                f"`backstory store ship --to {self.name}` makes one"
            ) from error
        except FileNotFoundError as error:
            raise LakeError(
                f"the table {table.name} of {self.name} has lost its metadata: {error}; "
                "restore the lake's directory, or mount it where it was made"
            ) from error
        except (DatabaseError, ValidationError, OSError, ValueError) as error:
            if isinstance(error, OperationalError):
                raise
            if self.name.startswith(NAMED) and isinstance(error, OSError):
                raise LakeError(
                    f"cannot read the table {table.name} of {self.name}: {first_line(error)}; "
                    "check the catalog's configuration, or restore the table's metadata"
                ) from error
            raise LakeError(
                f"the catalog of {self.name}, or the metadata of its table {table.name}, cannot "
                "be read; restore the lake's directory"
            ) from error

    def table(self, table: LakeTable) -> Table:
        """A table in its present state."""
        with self._reading(table):
            found = self._catalog.load_table((NAMESPACE, table.name))
        form = found.properties.get(FORMAT_PROPERTY, "0")
        if not form.isdigit() or int(form) > FORMAT:
            raise LakeError(
                f"the table {table.name} of {self.name} has form {form}, and this program knows "
                f"forms up to {FORMAT}: install a newer backstory-lake"
            )
        return found

    @property
    def identity(self) -> str:
        """A name of the lake that no other lake has."""
        return str(self.table(TABLES[-1]).metadata.table_uuid)

    def append(self, table: LakeTable, files: Iterable[DataFile]) -> None:
        """Adds data files to a table."""
        self.commit(table, lambda _: list(files))

    def commit(self, table: LakeTable, files: Callable[[Table], list[DataFile]]) -> None:
        """Adds the data files that a function makes for the table's present state.

        If a competitor commits first, the function is called again for the new state.
        """
        self._commit(table, lambda now: files(now) or None)

    def renew(self, table: LakeTable) -> None:
        """Makes a snapshot with the same data files."""
        self._commit(table, lambda _: [])

    def _commit(self, table: LakeTable, files: Callable[[Table], list[DataFile] | None]) -> None:
        for attempt in range(ATTEMPTS):
            now = self.table(table)
            new = files(now)
            if new is None:
                return
            try:
                with now.transaction() as transaction:
                    with transaction.update_snapshot().fast_append() as snapshot:
                        for file in new:
                            snapshot.append_data_file(file)
                return
            except (CommitFailedException, OperationalError):
                time.sleep(min(0.02 * (attempt + 1), 1))
        raise LakeError(
            f"the table {table.name} of {self.name} is changed by others all the time; try again"
        )

    def _create(self) -> None:
        try:
            self._catalog.create_namespace(NAMESPACE)
        except (NamespaceAlreadyExistsError, IntegrityError):
            # A competitor may make it between PyIceberg's look and its own row.
            pass
        known = {name for *_, name in self._catalog.list_tables(NAMESPACE)}
        for table in TABLES:
            if table.name in known:
                self._complete(table)
                continue
            try:
                self._catalog.create_table(
                    (NAMESPACE, table.name),
                    table.schema,
                    partition_spec=table.partitions,
                    properties={
                        FORMAT_PROPERTY: str(FORMAT),
                        "format-version": "2",
                        # Iceberg's reader of batches knows no differences of numbers.
                        "read.parquet.vectorization.enabled": "false",
                        # `commit` repeats itself, and looks at the new state first.
                        "commit.retry.num-retries": "0",
                        "write.metadata.delete-after-commit.enabled": "true",
                        "write.metadata.previous-versions-max": "5",
                    },
                )
            except TableAlreadyExistsError:
                pass

    def _complete(self, table: LakeTable) -> None:
        """Adds the columns that a table of an older writer lacks.

        Older writers still append to the table. They refuse to write its files anew, because that
        would lose the columns.
        """
        for _ in range(ATTEMPTS):
            now = self.table(table)
            known = {field.name: field.field_id for field in now.schema().fields}
            for number, name, _ in table.columns:
                if known.get(name, number) != number or (
                    name not in known and number in known.values()
                ):
                    raise LakeError(
                        f"the table {table.name} of {self.name} has another column in the place of "
                        f"{name}: another program changed it; use a lake of its own"
                    )
            missing = [
                (number, name, kind) for number, name, kind in table.columns if name not in known
            ]
            if not missing:
                return
            try:
                with now.update_schema() as update:
                    for _, name, kind in missing:
                        update.add_column(name, kind)
            except (CommitFailedException, OperationalError):
                time.sleep(0.05)


def _catalog(name: str, create: bool) -> Catalog:
    if name.startswith(NAMED):
        try:
            return load_catalog(name.removeprefix(NAMED))
        except ValueError as error:
            raise LakeError(f"{name}: {error}; see ~/.pyiceberg.yaml") from error
    directory = Path(name).absolute()
    if create:
        directory.mkdir(parents=True, exist_ok=True)
        _check_free(name, directory)
    elif not (directory / CATALOG).is_file():
        raise LakeError(f"{name} is no lake: it has no file {CATALOG}")
    _check_locks(directory)
    try:
        return load_catalog(
            "lake",
            type="sql",
            # A competitor's commit takes ms.
            uri=f"sqlite:///{directory / CATALOG}?timeout=60",
            warehouse=directory.as_uri(),
        )
    except OperationalError as error:
        if create:
            # Another process makes the same tables at this moment.
            time.sleep(0.2)
            return _catalog(name, False)
        raise LakeError(
            f"{directory / CATALOG} cannot be opened: {error.orig}; try again"
        ) from error
    except DatabaseError as error:
        raise LakeError(f"{directory / CATALOG} is damaged: {error.orig}; restore it") from error


def _check_free(name: str, directory: Path) -> None:
    """Refuses a directory with other files, such as a source tree."""
    names = {entry.name for entry in directory.iterdir()}
    # Another process may make the catalog, and then tables, while the names are read.
    if CATALOG in names or names <= BEGUN or (directory / CATALOG).is_file():
        return
    raise MisuseError(
        f"{name} is no lake, and it is not empty: name a new or empty directory; "
        f"restore its {CATALOG} if it was a lake"
    )


def _check_locks(directory: Path) -> None:
    """Refuses a file system without locks: each commit needs one that all machines respect.

    The lock is on a file of its own. A process that closes any descriptor of the catalog loses the
    locks that SQLite has on it.
    """
    try:
        with (directory / LOCK).open("ab") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # Another process has it.
        pass
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise LakeError(
                f"{directory} is on a file system without locks ({error.strerror}): "
                "mount it with locks on all machines, or use a catalog"
            ) from error
        # A user who may only read the directory commits nothing.
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise LakeError(f"cannot open {directory / LOCK}: {error.strerror}") from error
