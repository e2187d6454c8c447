"""The first bytes of a recorded request and of its answer, and where a trace of calls has them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .replays import as_owner, backstory

FIRST = 32
"""Bytes of a request that are looked for. They tell it from others on the same server."""
FIRST_OF_ANSWER = 16
"""Bytes of an answer that are looked for. Some programs write the first line of an answer alone."""

ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|([rnt\\]))")
PLAIN = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\"}
REDACTED = "<redacted>"

CALL = re.compile(r"(?:<\.\.\. )?(\w+)(?:\(| resumed>)")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
READS = frozenset(("read", "readv", "recvfrom", "recvmsg", "recvmmsg"))
WRITES = frozenset(("write", "writev", "sendto", "sendmsg", "sendmmsg"))


@dataclass(frozen=True)
class Exchange:
    """The first bytes in both directions. Empty if the record does not have them."""

    received: bytes = b""
    sent: bytes = b""


def unescaped(text: str) -> bytes:
    """Returns the bytes of a text of `scene --json`, which escapes control characters as C does."""
    found = bytearray()
    end = 0
    for match in ESCAPED.finditer(text):
        found += text[end : match.start()].encode()
        byte, character, plain = match.groups()
        found += bytes.fromhex(byte) if byte else (chr(int(character, 16)) if character else PLAIN[plain]).encode()
        end = match.end()
    return bytes(found + text[end:].encode())


def exchange_of(store: Path, run: str, request: Mapping[str, Any], owner: str | None) -> Exchange:
    """Returns the first bytes of a request. `start` of the request is text with all digits."""
    words = backstory(store, "scene", f"@{request['start']}", "--run", run, "--json", "--most", "50")
    done = subprocess.run(words, capture_output=True, check=True, text=True, errors="replace", **as_owner(owner))
    for incident in json.loads(done.stdout)["incidents"]:
        found = incident["request"]
        if found and found["number"] == request["number"]:
            received, sent = (unescaped(found[side]["text"].partition(REDACTED)[0]) for side in ("received", "sent"))
            return Exchange(received[:FIRST], sent[:FIRST_OF_ANSWER])
    return Exchange()


def traced(text: str) -> Exchange:
    """Returns all bytes that the calls in the output of `strace -f -xx` read and wrote.

    Some programs read byte by byte, or write an answer in several parts. So the bytes of successive
    calls stand one behind the other.
    """
    sides = {READS: bytearray(), WRITES: bytearray()}
    for line in text.splitlines():
        _, _, words = line.partition(" ")
        call = CALL.match(words.lstrip())
        for names, found in sides.items():
            if call and call[1] in names:
                for part in TEXT.findall(words):
                    found += bytes.fromhex(part.replace("\\x", ""))
    return Exchange(bytes(sides[READS]), bytes(sides[WRITES]))
