"""One command of the promises: its preparation, its reset and its check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .measure import Cost


@dataclass(frozen=True)
class Workload:
    """One command, and the promise for it."""

    name: str
    what: str
    command: Callable[[Path], list[str]]
    prepare: Callable[[Path], None]
    reset: Callable[[Path], None]
    check: Callable[[Path, Cost], str | None]
    """Returns the problem with the result, or `None`."""
    first: float | None = None
    """The ratio of the first promise."""
    goal: float | None = None
    per_call: bool = False
    """True if the figure is printed by the command (ns per call), instead of its wall time."""
