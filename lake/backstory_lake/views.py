"""The views of a lake, for DuckDB: those of `backstory query`, and what the lake knows besides.

A view has the columns of the view of `backstory query` with its name, in the same order, then the
lake's own ones. Only rows of published runs are in it.
"""

from __future__ import annotations

from . import printing
from .errors import MisuseError
from .tables import TABLES, LakeTable

#: SQL types of the tables' columns, by the type's name in Iceberg.
TYPES = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "int": "INTEGER",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
}

#: The columns of each view: a name, or a name and an expression over the table's columns.
VIEWS: dict[str, list[str | tuple[str, str]]] = {
    "runs": [
        *("run", "name", "note", "repeats", "command", "cwd"),
        ("started", "moment(started_ns)"),
        ("ended", "make_timestamp(ended_us)"),
        *("exit", "signal", "complete", "host", "processes", "files_read", "files_written"),
        *("started_ns", "since_boot_ns", "boot", "uid", "source", "undone", "backstory"),
        *("machine", "owner", "sensitivity", "format"),
        ("shipped", "make_timestamp(shipped_us)"),
    ],
    "processes": [
        *("process", "run", "parent", "pid", "program", "command", "cwd"),
        ("started", "moment(started_ns)"),
        ("ended", "moment(ended_ns)"),
        *("exit", "signal", "started_ns", "ended_ns", "host", "owner", "sensitivity"),
    ],
    "files": [
        *("file", "run", "path", "kind", "version", "previous", "size"),
        ("modified", "moment(modified_ns)"),
        *("digest", "device", "inode", "last", "modified_ns", "changed_ns", "born_ns"),
        *("aliases", "path_bytes", "host", "owner", "sensitivity"),
    ],
    "edges": [
        *("process", "file", "run", "how", "flow", "certainty"),
        ("started", "moment(started_ns)"),
        ("ended", "moment(ended_ns)"),
        *("via", "started_ns", "ended_ns", "host", "owner", "sensitivity"),
    ],
    "steps": [
        *("step", "run", "command", "cwd"),
        ("started", "make_timestamp(started_us)"),
        ("ended", "make_timestamp(ended_us)"),
        *("inputs", "outputs", "host", "owner", "sensitivity"),
    ],
    "derivations": [
        *("file", "origin", "process", "run"),
        ("time", "moment(time_ns)"),
        *("time_ns", "host", "owner", "sensitivity"),
    ],
    "informs": [
        *("process", "origin", "run", "how"),
        ("time", "moment(time_ns)"),
        *("time_ns", "host", "owner", "sensitivity"),
    ],
    "connections": [
        *("process", "file", "reply", "run", "role", "own", "other", "scope"),
        ("began", "moment(began_ns)"),
        *("began_ns", "network", "host", "owner", "sensitivity"),
    ],
    "peers": [
        *("process", "run", "address", "names", "serves", "connected", "errno"),
        *("sent", "received"),
        ("started", "moment(started_ns)"),
        ("ended", "moment(ended_ns)"),
        *("started_ns", "ended_ns", "host", "owner", "sensitivity"),
    ],
}

#: A moment to the µs, rounded down before 1970, too.
MOMENT = """CREATE MACRO moment(ns) AS
make_timestamp((ns::HUGEINT - ((ns % 1000) + 1000) % 1000)::BIGINT // 1000)"""


def statements(files: dict[str, list[str]]) -> list[str]:
    """The statements that make the views over the data files of each table."""
    made = [MOMENT]
    made += [_table(table, files.get(table.name, [])) for table in TABLES]
    made += [_view(table) for table in TABLES]
    return made


def _table(table: LakeTable, files: list[str]) -> str:
    columns = [(number, name, TYPES[str(kind)]) for number, name, kind in table.columns]
    if not files:
        empty = ", ".join(f'NULL::{kind} AS "{name}"' for _, name, kind in columns)
        return f"CREATE VIEW {table.name}_table AS SELECT {empty} WHERE false"
    listed = ", ".join(quoted(file) for file in files)
    # By number: a file of an older writer lacks columns, and that of a newer one has more.
    schema = ", ".join(
        f"{number}: {{name: '{name}', type: '{kind}', default_value: NULL}}"
        for number, name, kind in columns
    )
    return (
        f"CREATE VIEW {table.name}_table AS SELECT * FROM "
        f"read_parquet([{listed}], schema = MAP {{{schema}}}, hive_partitioning = false)"
    )


def _view(table: LakeTable) -> str:
    own = {name for _, name, _ in table.columns}
    shown = []
    for column in VIEWS[table.name]:
        name, meaning = (column, f'"{column}"') if isinstance(column, str) else column
        side = "" if not isinstance(column, str) else "t." if column in own else "r."
        shown.append(f'{side}{meaning} AS "{name}"')
    if table.name == "runs":
        source = "runs_table t WHERE NOT coalesce(forgotten, false)"
    else:
        source = (
            f"{table.name}_table t JOIN (SELECT number, shipment, host, owner, sensitivity "
            "FROM runs_table WHERE NOT coalesce(forgotten, false)) r USING (number, shipment)"
        )
    return f"CREATE VIEW {table.name} AS SELECT {', '.join(shown)} FROM {source}"


def quoted(text: str) -> str:
    """A text in SQL."""
    if not printing.is_utf8(text):
        raise MisuseError(f"{printing.escaped(printing.text(text))} is not UTF-8")
    return "'" + text.replace("'", "''") + "'"
