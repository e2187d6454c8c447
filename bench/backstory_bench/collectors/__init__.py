"""The collectors: one adapter in each file."""

from __future__ import annotations

from collections.abc import Sequence

from . import (
    auditd,
    backstory,
    bpftrace,
    care,
    cde,
    fsatrace,
    fspy,
    ltrace,
    none,
    probe,
    reprozip,
    rr,
    spade,
    strace,
)
from .base import Collector, Log

_ADAPTERS = (
    none,
    strace,
    fsatrace,
    ltrace,
    rr,
    reprozip,
    care,
    cde,
    probe,
    fspy,
    spade,
    bpftrace,
    auditd,
    backstory,
)

COLLECTORS: dict[str, Collector] = {c.name: c for adapter in _ADAPTERS for c in adapter.COLLECTORS}
"""All collectors by name, the native run first."""


def chosen(names: Sequence[str]) -> list[Collector]:
    """Returns collectors by name. Raises `KeyError` with the known names for an unknown one."""
    for name in names:
        if name not in COLLECTORS:
            raise KeyError(f"unknown collector {name!r}; known: {', '.join(COLLECTORS)}")
    return [COLLECTORS[name] for name in names]


__all__ = ["COLLECTORS", "Collector", "Log", "chosen"]
