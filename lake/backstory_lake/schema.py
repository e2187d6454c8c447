"""The columns of a lake's views, each with its meaning.

The program `backstory` describes the columns of its own views. The lake's own are described here.
"""

from __future__ import annotations

from .errors import LakeError
from .printing import Answer
from .program import Program

#: A question about all columns.
COLUMNS = (
    'SELECT table_name AS "table", column_name AS "column", data_type AS type '
    "FROM information_schema.columns WHERE NOT ends_with(table_name, '_table') "
    "ORDER BY table_name, ordinal_position"
)

#: The columns that a store lacks, or that mean something else there.
OWN = {
    "host": "host name of the machine",
    "machine": "the store that sent the run: tells machines with one host name apart",
    "owner": "owner by the configuration of `ship`; by default the user of the run",
    "sensitivity": "sensitivity by the configuration of `ship`",
    "format": "version of the lake's tables",
    "shipped": "when the run came into the lake",
    "path_bytes": "the path, if it is not UTF-8",
}

#: The keys, which differ from those in a store.
KEYS = {
    (table, key): "key, unique in the lake"
    for table, key in [("processes", "process"), ("files", "file")]
}


def described(answer: Answer) -> Answer:
    """The rows of `COLUMNS`, each with the meaning of the column."""
    about = _of_program() | KEYS
    rows = ((*row, OWN.get(row[1]) or about.get((row[0], row[1]), "")) for row in answer.rows)
    return Answer([*answer.names, "about"], rows)


def _of_program() -> dict[tuple[str, str], str]:
    """The meaning of the columns that a store has, too, by table and column."""
    try:
        columns = Program(None).columns()
    except LakeError:
        # A lake can be asked on a machine without the program.
        return {}
    return {(one["table"], one["column"]): one["about"] for one in columns}
