"""What can be put in front of a command. Each says whether it can run here and, if not, why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# The calls that backstory's guard and recorder watch, so that strace does comparable work.
STRACE_CALLS = "%file,%process,close,dup,dup2,dup3,pipe,pipe2,socket,connect,accept,accept4,bind,mmap,fchdir"


@dataclass(frozen=True)
class Collector:
    """A collector: how to start it in front of a command."""

    name: str
    prefix: Callable[[Path], list[str]]
    """Given a scratch directory for its log, the words before the command."""
    missing: Callable[[], str | None] = lambda: None
    """Why it can't run here, or None."""
    environment: dict[str, str] = field(default_factory=dict)


def _backstory() -> str:
    return os.environ.get("BACKSTORY", "backstory")


def _needs(program: str, hint: str) -> Callable[[], str | None]:
    return lambda: None if shutil.which(program) else f"{program} is not installed ({hint})"


def _from_environment(variable: str, what: str) -> Callable[[], str | None]:
    def check() -> str | None:
        path = os.environ.get(variable)
        if not path:
            return f"set {variable} to {what}"
        return None if Path(path).exists() else f"{variable}={path} does not exist"

    return check


def _record(*options: str) -> Callable[[Path], list[str]]:
    return lambda scratch: [_backstory(), "record", "--store", str(scratch / "store"), *options, "--"]


COLLECTORS: dict[str, Collector] = {
    c.name: c
    for c in (
        Collector("none", lambda _: []),
        Collector("backstory", _record(), _needs(_backstory(), "set BACKSTORY to its path")),
        Collector("backstory-guard-off", _record("--guard=off"), _needs(_backstory(), "set BACKSTORY to its path")),
        Collector("backstory-strict", _record("--guard=strict"), _needs(_backstory(), "set BACKSTORY to its path")),
        Collector(
            "strace",
            lambda scratch: [
                "strace",
                "-f",
                "--seccomp-bpf",
                "-qq",
                "-o",
                str(scratch / "strace.log"),
                "-e",
                f"trace={STRACE_CALLS}",
            ],
            _needs("strace", "Debian package strace"),
        ),
        Collector(
            "fsatrace",
            lambda scratch: [os.environ["FSATRACE"], "rwmdtq", str(scratch / "fsatrace.log"), "--"],
            _from_environment("FSATRACE", "the built fsatrace executable"),
        ),
        Collector(
            "fspy",
            lambda scratch: [os.environ["FSPY"], "-o", str(scratch / "fspy.csv")],
            _from_environment("FSPY", "the built fspy example `cli`"),
        ),
        Collector(
            "probe-raw",
            lambda scratch: [os.environ["PROBE"], "record", "-n", "-o", str(scratch / "probe_record")],
            _from_environment("PROBE", "the built `probe` command (and PROBE_LIB to its library's folder)"),
        ),
        Collector(
            "probe",
            lambda scratch: [os.environ["PROBE"], "record", "-o", str(scratch / "probe_log")],
            _from_environment("PROBE", "the built `probe` command (and PROBE_LIB to its library's folder)"),
        ),
    )
}


def chosen(names: Sequence[str]) -> list[Collector]:
    """Collectors by name; raises KeyError with the known names for an unknown one."""
    for name in names:
        if name not in COLLECTORS:
            raise KeyError(f"unknown collector {name!r}; known: {', '.join(COLLECTORS)}")
    return [COLLECTORS[name] for name in names]
