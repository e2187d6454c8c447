"""Stores whose runs wait for the indexer, so that its work can be measured by itself.

After each run, a background indexer leaves its work to the process that has the indexer's lock.
While a measurement has that lock, runs are recorded, and stay as they are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from .measure import Cost, run

LOCK = "index.lock"


@contextlib.contextmanager
def held(store: Path) -> Iterator[None]:
    """Makes the store if it does not exist, and keeps indexers from it."""
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(store / LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def environment() -> dict[str, str]:
    """Returns the environment of all programs, without the settings of another recording."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BACKSTORY")} | {
        "LC_ALL": "C.UTF-8"
    }


def checked(words: Sequence[str], work: Path) -> Cost:
    """Runs a command and all of its background work. Call `become_subreaper` before.

    Raises
    ------
    SystemExit
        It fails.
    """
    cost = run(words, work, environment())
    if cost.status != 0:
        said = cost.output.decode(errors="replace").strip()[-300:]
        raise SystemExit(f"backstory-bench: {' '.join(words)} failed with status {cost.status}: {said}")
    return cost


def recorded(command: Sequence[str], store: Path, backstory: str, contents: str) -> list[str]:
    """Returns the words that record a command."""
    return [backstory, "record", "--store", str(store), "--contents", contents, "--", *command]
