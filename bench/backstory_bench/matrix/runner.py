"""Runs a matrix in blocks. A block runs one workload under all collectors, in random order.

A native run comes first and last in each block. If the two differ too much, the block is repeated.
The order of blocks within an iteration is random, too; both come from the plan's seed. A block is
done when its last row is in the journal. A resumed matrix continues with the first block that is
not done.
"""

from __future__ import annotations

import contextlib
import math
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import progress
from ..collectors import COLLECTORS, Collector
from ..workloads import Instance
from .cell import Cell, Native, measure
from .execute import Limits
from .journal import Journal, Row

Block = tuple[int, str]
"""(iteration, workload)."""

NOTHING = Instance("start", "true", "a command that does nothing", "true")
"""The time that a collector adds to this command is the cost of its start and end."""
STARTS = 7
"""The number of rounds that measure `NOTHING`."""


@dataclass(frozen=True)
class Options:
    """The options of the measurement, which are stored in the plan."""

    seed: int
    iterations: int = 3
    target_s: float = 3.0
    """The wanted time of a native run. Short programs are looped until they take this long."""
    cut: float = 20.0
    """A cell is killed after this multiple of the native run's time."""
    least_limit_s: float = 2.0
    native_limit_s: float = 900.0
    settle_s: float = 60.0
    """The time limit for background processes after a command. Plans contain this name."""
    tolerance: float = 1.15
    """The greatest ratio between the two native runs of a block."""
    repeats: int = 2
    """The greatest number of repetitions of a disturbed block."""
    memory: int | None = None
    processor: int | None = None


def order(options: Options, workloads: Sequence[str]) -> list[Block]:
    """Returns all blocks in their random order."""
    blocks: list[Block] = []
    for iteration in range(options.iterations):
        names = list(workloads)
        random.Random(f"{options.seed}/{iteration}").shuffle(names)
        blocks.extend((iteration, name) for name in names)
    return blocks


def done(journal: Journal) -> set[Block]:
    """Returns the finished blocks."""
    return {(r["iteration"], r["workload"]) for r in journal.rows() if r.get("kind") == "block" and r.get("kept")}


def begun(journal: Journal) -> dict[Block, int]:
    """Returns the number of attempts at each block.

    An interrupted attempt has rows, which must not be mixed with those of the next attempt.
    """
    found: dict[Block, int] = {}
    for row in journal.rows():
        if "attempt" in row:
            block = (row["iteration"], row["workload"])
            found[block] = max(found.get(block, 0), row["attempt"] + 1)
    return found


