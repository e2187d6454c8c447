"""What every collector is to the benchmark: words before a command, a log, and what can be read from it.

An adapter says whether its collector can run here (never silently left out), how it gets onto a fresh Debian machine, and which files
and process starts its log names. It holds no measurement.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

Files = set[str]
"""Absolute paths."""
Edges = set[tuple[str, str]]
"""(program that started, program started), by the basename of what was executed."""


@dataclass(frozen=True)
class Log:
    """What a collector's log says; None where its kind of log can't say it."""

    files: Files | None = None
    starts: Edges | None = None


def _no_log(_: Path) -> Log:
    return Log()


def all_bytes(log: Path) -> int:
    """The size of all that lies in a log's directory, in bytes."""
    total = 0
    for directory, _, names in os.walk(log):
        for name in names:
            path = Path(directory, name)
            if not path.is_symlink():
                total += path.stat().st_size
    return total


@dataclass(frozen=True)
class Collector:
    """A collector: how to start it in front of a command."""

    name: str
    prefix: Callable[[Path], list[str]]
    """Given a scratch directory for its log, the words before the command."""
    missing: Callable[[], str | None] = lambda: None
    """Why it can't run here, or None."""
    environment: dict[str, str] = field(default_factory=dict)
    what: str = ""
    """What it records, in a line."""
    install: tuple[tuple[str, ...], ...] = ()
    """Commands that bring it onto a fresh Debian machine; none where it has to be built by hand (`origin`)."""
    origin: str = ""
    """Where its sources are, for what no registry has."""
    privileged: bool = False
    read: Callable[[Path], Log] = _no_log
    """Reads the log in the scratch directory."""
    whole: Callable[[Sequence[str], Path], list[str]] | None = None
    """The whole command line, for a collector that is not merely put in front."""
    version: tuple[str, ...] = ()
    """The command that prints its version."""
    adds: bytes = b""
    """A regular expression of what it adds to the command's standard output itself; not held against it."""

    def command(self, argv: Sequence[str], log: Path) -> list[str]:
        """`argv` under the collector, with its log in the directory `log`."""
        return self.whole(argv, log) if self.whole else [*self.prefix(log), *argv]

    def log_bytes(self, log: Path) -> int:
        """How much the collector has written, in bytes."""
        return all_bytes(log)

    def how_to_install(self) -> str:
        """A line for the person who wants it."""
        if self.install:
            return " && ".join(" ".join(words) for words in self.install)
        return f"build {self.origin}" if self.origin else ""


def packaged(root: Path) -> Log:
    """The files that a package's directory `root` holds, by the names they have outside."""
    return Log({f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file() or path.is_symlink()})


def apt(*packages: str) -> tuple[tuple[str, ...], ...]:
    """The command that installs Debian packages."""
    return (("apt-get", "install", "-y", "--no-install-recommends", *packages),)


def pip(*packages: str) -> tuple[tuple[str, ...], ...]:
    """The command that installs from PyPI."""
    return (("python3", "-m", "pip", "install", *packages),)


def needs(program: str, hint: str) -> Callable[[], str | None]:
    """A check that `program` is on the path."""
    return lambda: None if shutil.which(program) else f"{program} is not installed ({hint})"


def from_environment(variable: str, what: str) -> Callable[[], str | None]:
    """A check that a variable names a file that exists."""

    def check() -> str | None:
        path = os.environ.get(variable)
        if not path:
            return f"set {variable} to {what}"
        return None if Path(path).exists() else f"{variable}={path} does not exist"

    return check


def and_runs(
    check: Callable[[], str | None], prefix: Callable[[Path], list[str]], environment: dict[str, str] | None = None
) -> Callable[[], str | None]:
    """`check`, and that the collector comes through a shell that starts /bin/true, which is tried once."""

    @functools.cache
    def tried() -> str | None:
        with tempfile.TemporaryDirectory() as scratch:
            words = [*prefix(Path(scratch)), "/bin/sh"]
            shown = " ".join(Path(word).name if word.startswith("/") else word for word in words)
            words += ["-c", "/bin/true; exit"]
            try:
                run = subprocess.run(
                    words,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=60,
                    cwd=scratch,
                    env=os.environ | (environment or {}),
                )
            except subprocess.TimeoutExpired:
                return f"{shown} hangs"
        if run.returncode == 0:
            return None
        lines = [line.strip() for line in _COLOURS.sub("", run.stderr).splitlines() if line.strip()]
        return f"{shown} fails: {'; '.join(lines[:3]) or 'no message'}"

    return lambda: check() or tried()


def as_root(check: Callable[[], str | None]) -> Callable[[], str | None]:
    """`check`, and that we are root."""
    return lambda: check() or (None if os.geteuid() == 0 else "needs root")
