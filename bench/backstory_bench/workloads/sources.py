"""What no registry has: where it comes from, and the commit that was tried.

`--sources DIR` (or `BACKSTORY_BENCH_SOURCES`) holds a directory for each, already built as its own documentation says; nothing is built here.
The commit found is written into the results beside the one that is known to work.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "BACKSTORY_BENCH_SOURCES"


def commit_of(directory: Path) -> str:
    """The commit of the git tree that a directory lies in; empty where git can't tell."""
    done = subprocess.run(["git", "-C", str(directory), "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True)
class Source:
    """A program that comes as sources only."""

    name: str
    origin: str
    commit: str
    """The git commit that was tried: a digest of the whole tree."""

    @property
    def directory(self) -> Path | None:
        """Its built tree, if there is one."""
        base = os.environ.get(VARIABLE)
        path = Path(base) / self.name if base else None
        return path if path is not None and path.is_dir() else None

    def reason(self) -> str:
        """Why it can't be used."""
        return f"put the built {self.name} ({self.origin}) into the directory that --sources names"

    def found(self) -> str:
        """The commit of the tree that is there; empty where git can't tell."""
        return commit_of(self.directory) if self.directory else ""


SOURCES: dict[str, Source] = {
    s.name: s
    for s in (
        Source("lmbench", "https://github.com/intel/lmbench", "941a0dcc0e7bdd9bb0dee05d7f620e77da8c43af"),
        Source("splash-3", "https://github.com/SakalisC/Splash-3", "e35efba59688a585275d19a16bc6f9371da978e0"),
        Source(
            "byte-unixbench", "https://github.com/kdlucas/byte-unixbench", "986b674a1e50eedd944bc08d6bdc8be925b2bc65"
        ),
    )
}


def source(name: str) -> Source:
    """One of the table."""
    return SOURCES[name]
