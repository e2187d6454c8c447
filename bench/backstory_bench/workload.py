"""One command of the promises, with how it is prepared and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .measure import Cost


@dataclass(frozen=True)
class Workload:
    """One command and what is promised for it."""

    name: str
    what: str
    command: Callable[[Path], list[str]]
    prepare: Callable[[Path], None]
    reset: Callable[[Path], None]
    check: Callable[[Path, Cost], str | None]
    """What is wrong with the result, or None."""
    first: float | None = None
    """Ratio promised first."""
    goal: float | None = None
    per_call: bool = False
    """The figure is what the command prints (ns per call), not its wall time."""
