"""CDE and PTU, which is CDE with a provenance graph.

Both copy used files into a package, by ptrace.
"""

from __future__ import annotations

import os
from pathlib import Path

from .base import Collector, Log, apt, from_environment, needs, packaged


def read(log: Path) -> Log:
    """Returns the files in the package."""
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
