"""CARE: an archive of all files that a command used, by ptrace (PRoot)."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from .base import Collector, Log, apt


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


def read(log: Path) -> Log:
    """The files that the archive holds, by the names they have outside."""
    root = log / "archive" / "rootfs"
    return Log({f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file() or path.is_symlink()})


COLLECTORS = [
    Collector(
        "care",
        lambda log: ["care", "-o", f"{log}/archive/"],
        _missing,
        what="files with contents, by ptrace",
        install=apt("care"),
        read=read,
        version=("care", "--version"),
    )
]
