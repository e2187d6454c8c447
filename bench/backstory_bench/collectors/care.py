"""CARE: an archive of all files that a command used, by ptrace (PRoot)."""

from __future__ import annotations

from pathlib import Path

from .base import Collector, Log, and_runs, apt, needs, packaged

# PRoot's own filter, its default, makes it kill programs by SIGSEGV on kernels since 4.8.
ENVIRONMENT = {"PROOT_NO_SECCOMP": "1"}


def _prefix(log: Path) -> list[str]:
    return ["care", "-o", f"{log}/archive/"]


def read(log: Path) -> Log:
    """The files that the archive holds."""
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
