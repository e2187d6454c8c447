"""Statements of a program about its own work, recorded beside its system calls.

>>> from backstory import disclosure
>>> with disclosure.activity("train", "epoch 3"):
...     disclosure.read("s3://bucket/images")
...     disclosure.write("model:3")
...     disclosure.note(loss=0.12)

``backstory of model:3`` then answers what the model came from. The name of a thing is a URI with a
scheme of the program's own. A part of a thing is a kind and a value: ``part="row=42"`` or
``part="bytes=0-4095"``. Files need no statement: their uses are observed.

Outside of a recording, each function costs about a microsecond and does nothing. No function
raises an error because of the recording.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _marks

__all__ = [
    "LogHandler",
    "Span",
    "activity",
    "change",
    "delete",
    "derive",
    "note",
    "read",
    "record",
    "write",
]

_BEGUN = itertools.count()


@contextmanager
def activity(what: str, *words: str) -> Iterator[None]:
    """Makes the block an activity inside the current one of this process."""
    _marks.begin([what, *words])
    try:
        yield
    finally:
        _marks.end()


def _thing(name: str, part: str | None) -> tuple[str, ...]:
    return (name,) if part is None else (name, part)


class _Speaker:
    """Makes statements about one activity."""

    _handles: tuple[str, ...] = ()

    def _say(self, verb: bytes, *words: str) -> None:
        _marks._say(verb, words, self._handles)

    def read(self, name: str, part: str | None = None) -> None:
        """The activity read a thing."""
        self._say(b"read", *_thing(name, part))

    def write(self, name: str, part: str | None = None) -> None:
        """The activity made a thing, or all of its content is new."""
        self._say(b"write", *_thing(name, part))

    def change(self, name: str, part: str | None = None) -> None:
        """The activity changed a part of a thing."""
        self._say(b"change", *_thing(name, part))

    def delete(self, name: str, part: str | None = None) -> None:
        """The activity deleted a thing."""
        self._say(b"delete", *_thing(name, part))

    def derive(self, name: str, source: str) -> None:
        """The activity made the thing ``name`` from the thing ``source``."""
        self._say(b"derive", name, source)

    def note(self, **attributes: object) -> None:
        """Gives the activity attributes."""
        for key, value in attributes.items():
            self._say(b"note", key, str(value))

    def record(self, kind: str, payload: object) -> None:
        """Adds an extended record.

        ``kind`` has a dot, as ``org.example.metric``. A payload that is not text becomes JSON.
        """
        text = payload if isinstance(payload, str) else json.dumps(payload, default=str)
        self._say(b"record", kind, text)


class Span(_Speaker):
    """An activity that may overlap with others, as a request of a server.

    Files that the process reads meanwhile count for the process. Each overlapping activity may have
    used them.
    """

    def __init__(
        self, what: str, *words: str, parent: Span | None = None, handle: str | None = None
    ) -> None:
        handle = handle or f"python-{next(_BEGUN)}"
        self._handles = (handle,)
        around = parent._handles if parent else ()
        _marks._say(b"begin", [what, *words], [*around, handle])

    def end(self) -> None:
        """Ends the activity."""
        self._say(b"end")

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


class LogHandler(logging.Handler):
    """Makes each record of ``logging`` an extended record of type ``python.log``."""

    def emit(self, record: logging.LogRecord) -> None:
        """Makes the extended record."""
        try:
            said: dict[str, Any] = {
                "logger": record.name,
                "level": record.levelname,
                "message": self.format(record),
            }
        except Exception:
            self.handleError(record)
            return
        _PROCESS.record("python.log", said)


_PROCESS = _Speaker()

read = _PROCESS.read
write = _PROCESS.write
change = _PROCESS.change
delete = _PROCESS.delete
derive = _PROCESS.derive
note = _PROCESS.note
record = _PROCESS.record