class Runner:
    """A matrix in progress."""

    def __init__(
        self,
        journal: Journal,
        options: Options,
        instances: Sequence[Instance],
        collectors: Sequence[Collector],
        work: Path,
        after: Callable[[Instance], None] = lambda _: None,
    ) -> None:
        """Workloads are prepared in `work`.

        `after` is called with the instance of each finished block.
        """
        self.journal, self.options = journal, options
        self.instances = {i.key: i for i in instances}
        self.collectors = [c for c in collectors if c.name != "none"]
        self.work = work
        self.after = after
        self.begun = begun(journal)
        self.loops = {r["workload"]: r["loops"] for r in journal.rows() if r.get("kind") == "calibrated"}

    def run(self) -> None:
        """Measures the starts of the collectors, and every block that is not done."""
        self._starts()
        finished = done(self.journal)
        rest = [b for b in order(self.options, list(self.instances)) if b not in finished]
        began = time.monotonic()
        for number, (iteration, key) in enumerate(rest):
            self._progress(number, len(rest), began, f"{key} #{iteration + 1}")
            with self._scratch() as scratch:
                self._block(self.instances[key], iteration, scratch)
            self.after(self.instances[key])
        self._progress(len(rest), len(rest), began, "done")

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """Creates a directory that other users can enter, and removes it afterwards."""
        scratch = Path(tempfile.mkdtemp(prefix="backstory-bench-", dir=self.work))
        scratch.chmod(0o755)
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _starts(self) -> None:
        """Measures the time that each collector adds to a command that does nothing.

        A fit to programs that run for seconds would not be precise to milliseconds.
        """
        known = {r["collector"] for r in self.journal.rows() if r.get("kind") == "start"}
        missing = [c for c in self.collectors if c.name not in known]
        if not missing:
            return
        progress.show("measuring the start of each collector")
        limits = self._limits(max(self.options.least_limit_s, 10.0))
        walls: dict[str, list[float]] = {c.name: [] for c in missing}
        marks = dict.fromkeys(walls, "ok")
        native: list[float] = []
        with self._scratch() as scratch:
            root = scratch / "w"
            root.mkdir()
            for _ in range(STARTS):
                native.append(measure(NOTHING, COLLECTORS["none"], 1, root, scratch, limits, None).outcome.wall_s)
                for collector in missing:
                    if marks[collector.name] == "ok":
                        cell = measure(NOTHING, collector, 1, root, scratch, limits, None)
                        marks[collector.name] = cell.row["mark"]
                        walls[collector.name].append(cell.outcome.wall_s)
        for name, took in walls.items():
            added = max(0.0, statistics.median(took) - statistics.median(native)) if marks[name] == "ok" else None
            self.journal.append({"kind": "start", "collector": name, "mark": marks[name], "start_s": added})

    def _progress(self, number: int, total: int, began: float, what: str) -> None:
        left = (time.monotonic() - began) / number * (total - number) if number else math.nan
        remaining = f", {left / 60:.0f} min left" if number else ""
        progress.show(f"block {number} of {total}{remaining}: {what}")
        if number == total:
            progress.show("")

    def _limits(self, wall_s: float) -> Limits:
        o = self.options
        return Limits(wall_s, o.settle_s, o.memory, o.processor)

    def _native(self, instance: Instance, loops: int, root: Path, scratch: Path, native: Native | None) -> Cell:
        return measure(
            instance, COLLECTORS["none"], loops, root, scratch, self._limits(self.options.native_limit_s), native
        )

    def _block(self, instance: Instance, iteration: int, scratch: Path) -> None:
        root = scratch / "w"
        root.mkdir()
        try:
            instance.prepare(root)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            self._fails(instance, iteration, f"it cannot be prepared: {error}")
            return
        loops = self._calibrated(instance, root, scratch)
        if loops is None:
            self._fails(instance, iteration, "it fails without a collector, too")
            return
        first = self.begun.get((iteration, instance.key), 0)
        for attempt in range(first, first + self.options.repeats + 1):
            disturbed = self._attempt(instance, iteration, attempt, loops, root, scratch)
            kept = not disturbed or attempt == first + self.options.repeats
            self.journal.append(
                {
                    "kind": "block",
                    "workload": instance.key,
                    "iteration": iteration,
                    "attempt": attempt,
                    "disturbed": disturbed,
                    "kept": kept,
                }
            )
            if kept:
                return

    def _fails(self, instance: Instance, iteration: int, why: str) -> None:
        head = {"workload": instance.key, "iteration": iteration, "attempt": 0}
        self.journal.append(
            {"kind": "cell", **head, "group": instance.group, "collector": "none", "mark": "failed", "why": why}
        )
        self.journal.append({"kind": "block", **head, "disturbed": False, "kept": True})

    def _calibrated(self, instance: Instance, root: Path, scratch: Path) -> int | None:
        """Returns the number of loops of a workload, measured once for a matrix.

        Returns `None` if the workload fails natively.
        """
        if instance.key in self.loops:
            return int(self.loops[instance.key])
        self._native(instance, 1, root, scratch, None)
        once = self._native(instance, 1, root, scratch, None)
        if once.row["mark"] != "ok":
            self.journal.append({**once.row, "kind": "broken"})
            return None
        loops = 1 if instance.fixed else max(1, round(self.options.target_s / once.outcome.wall_s))
        self.loops[instance.key] = loops
        self.journal.append(
            {"kind": "calibrated", "workload": instance.key, "loops": loops, "once_s": once.outcome.wall_s}
        )
        return loops

    def _attempt(self, instance: Instance, iteration: int, attempt: int, loops: int, root: Path, scratch: Path) -> bool:
        """Runs one attempt at a block. Returns true if the two native runs differ too much."""
        at: Row = {"iteration": iteration, "attempt": attempt}
        first = self._native(instance, loops, root, scratch, None)
        self.journal.append({**first.row, **at, "position": 0})
        native = Native(first.outcome.wall_s, first.outcome.status, first.digest)
        limit = max(self.options.cut * native.wall_s, self.options.least_limit_s)
        shuffled = list(self.collectors)
        random.Random(f"{self.options.seed}/{iteration}/{instance.key}/{attempt}").shuffle(shuffled)
        for position, collector in enumerate(shuffled, 1):
            cell = measure(instance, collector, loops, root, scratch, self._limits(limit), native)
            self.journal.append({**cell.row, **at, "position": position})
        last = self._native(instance, loops, root, scratch, native)
        self.journal.append({**last.row, **at, "position": len(shuffled) + 1})
        apart = max(native.wall_s, last.outcome.wall_s) / max(1e-9, min(native.wall_s, last.outcome.wall_s))
        return apart > self.options.tolerance
