"""The interface of a collector: a command prefix, a log, and a reader of the log.

An adapter checks whether its collector can run here, and gives the reason if not. It knows how the
collector is installed on a fresh Debian machine, and reads files and process starts from the log.
An adapter measures nothing.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

Files = set[str]
"""Absolute paths."""
Edges = set[tuple[str, str]]
"""Pairs (starting program, started program), by the basenames of the executables."""


@dataclass(frozen=True)
class Log:
    """The contents of a collector's log. `None` if this kind of log cannot contain it."""

    files: Files | None = None
    starts: Edges | None = None


def _no_log(_: Path) -> Log:
    return Log()


def all_bytes(log: Path) -> int:
    """Returns the size in bytes of all files in a log's directory."""
    total = 0
    for directory, _, names in os.walk(log):
        for name in names:
            path = Path(directory, name)
            if not path.is_symlink():
                total += path.stat().st_size
    return total


@dataclass(frozen=True)
class Collector:
    """A collector, and the way to start it in front of a command."""

    name: str
    prefix: Callable[[Path], list[str]]
    """Returns the words before the command, given a scratch directory for the log."""
    missing: Callable[[], str | None] = lambda: None
    """Returns the reason why the collector cannot run here, or `None`."""
    environment: dict[str, str] = field(default_factory=dict)
    what: str = ""
    """The recorded facts, in one line."""
    install: tuple[tuple[str, ...], ...] = ()
    """Commands that install the collector on a fresh Debian machine; empty if it is built by
    hand.
    """
    origin: str = ""
    """The location of the sources, for a collector that no registry has."""
    privileged: bool = False
    by_name_only: bool = False
    """It measures only if it is named: it would take too long in a whole matrix."""
    read: Callable[[Path], Log] = _no_log
    """Reads the log in the scratch directory."""
    figures: Callable[[Path], Mapping[str, object]] = lambda _: {}
    """Returns further figures of the log in the scratch directory, for the results."""
    whole: Callable[[Sequence[str], Path], list[str]] | None = None
    """Returns the whole command line, for a collector that is not a prefix."""
    version: tuple[str, ...] = ()
    """The command that prints the collector's version."""
    adds: bytes = b""
    """A regular expression for output that the collector adds to the command's standard output.

    The comparison of outputs ignores it.
    """

    def command(self, argv: Sequence[str], log: Path) -> list[str]:
        """Returns the command line of `argv` under the collector, with its log in the directory
        `log`.
        """
        return self.whole(argv, log) if self.whole else [*self.prefix(log), *argv]

    def log_bytes(self, log: Path) -> int:
        """Returns the number of bytes that the collector has written."""
        return all_bytes(log)

    def how_to_install(self) -> str:
        """Returns the instructions to install the collector, in one line."""
        if self.install:
            return " && ".join(" ".join(words) for words in self.install)
        return f"build {self.origin}" if self.origin else ""


def packaged(root: Path) -> Log:
    """Returns the files in a package's directory `root`, under their names outside the package."""
    return Log({f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file() or path.is_symlink()})


def apt(*packages: str) -> tuple[tuple[str, ...], ...]:
    """Returns the command that installs Debian packages."""
    return (("apt-get", "install", "-y", "--no-install-recommends", *packages),)


def pip(*packages: str) -> tuple[tuple[str, ...], ...]:
    """Returns the command that installs packages from PyPI."""
    return (("python3", "-m", "pip", "install", *packages),)


def needs(program: str, hint: str) -> Callable[[], str | None]:
    """Returns a check that `program` is on the path."""
    return lambda: None if shutil.which(program) else f"{program} is not installed ({hint})"


def from_environment(variable: str, what: str) -> Callable[[], str | None]:
    """Returns a check that an environment variable names an existing file."""

    def check() -> str | None:
        path = os.environ.get(variable)
        if not path:
            return f"set {variable} to {what}"
        return None if Path(path).exists() else f"{variable}={path} does not exist"

    return check


def and_runs(
    check: Callable[[], str | None], prefix: Callable[[Path], list[str]], environment: dict[str, str] | None = None
) -> Callable[[], str | None]:
    """Returns `check`, extended by a trial run, once, on a shell that starts /bin/true."""

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
    """Returns `check`, extended by the condition that the user is root."""
    return lambda: check() or (None if os.geteuid() == 0 else "needs root")
