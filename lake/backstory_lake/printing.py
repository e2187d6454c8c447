"""Prints answers: as a table for the terminal, and as JSON."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

import duckdb

#: Rows that are fetched at once.
ROWS = 10_000
#: The columns of a line if stdout is no terminal, or one without a known width. The least columns.
PAGE, TERMINAL, LEAST = 100, 80, 20


@dataclass(frozen=True)
class Answer:
    """The names of the columns, and the rows."""

    names: list[str]
    rows: Iterator[tuple[Any, ...]]

    @classmethod
    def of(
        cls,
        found: duckdb.DuckDBPyConnection,
        watched: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Answer:
        """An answer of DuckDB. `watched` is entered while it computes rows."""

        def rows() -> Iterator[tuple[Any, ...]]:
            while True:
                with watched():
                    some = found.fetchmany(ROWS)
                if not some:
                    return
                yield from some

        return cls([column[0] for column in found.description or []], rows())


def json_array(answer: Answer, out: TextIO) -> None:
    """Prints an array of objects."""
    between = "[\n"
    for row in answer.rows:
        out.write(between + json.dumps(dict(zip(answer.names, map(_plain, row)))))
        between = ",\n"
    out.write("[]\n" if between == "[\n" else "\n]\n")


def table(answer: Answer, out: TextIO) -> None:
    """Prints columns for the terminal."""
    rows = [[escaped(text(one)) for one in row] for row in answer.rows]
    if not rows:
        print("no rows", file=out)
        return
    widths = [max(map(len, column)) for column in zip(answer.names, *rows)]
    for row in [answer.names, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), file=out)


def _plain(value: Any) -> Any:
    """A value in JSON: moments as `backstory query` writes them."""
    if isinstance(value, datetime):
        return (
            value.astimezone(UTC).replace(tzinfo=None).strftime("%Y-%m-%d %H:%M:%S.%f")
            if (value.tzinfo)
            else value.strftime("%Y-%m-%d %H:%M:%S.%f")
        )
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if value is None or isinstance(value, (bool, int, float, str)):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return str(value)


def text(value: Any) -> str:
    """A value as a table or CSV has it."""
    plain = _plain(value)
    if plain is None:
        return ""
    shown = plain if isinstance(plain, str) else json.dumps(plain)
    return shown.encode(errors="surrogateescape").decode(errors="replace")


def is_utf8(value: str) -> bool:
    """Whether a word of the command line was UTF-8."""
    return not any("\udc80" <= one <= "\udcff" for one in value)


def escaped(shown: str) -> str:
    """A text whose characters all print."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def moment(ns: int | None) -> str | None:
    """A number of ns since 1970 as a date, in UTC."""
    if ns is None:
        return None
    # Whole seconds: a float of today's ns would be inexact.
    date = datetime(1970, 1, 1) + timedelta(seconds=ns // 10**9)
    return date.strftime("%Y-%m-%d %H:%M:%S")


def columns() -> int:
    """The columns of the terminal, or of a page: as `crates/cli/src/text/account.rs` has them."""
    if not sys.stdout.isatty():
        return PAGE
    said = os.environ.get("COLUMNS", "")
    try:
        found = int(said) if said.isdecimal() else os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        found = 0
    return found if found >= LEAST else TERMINAL


def cut(shown: str, most: int) -> str:
    """A text of at most so many columns, with `…` at its end if it was wider."""
    if sum(map(_width, shown)) <= most:
        return shown
    used, kept = 1, ""
    for one in shown:
        used += _width(one)
        if used > most:
            break
        kept += one
    return kept + "…" if most > 0 else ""


def _width(one: str) -> int:
    if unicodedata.combining(one):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1
