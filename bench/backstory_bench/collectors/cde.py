"""CDE, and PTU, which is CDE with a provenance graph: both copy what a command used into a package, by ptrace."""

from __future__ import annotations

import os
from pathlib import Path

from .base import Collector, Log, apt, from_environment, needs, packaged


def read(log: Path) -> Log:
    """The files that the package holds."""
    return packaged(log / "package" / "cde-root")


COLLECTORS = [
    Collector(
        "cde",
        lambda log: ["cde", "-o", str(log / "package")],
        needs("cde", "Debian package cde"),
        what="files with contents, by ptrace",
        install=apt("cde"),
        read=read,
    ),
    Collector(
        "ptu",
        lambda log: [os.environ["PTU"], "-o", str(log / "package")],
        from_environment("PTU", "the built ptu executable"),
        what="as cde, and a graph",
        origin="https://bitbucket.org/depauldbgroup/provenance-to-use, and set PTU",
        read=read,
    ),
]
