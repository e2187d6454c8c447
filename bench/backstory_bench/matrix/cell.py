"""One cell of the matrix: a workload under a collector, its figures, and its problems."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..collectors import Collector
from ..workloads import Instance
from . import execute
from .cgroup import Group
from .execute import Limits, Outcome
from .journal import Row


@dataclass(frozen=True)
class Native:
    """The native run with which other runs are compared."""

    wall_s: float
    status: int
    digest: str


def environment(collector: Collector) -> dict[str, str]:
    """Returns the environment: ours without backstory's variables, and the collector's own."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("BACKSTORY")}
    return keep | {"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"} | collector.environment


def figure(instance: Instance, outcome: Outcome) -> float | None:
    """Returns the figure that the program printed, smaller being better.

    `None` if the program prints no figure, or an invalid one.
    """
    if instance.figure is None:
        return None
    text = outcome.stdout.decode(errors="replace") + outcome.stderr
    found = [float(g) for m in re.finditer(instance.figure, text, re.MULTILINE) for g in m.groups() if g]
    if not found or found[-1] <= 0:
        return None
    return 1 / found[-1] if instance.rate else found[-1]


def judge(instance: Instance, outcome: Outcome, made: str, native: Native | None) -> tuple[str, str]:
    """Returns a mark (`ok`, `cut`, `failed`, `changed` or `left`) and its reason."""
    if outcome.cut:
        return "cut", f"killed after {outcome.wall_s:.1f} s"
    expected = native.status if native else 0
    if outcome.status != expected:
        return "failed", f"exit status {outcome.status} instead of {expected}"
    if native and made != native.digest:
        return "changed", "its output differs from that of the native run"
    if outcome.left:
        return "left", f"left processes behind: {', '.join(outcome.left)}"
    if instance.figure and figure(instance, outcome) is None:
        return "failed", "it printed no figure"
    return "ok", ""


@dataclass(frozen=True)
class Cell:
    """A finished cell: its row for the journal, and the values that are compared with other
    cells.
    """

    row: Row
    outcome: Outcome
    digest: str


def measure(
    instance: Instance,
    collector: Collector,
    loops: int,
    root: Path,
    scratch: Path,
    limits: Limits,
    native: Native | None,
) -> Cell:
    """Runs the workload once in its prepared `root`.

    The collector's log in `scratch` is removed.
    """
    log = Path(tempfile.mkdtemp(prefix="log-", dir=scratch))
    io = Path(tempfile.mkdtemp(prefix="io-", dir=scratch))
    group = Group.make(collector.name, limits.memory)
    try:
        instance.reset(root)
        argv = collector.command(instance.command(loops), log)
        outcome = execute.run(argv, root, environment(collector), limits, group, io)
        stdout = re.sub(collector.adds, b"", outcome.stdout, flags=re.MULTILINE) if collector.adds else outcome.stdout
        made = instance.digest(root, stdout)
        mark, why = judge(instance, outcome, made, native)
        row = {
            "kind": "cell",
            "workload": instance.key,
            "group": instance.group,
            "collector": collector.name,
            "loops": loops,
            "mark": mark,
            "why": why,
            "stderr": outcome.stderr if mark != "ok" else "",
            "status": outcome.status,
            "wall_s": outcome.wall_s,
            "cpu_s": outcome.cpu_s,
            "settle_s": outcome.background_s,
            "memory_bytes": outcome.memory,
            "read_bytes": outcome.read,
            "written_bytes": outcome.written,
            "log_bytes": collector.log_bytes(log),
            **(collector.figures(log) if mark == "ok" else {}),
            "figure": figure(instance, outcome),
            "counted_by": outcome.counted_by,
            "load": os.getloadavg()[0],
        }
        return Cell(row, outcome, made)
    finally:
        if group is not None:
            group.kill()
            group.remove()
        shutil.rmtree(log, ignore_errors=True)
        shutil.rmtree(io, ignore_errors=True)
