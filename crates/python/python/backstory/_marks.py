"""Marks with which this process names its activities, if it is recorded.

A mark is the attempt to open a path that cannot exist: ``/dev/null/backstory/begin/WORD/WORD``. The
recorder logs it in order with all other operations of the process. See ``docs/graph.md``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

_PREFIX = b"/dev/null/backstory/"

#: The longest path that the kernel takes, without its end.
_LONGEST = 4000

#: Bytes of a word that are not themselves in a path.
_ESCAPED = {byte: b"%%%02x" % byte for byte in (*range(32), ord("/"), ord("%"), 127)}


def begin(words: Sequence[str]) -> None:
    """An activity begins inside the present one. The words are its name."""
    _say(b"begin", words)


def following(words: Sequence[str]) -> None:
    """The activity that the last mark began ends, and another begins."""
    _say(b"next", words)


def end() -> None:
    """The activity ends that the last mark began."""
    _say(b"end", ())


def _say(verb: bytes, words: Sequence[str]) -> None:
    path = _PREFIX + verb
    for word in words:
        encoded = b"".join(
            _ESCAPED.get(byte, bytes((byte,))) for byte in word.encode("utf-8", "surrogateescape")
        )
        room = _LONGEST - len(path)
        if room < 2:
            break
        path += b"/" + _cut(encoded, room - 1)
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        pass


def _cut(word: bytes, most: int) -> bytes:
    """The beginning of a word, without half an escape or half a character."""
    if len(word) <= most:
        return word
    word = word[:most]
    escape = word.rfind(b"%", max(0, most - 2))
    if escape >= 0:
        word = word[:escape]
    return word.decode("utf-8", "ignore").encode()


def is_recorded() -> bool:
    """True if backstory records this process."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return b"linux-backstory.so" in maps.read()
    except OSError:
        return "BACKSTORY_ARENA" in os.environ
