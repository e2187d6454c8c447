"""rr: record and replay. Needs a processor whose counters it knows, which many virtual machines hide."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile

from .base import Collector, apt


@functools.cache
def _missing() -> str | None:
    if not shutil.which("rr"):
        return "rr is not installed (Debian package rr)"
    with tempfile.TemporaryDirectory() as scratch:
        tried = subprocess.run(["rr", "record", "-o", f"{scratch}/t", "/bin/true"], capture_output=True, text=True)
    if tried.returncode == 0:
        return None
    lines = [line for line in tried.stderr.splitlines() if line.strip()] or ["no message"]
    return f"rr record /bin/true fails: {lines[0].strip()}"


COLLECTORS = [
    Collector(
        "rr",
        lambda log: ["rr", "record", "-o", str(log / "trace")],
        _missing,
        what="every syscall's result, for replay",
        install=apt("rr"),
        version=("rr", "--version"),
    )
]
