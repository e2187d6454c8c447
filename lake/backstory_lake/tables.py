"""The tables of a lake, and their columns.

A table has the rows of the view of `backstory query` that has its name. Moments are numbers of ns
since 1970, from which `views` makes the columns of the view. A column keeps its number for ever:
files of older and newer writers are read together by these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

#: The version of the tables' form. A lake with a greater one is refused.
FORMAT = 1

TEXT, LONG, INT, TRUTH = StringType(), LongType(), IntegerType(), BooleanType()
BYTES, DAY = BinaryType(), DateType()

ARROW: dict[IcebergType, pa.DataType] = {
    TEXT: pa.string(),
    LONG: pa.int64(),
    INT: pa.int32(),
    TRUTH: pa.bool_(),
    BYTES: pa.binary(),
    DAY: pa.date32(),
}


@dataclass(frozen=True)
class LakeTable:
    """A table: its columns by number, what sorts it, and which columns have a Bloom filter."""

    name: str
    columns: tuple[tuple[int, str, IcebergType], ...]
    sorted_by: tuple[str, ...]
    bloom: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema of a new lake."""
        return Schema(
            *(
                NestedField(number, name, kind, required=False)
                for number, name, kind in self.columns
            )
        )

    @property
    def partitions(self) -> PartitionSpec:
        """By the day on which a run began, and by its machine's bucket."""
        numbers = {name: number for number, name, _ in self.columns}
        return PartitionSpec(
            *(
                PartitionField(numbers[name], 1000 + at, IdentityTransform(), name)
                for at, name in enumerate(("day", "bucket"))
            )
        )

    @property
    def arrow(self) -> pa.Schema:
        """The columns as Arrow has them, with their numbers."""
        return pa.schema(
            pa.field(name, ARROW[kind], metadata={"PARQUET:field_id": str(number)})
            for number, name, kind in self.columns
        )


#: Columns that files of older writers lack, and programs that do not know them.
LATER_COLUMNS = {"aliases"}

#: The first columns of every table. `shipment` and `number` say by which attempt a row came. It
#: counts if `runs` has a row with both.
COMMON = (
    (1, "day", DAY),
    (2, "bucket", INT),
    (3, "shipment", LONG),
    (4, "number", LONG),
    (5, "run", TEXT),
)

RUNS = LakeTable(
    "runs",
    COMMON
    + (
        (6, "name", TEXT),
        (7, "note", TEXT),
        (8, "repeats", TEXT),
        (9, "command", TEXT),
        (10, "cwd", TEXT),
        (11, "started_ns", LONG),
        (12, "ended_us", LONG),
        (13, "exit", LONG),
        (14, "signal", LONG),
        (15, "complete", TRUTH),
        (16, "host", TEXT),
        (17, "processes", LONG),
        (18, "files_read", LONG),
        (19, "files_written", LONG),
        (20, "since_boot_ns", LONG),
        (21, "boot", TEXT),
        (22, "uid", LONG),
        (23, "source", TEXT),
        (24, "undone", TRUTH),
        (25, "backstory", TEXT),
        (26, "machine", TEXT),
        (27, "owner", TEXT),
        (28, "sensitivity", TEXT),
        (29, "format", INT),
        (30, "shipped_us", LONG),
        (31, "forgotten", TRUTH),
        (32, "connections", LONG),
        (33, "peers", LONG),
    ),
    ("run",),
    ("run",),
)

PROCESSES = LakeTable(
    "processes",
    COMMON
    + (
        (6, "process", LONG),
        (7, "parent", LONG),
        (8, "pid", LONG),
        (9, "program", TEXT),
        (10, "command", TEXT),
        (11, "cwd", TEXT),
        (12, "started_ns", LONG),
        (13, "ended_ns", LONG),
        (14, "exit", LONG),
        (15, "signal", LONG),
    ),
    ("process",),
    ("program",),
)

FILES = LakeTable(
    "files",
    COMMON
    + (
        (6, "file", LONG),
        (7, "path", TEXT),
        (8, "path_bytes", BYTES),
        (9, "kind", TEXT),
        (10, "version", LONG),
        (11, "previous", LONG),
        (12, "size", LONG),
        (13, "modified_ns", LONG),
        (14, "changed_ns", LONG),
        (15, "born_ns", LONG),
        (16, "digest", TEXT),
        (17, "device", LONG),
        (18, "inode", LONG),
        (19, "last", TRUTH),
        (20, "aliases", TEXT),
    ),
    ("device", "inode", "modified_ns", "digest", "path", "file"),
    ("digest", "path"),
)

EDGES = LakeTable(
    "edges",
    COMMON
    + (
        (6, "process", LONG),
        (7, "file", LONG),
        (8, "how", TEXT),
        (9, "flow", TEXT),
        (10, "certainty", TEXT),
        (11, "started_ns", LONG),
        (12, "ended_ns", LONG),
        (13, "via", TEXT),
    ),
    ("process", "started_ns"),
)

STEPS = LakeTable(
    "steps",
    COMMON
    + (
        (6, "step", TEXT),
        (7, "command", TEXT),
        (8, "cwd", TEXT),
        (9, "started_us", LONG),
        (10, "ended_us", LONG),
        (11, "inputs", TEXT),
        (12, "outputs", TEXT),
    ),
    ("number", "started_us"),
)

DERIVATIONS = LakeTable(
    "derivations",
    COMMON
    + (
        (6, "file", LONG),
        (7, "origin", LONG),
        (8, "process", LONG),
        (9, "time_ns", LONG),
    ),
    ("file", "time_ns"),
)

INFORMS = LakeTable(
    "informs",
    COMMON
    + (
        (6, "process", LONG),
        (7, "origin", LONG),
        (8, "how", TEXT),
        (9, "time_ns", LONG),
    ),
    ("process", "time_ns"),
)

#: Lakes of older writers lack this table.
CONNECTIONS = LakeTable(
    "connections",
    COMMON
    + (
        (6, "process", LONG),
        (7, "file", LONG),
        (8, "reply", LONG),
        (9, "role", TEXT),
        (10, "own", TEXT),
        (11, "other", TEXT),
        (12, "scope", TEXT),
        (13, "began_ns", LONG),
        (14, "network", LONG),
    ),
    ("own", "began_ns"),
    ("own", "other"),
)

#: The addresses that processes talked to. Lakes of older writers lack this table, too.
PEERS = LakeTable(
    "peers",
    COMMON
    + (
        (6, "process", LONG),
        (7, "address", TEXT),
        (8, "names", TEXT),
        (9, "serves", TRUTH),
        (10, "connected", TRUTH),
        (11, "errno", LONG),
        (12, "sent", LONG),
        (13, "received", LONG),
        (14, "started_ns", LONG),
        (15, "ended_ns", LONG),
    ),
    ("process", "started_ns"),
    ("address",),
)

#: `runs` is the last: its row makes the rows of the others count.
TABLES = (PROCESSES, FILES, EDGES, STEPS, DERIVATIONS, INFORMS, CONNECTIONS, PEERS, RUNS)
#: Tables that lakes of older writers lack.
LATER = (CONNECTIONS, PEERS)
#: The columns of `runs` with the numbers of a run's rows in these tables. Older writers do not know
#: the columns, so they refuse to erase a run: they would leave rows of these tables behind.
COUNTED = tuple(table.name for table in LATER)
BY_NAME = {table.name: table for table in TABLES}
