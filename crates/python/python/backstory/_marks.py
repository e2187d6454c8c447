"""Marks by which a recorded process names its activities.

A mark is an attempt to open a path that cannot exist: ``/dev/null/backstory/begin/WORD/WORD``. The
recorder logs the attempt in order with all other operations of the process. See
``docs/formats/marks.md``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

_PREFIX = b"/dev/null/backstory/"

#: The greatest length of a path for the kernel, without the terminating NUL.
_LONGEST = 4000

#: Bytes of a word that are percent-encoded in the path.
_ESCAPED = {byte: b"%%%02x" % byte for byte in (*range(32), ord("/"), ord("%"), 127)}


def begin(words: Sequence[str]) -> None:
    """Begins an activity inside the current one. The words are its name."""
    _say(b"begin", words)


def following(words: Sequence[str]) -> None:
    """Ends the activity that the last mark began, and begins another."""
    _say(b"next", words)


def end() -> None:
    """Ends the activity that the last mark began."""
    _say(b"end", ())


def _say(verb: bytes, words: Sequence[str], handles: Sequence[str] = ()) -> None:
    """Makes a mark about the activity with the last handle, or about the current one."""
    path = _PREFIX
    for handle in handles:
        path += b"in/" + _encoded(handle) + b"/"
    path += verb
    for word in words:
        room = _LONGEST - len(path)
        if room < 2:
            break
        path += b"/" + _cut(_encoded(word), room - 1)
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        pass


def _encoded(word: str) -> bytes:
    return b"".join(
        _ESCAPED.get(byte, bytes((byte,))) for byte in word.encode("utf-8", "surrogateescape")
    )


def _cut(word: bytes, most: int) -> bytes:
    """Cuts a word to at most ``most`` bytes, but not inside an escape or a character."""
    if len(word) <= most:
        return word
    word = word[:most]
    escape = word.rfind(b"%", max(0, most - 2))
    if escape >= 0:
        word = word[:escape]
    return word.decode("utf-8", "ignore").encode()


def is_recorded() -> bool:
    """Returns true if backstory records this process."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return b"linux-backstory.so" in maps.read()
    except OSError:
        return "BACKSTORY_ARENA" in os.environ
