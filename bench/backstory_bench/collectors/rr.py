"""rr: record and replay. It needs known hardware counters, which many virtual machines hide."""

from __future__ import annotations

from pathlib import Path

from .base import Collector, and_runs, apt, needs


def _prefix(log: Path) -> list[str]:
    return ["rr", "record", "-o", str(log / "trace")]


COLLECTORS = [
    Collector(
        "rr",
        _prefix,
        and_runs(needs("rr", "Debian package rr"), _prefix),
        what="every syscall's result, for replay",
        install=apt("rr"),
        version=("rr", "--version"),
    )
]
