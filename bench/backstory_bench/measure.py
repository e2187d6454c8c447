"""Runs one command and says what it cost: wall time until the prompt is back, and all CPU time it caused.

The measuring process is a subreaper: what the command leaves behind (a supervisor sealing its log, an indexer) becomes its child, is
waited for before the next measurement begins, and its CPU time is counted.
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
SETTLE_LIMIT_S = 300.0


@dataclass(frozen=True)
class Cost:
    """What one run of a command cost, in seconds."""

    wall: float
    cpu: float
    """User and system time of the command and of everything it left behind."""
    settle: float
    """From the prompt until nothing of it is left."""
    status: int
    output: bytes
    """What it printed on stdout."""


class Unfinished(RuntimeError):
    """Something that the command left behind did not end in time."""


def become_subreaper() -> None:
    """Makes orphans of what we run our children. Call once before `run`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _reap_orphans() -> None:
    deadline = time.monotonic() + SETTLE_LIMIT_S
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            if time.monotonic() > deadline:
                raise Unfinished(f"processes were still running {SETTLE_LIMIT_S:.0f} s after the command had ended")
            time.sleep(0.002)


def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Cost:
    """Runs `argv` in `cwd` to its end and waits for all it left behind."""
    before = _cpu_of_children()
    output = cwd / ".bench-stdout"
    with output.open("wb") as out:
        start = time.perf_counter()
        child = subprocess.Popen(
            argv, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
        status = child.wait()
        wall = time.perf_counter() - start
    _reap_orphans()
    settle = time.perf_counter() - start - wall
    return Cost(wall, _cpu_of_children() - before, settle, status, output.read_bytes())
