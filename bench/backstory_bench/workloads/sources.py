"""Programs that no registry has: their origins, and the commits that were tried.

`--sources DIR` (or `BACKSTORY_BENCH_SOURCES`) names a directory with a subdirectory for each
program, built as its documentation describes. Nothing is built here. The results contain the commit
that was found, beside the commit that is known to work.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "BACKSTORY_BENCH_SOURCES"


def commit_of(directory: Path) -> str:
    """Returns the commit of the git tree that contains a directory; empty if git fails."""
    done = subprocess.run(["git", "-C", str(directory), "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True)
class Source:
    """A program that is distributed as sources only."""

    name: str
    origin: str
    commit: str
    """The git commit that was tried."""

    @property
    def directory(self) -> Path | None:
        """The built tree, or `None`."""
        base = os.environ.get(VARIABLE)
        path = Path(base) / self.name if base else None
        return path if path is not None and path.is_dir() else None

    def reason(self) -> str:
        """Returns the reason why the program cannot be used."""
        return f"put the built {self.name} ({self.origin}) into the directory --sources"

    def found(self) -> str:
        """Returns the commit of the present tree; empty if git fails."""
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
    """Returns a source by name."""
    return SOURCES[name]
