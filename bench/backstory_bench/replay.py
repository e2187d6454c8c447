"""Measures replays in paired, interleaved rounds: a command natively, and replayed from the store.

A workload is prepared once, and recorded once with contents. Each round runs it natively, replays
it without a recording, and replays it with a recording, in random order. Wall time is that of the
whole command. It includes planning, building the root, running, collecting and comparing.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from . import backstory_program
from .measure import Cost, become_subreaper, run
from .promises import WORKLOADS, lacking
from .report import new_table
from .stats import geometric_mean, ratio
from .workload import Workload

FIELDS = ["workload", "round", "way", "wall_s", "cpu_s", "problem"]
WAYS = {"native": None, "replay": ["--no-record"], "replay, recorded": []}
CHOSEN = ("make", "python", "tar", "git", "compute")
Rows = dict[str, dict[str, list[Cost]]]


class Recorded:
    """A workload that was recorded. It can be run natively or replayed."""

    def __init__(self, workload: Workload, backstory: str, root: Path, beside: Path) -> None:
        self.workload, self.backstory, self.root = workload, backstory, root
        self.again = beside / "again"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BACKSTORY")} | {"LC_ALL": "C.UTF-8"}
        self.store = ["--store", str(beside / "store")]
        workload.prepare(root)
        workload.reset(root)
        # The clock of a file system is coarse. A file that is younger than one tick may have been
        # changed after it was read, so its content counts as unknown.
        time.sleep(0.05)
        self._backstory("record", *self.store, "--contents=lazy", "--", *workload.command(root))
        self._backstory("index", *self.store, "--wait")

    def _backstory(self, *args: str) -> None:
        subprocess.run(
            [self.backstory, *args],
            cwd=self.root,
            env=self.env,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def cost(self, way: str) -> tuple[Cost, str]:
        """Runs the workload in one way.

        Returns its cost, and the problem with its result, if any.
        """
        options = WAYS[way]
        self.workload.reset(self.root)
        if options is None:
            cost = run(self.workload.command(self.root), self.root, self.env)
            return cost, self.workload.check(self.root, cost) or ""
        shutil.rmtree(self.again, ignore_errors=True)
        words = ["replay", *self.store, "--json", "--output-dir", str(self.again), *options]
        cost = run([self.backstory, *words], self.root, self.env)
        return cost, differing(cost)


def differing(cost: Cost) -> str:
    """Describes the outputs of a replay that differ from the recording. Empty if none differs."""
    start = cost.output.find(b"{")
    try:
        report = json.loads(cost.output[start:])
    except json.JSONDecodeError:
        return f"status {cost.status}: {cost.output[-300:].decode(errors='replace')}"
    wrong = [one["path"] for one in report["outputs"] if one["state"] in ("different", "missing")]
    return f"{len(wrong)} of {len(report['outputs'])} outputs differ, {wrong[0]} first" if wrong else ""


def main_replay(names: Sequence[str], rounds: int, backstory: str, workdir: Path, out: Path) -> int:
    """Runs the command `replay`."""
    become_subreaper()
    rows: Rows = {}
    with new_table(out, FIELDS, workdir, [backstory_program.build(backstory)]) as (_, writer):
        for name in names:
            missing = lacking(name)
            if missing:
                print(f"SKIPPED: workload {name}: {missing}")
            else:
                rows[name] = _rounds(WORKLOADS[name], rounds, backstory, workdir, writer)
    print(table(rows))
    print(f"results: {out}", file=sys.stderr)
    return 0


def _rounds(
    workload: Workload, rounds: int, backstory: str, workdir: Path, writer: csv.DictWriter[str]
) -> dict[str, list[Cost]]:
    beside = Path(tempfile.mkdtemp(prefix="bench-replay-", dir=workdir))
    costs: dict[str, list[Cost]] = {way: [] for way in WAYS}
    try:
        root = beside / "work"
        root.mkdir()
        recorded = Recorded(workload, backstory, root, beside)
        recorded.cost("native")  # warms caches, not counted
        for number in range(rounds):
            for way in random.sample(list(WAYS), k=len(WAYS)):
                cost, problem = recorded.cost(way)
                costs[way].append(cost)
                values = [workload.name, number, way, f"{cost.wall:.6f}", f"{cost.cpu:.6f}", problem]
                writer.writerow(dict(zip(FIELDS, values, strict=True)))
                if problem:
                    print(f"{workload.name}, {way}: {problem}", file=sys.stderr)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return costs


def table(rows: Rows) -> str:
    """Returns the ratios to native as Markdown: wall time, and processor time in brackets."""
    ways = [way for way in WAYS if way != "native"]
    lines = [f"| workload | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|"]

    def pairs(name: str, way: str, what: str) -> list[tuple[float, float]]:
        both = zip(rows[name][way], rows[name]["native"], strict=True)
        return [(getattr(a, what), getattr(b, what)) for a, b in both]

    for name in rows:
        cells = (f"{ratio(pairs(name, way, 'wall'))} (cpu {ratio(pairs(name, way, 'cpu')).value:.2f})" for way in ways)
        lines.append(f"| {WORKLOADS[name].what} | {' | '.join(cells)} |")
    if rows:
        means = (f"**{geometric_mean({name: pairs(name, way, 'wall') for name in rows})}**" for way in ways)
        lines.append(f"| geometric mean | {' | '.join(means)} |")
    return "\n".join(lines)


def run_replay(args: argparse.Namespace) -> int:
    """Runs `replay` with the arguments of the command line."""
    out = Path(args.out or f"bench/runs/{time.strftime('%Y-%m-%d-%H%M%S')}-replay.csv")
    names = args.workloads.split(",") if args.workloads else CHOSEN
    return main_replay(names, args.rounds, backstory_program.chosen(), Path(args.workdir), out)
