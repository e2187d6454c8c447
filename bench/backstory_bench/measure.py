"""Runs one command and measures its wall time, and the processor time of all its descendants.

The measuring process is a subreaper. Processes that outlive the command, such as a supervisor that
finalizes its log or an indexer, become its children. It waits for them before the next measurement
and counts their processor time.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
BACKGROUND_LIMIT_S = 300.0


@dataclass(frozen=True)
class Cost:
    """The cost of one run of a command, in seconds."""

    wall: float
    cpu: float
    """User and system time of the command and of its descendants."""
    background: float
    """Time from the end of the command to the end of its last descendant."""
    status: int
    output: bytes
    """The standard output and standard error of the command."""
    ended: float
    """The moment at which the command ended, by CLOCK_MONOTONIC."""


class Unfinished(RuntimeError):
    """A descendant of the command did not end within the time limit."""


def become_subreaper() -> None:
    """Makes this process the parent of orphaned descendants. Call it once before `run`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def reap_orphans() -> None:
    """Waits for the descendants that have become children of this process."""
    deadline = time.monotonic() + BACKGROUND_LIMIT_S
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            if time.monotonic() > deadline:
                raise Unfinished(f"processes were still running {BACKGROUND_LIMIT_S:.0f} s after the command had ended")
            time.sleep(0.002)


def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Cost:
    """Runs `argv` in `cwd`, and waits for its end and that of its descendants."""
    before = _cpu_of_children()
    output = cwd / ".bench-stdout"
    with output.open("wb") as out:
        start = time.monotonic()
        child = subprocess.Popen(
            argv, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
        status = child.wait()
        ended = time.monotonic()
    reap_orphans()
    background = time.monotonic() - ended
    return Cost(ended - start, _cpu_of_children() - before, background, status, output.read_bytes(), ended)
