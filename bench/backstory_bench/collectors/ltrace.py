"""ltrace: calls of dynamic libraries. In the paper it runs on some workloads only."""

from __future__ import annotations

import os
import re
from pathlib import Path

from .base import Collector, Log, apt, needs

_CALL = re.compile(
    r'^\d+ [^>]*->(f?open(?:at)?(?:64)?|exec\w+|unlink(?:at)?|rename\w*)\((?:0x[0-9a-f]+, )?"([^"]*)"(.*)\)\s+= (\S+)'
)
_SECOND = re.compile(r'^, (?:0x[0-9a-f]+, )?"([^"]*)"')


def read(log: Path) -> Log:
    """Reads the names in successful calls.

    Relative names are resolved against the start directory.
    """
    cwd = (log / "cwd").read_text()
    files: set[str] = set()
    for line in (log / "ltrace.log").read_text(errors="surrogateescape").splitlines():
        call = _CALL.match(line)
        if call and call[4] not in (("0", "nil") if call[1].startswith("fopen") else ("-1", "0xffffffff")):
            second = _SECOND.match(call[3])
            files |= {os.path.join(cwd, name) for name in (call[2], *(second.groups() if second else ()))}
    return Log(files)


COLLECTORS = [
    Collector(
        "ltrace",
        lambda log: ["ltrace", "-f", "-o", str(log / "ltrace.log"), "-e", "open*+fopen*+exec*+rename*+unlink*"],
        needs("ltrace", "Debian package ltrace"),
        what="library calls that open, run, rename and remove",
        install=apt("ltrace"),
        read=read,
        version=("ltrace", "-V"),
    )
]
