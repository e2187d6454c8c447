"""CARE: an archive of all files that a command used, by ptrace (PRoot)."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile

from .base import Collector, apt


@functools.cache
def _missing() -> str | None:
    if not shutil.which("care"):
        return "care is not installed (Debian package care)"
    with tempfile.TemporaryDirectory() as scratch:
        argv = ["care", "-o", f"{scratch}/a/", "/bin/true"]
        try:
            tried = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=scratch)
        except subprocess.TimeoutExpired:
            return "care hangs on /bin/true"
    return None if tried.returncode == 0 else f"care fails on /bin/true with status {tried.returncode}"


COLLECTORS = [
    Collector(
        "care",
        lambda log: ["care", "-o", f"{log}/archive/"],
        _missing,
        what="files with contents, by ptrace",
        install=apt("care"),
        version=("care", "--version"),
    )
]
