"""Explains a wrong question: the name that it probably meant, and the next step.

In: an error of DuckDB about the text of a question. Out: one line.
"""

from __future__ import annotations

import re

import duckdb

from .errors import MisuseError, first_line

#: The next step after a wrong question.
TABLES = "`backstory query --lake LAKE --schema` lists the tables"
#: Tables of `backstory query` for a store that a lake does not have.
OF_A_STORE = ("facts", "changes")

_COLUMN = re.compile(r'Referenced column "(.*)" not found')
_TABLE = re.compile(r"Table with name (\S+) does not exist")
#: DuckDB's guess at a name, on a line of its own.
_GUESS = re.compile(r'^(?:Candidate bindings: |Did you mean )"([^"]+)"', re.MULTILINE)
#: Tables of DuckDB itself, which are never meant.
_INTERNAL = ("pg_", "duckdb_", "sqlite_", "information_schema")


def explained(error: duckdb.Error) -> MisuseError:
    """A wrong question, with the name that was probably meant."""
    said = first_line(error)
    table = _TABLE.search(said)
    if table and table[1].lower() in OF_A_STORE:
        return MisuseError(
            f"a lake has no table {table[1].lower()}, because contents of files are not shipped; "
            "`backstory query` without --lake asks a store"
        )
    return MisuseError(f"{said}{_hint(said, str(error))}; {TABLES}")


def _hint(said: str, whole: str) -> str:
    column = _COLUMN.search(said)
    # No column of a lake has such a name. SQLite takes it for a text.
    if column and not re.fullmatch(r"[\w.]+", column[1]):
        return " A text has single quotes: 'text'"
    guess = _GUESS.search(whole)
    if guess is None or guess[1].startswith(_INTERNAL):
        return ""
    meant = "".join(c if c.isprintable() else "?" for c in guess[1])
    return f' Did you mean "{meant}"?'
