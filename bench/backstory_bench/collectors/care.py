"""CARE: an archive of all files that a command used, by ptrace (PRoot)."""

from __future__ import annotations

from pathlib import Path

from .base import Collector, Log, and_runs, apt, needs, packaged

# With PRoot's seccomp filter, which is its default, programs die by SIGSEGV since Linux 4.8.
ENVIRONMENT = {"PROOT_NO_SECCOMP": "1"}


def _prefix(log: Path) -> list[str]:
    return ["care", "-o", f"{log}/archive/"]


def read(log: Path) -> Log:
    """Returns the files in the archive."""
    return packaged(log / "archive" / "rootfs")


COLLECTORS = [
    Collector(
        "care",
        _prefix,
        and_runs(needs("care", "Debian package care"), _prefix, ENVIRONMENT),
        environment=ENVIRONMENT,
        what="files with contents, by ptrace",
        install=apt("care"),
        read=read,
        version=("care", "--version"),
    )
]
