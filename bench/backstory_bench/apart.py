"""Measures one command in a process of its own, which a profiler may start.

`measure.run` waits for all children of its process, so a profiler must not be one of them. Here the
profiler is the parent. This module is also the program of that process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .measure import Cost, become_subreaper, run

PACKAGES = Path(__file__).resolve().parents[1]
"""The directory from which Python imports this package."""


def measured(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], scratch: Path, before: Sequence[str] = ()
) -> tuple[int, Cost]:
    """Runs `argv` in `cwd`, and returns the process that measured it, and its cost.

    `before` has the words of the profiler. `scratch` is a directory for the order and the result.

    Raises
    ------
    SystemExit
        The profiler or the measuring process failed.
    """
    order, result = scratch / "order", scratch / "result"
    order.write_bytes(pickle.dumps((list(argv), cwd, dict(environment))))
    result.unlink(missing_ok=True)
    words = [*before, sys.executable, "-m", f"{__package__}.{Path(__file__).stem}", str(order), str(result)]
    own = os.environ | {"PYTHONPATH": str(PACKAGES)}
    done = subprocess.run(
        words, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0 or not result.exists():
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise SystemExit(f"backstory-bench: {words[0]} failed: {said[-1]}")
    pid, cost = pickle.loads(result.read_bytes())
    return int(pid), cost


def main(order: str, result: str) -> None:
    """Executes an order, and writes the result."""
    argv, cwd, environment = pickle.loads(Path(order).read_bytes())
    become_subreaper()
    cost = run(argv, cwd, environment)
    Path(result).write_bytes(pickle.dumps((os.getpid(), cost)))


if __name__ == "__main__":
    main(*sys.argv[1:])
