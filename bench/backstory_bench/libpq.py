"""Executes statements of PostgreSQL through its client library, libpq.

A client that takes little processor time itself: psql would be a process for each statement.
"""

from __future__ import annotations

import ctypes
from typing import Any

LIBRARY = "libpq.so.5"
DONE = (1, 2)
"""The states of a result without an error: PGRES_COMMAND_OK and PGRES_TUPLES_OK."""
POINTER, TEXT, INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "PQconnectdb": (POINTER, [TEXT]),
    "PQstatus": (INT, [POINTER]),
    "PQerrorMessage": (TEXT, [POINTER]),
    "PQbackendPID": (INT, [POINTER]),
    "PQfinish": (None, [POINTER]),
    "PQexec": (POINTER, [POINTER, TEXT]),
    "PQprepare": (POINTER, [POINTER, TEXT, TEXT, INT, POINTER]),
    "PQexecPrepared": (POINTER, [POINTER, TEXT, INT, ctypes.POINTER(TEXT), POINTER, POINTER, INT]),
    "PQresultStatus": (INT, [POINTER]),
    "PQresultErrorMessage": (TEXT, [POINTER]),
    "PQntuples": (INT, [POINTER]),
    "PQgetvalue": (TEXT, [POINTER, INT, INT]),
    "PQclear": (None, [POINTER]),
}


def library() -> ctypes.CDLL | None:
    """Returns the library. `None` if it is not installed."""
    try:
        loaded = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


class Session:
    """A connection to a server on this machine."""

    def __init__(self, pq: ctypes.CDLL, port: int, user: str, database: str) -> None:
        self._pq = pq
        self._names: dict[str, bytes] = {}
        words = f"host=127.0.0.1 port={port} user={user} dbname={database} application_name=backstory-bench"
        self._connection = pq.PQconnectdb(words.encode())
        if pq.PQstatus(self._connection) != 0:
            raise SystemExit(f"backstory-bench: PostgreSQL: {pq.PQerrorMessage(self._connection).decode()}")
        self.process: int = pq.PQbackendPID(self._connection)
        """The server's process for this session."""

    def close(self) -> None:
        """Ends the session."""
        self._pq.PQfinish(self._connection)

    def _value(self, result: int, text: str) -> str | None:
        """Returns the first value of a result, and frees the result."""
        try:
            if self._pq.PQresultStatus(result) not in DONE:
                said = self._pq.PQresultErrorMessage(result).decode()
                raise SystemExit(f"backstory-bench: PostgreSQL refuses {text[:60]}: {said}")
            if self._pq.PQntuples(result) == 0:
                return None
            found: bytes = self._pq.PQgetvalue(result, 0, 0)
            return found.decode()
        finally:
            self._pq.PQclear(result)

    def execute(self, text: str) -> str | None:
        """Executes a statement. Returns the first value of its first row."""
        return self._value(self._pq.PQexec(self._connection, text.encode()), text)

    def prepared(self, text: str, *values: object) -> str | None:
        """Executes a statement that is prepared once. Returns the first value of its first row."""
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = f"s{len(self._names)}".encode()
            self._value(self._pq.PQprepare(self._connection, name, text.encode(), 0, None), text)
        given = (TEXT * len(values))(*[str(value).encode() for value in values])
        result = self._pq.PQexecPrepared(self._connection, name, len(values), given, None, None, 0)
        return self._value(result, text)
