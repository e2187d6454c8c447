"""Measures the promised commands in paired rounds: each round has one run under every collector.

The native run is one of them. This suite checks bounds and promises (`bounds`): few commands, many
rounds, ratios of medians, results as CSV. The matrix of the benchmark paper is in `matrix`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import progress, report
from .bounds import never_measured, slower, unjudged
from .collectors import COLLECTORS, Collector, chosen
from .matrix.machine import version_of
from .measure import Cost, become_subreaper, run
from .promises import SUITES, WORKLOADS, lacking
from .workload import Workload


def _environment(collector: Collector) -> dict[str, str]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith("BACKSTORY")}
    return keep | {"LC_ALL": "C.UTF-8"} | collector.environment


class Logs:
    """The directories that collectors log into: a new one for each run, or one for each collector.

    A user's store has earlier runs, and what they have found out. A new store has neither.
    """

    def __init__(self, base: Path, kept: bool) -> None:
        self._base = base
        self._kept = Path(tempfile.mkdtemp(prefix="bench-logs-", dir=base)) if kept else None

    def keeps(self, collector: Collector) -> bool:
        """True if all runs under a collector use one directory, as only modes of backstory can."""
        return self._kept is not None and collector.name.startswith("backstory")

    @contextlib.contextmanager
    def of(self, collector: Collector) -> Iterator[Path]:
        """Gives the directory for one run."""
        if self._kept is not None and self.keeps(collector):
            log = self._kept / collector.name
            log.mkdir(exist_ok=True)
            yield log
            return
        log = Path(tempfile.mkdtemp(prefix="bench-log-", dir=self._base))
        try:
            yield log
        finally:
            shutil.rmtree(log, ignore_errors=True)

    def remove(self) -> None:
        """Removes the kept directories."""
        if self._kept is not None:
            shutil.rmtree(self._kept, ignore_errors=True)


def _measure(workload: Workload, collector: Collector, root: Path, logs: Logs) -> tuple[Cost, str | None]:
    with logs.of(collector) as log:
        workload.reset(root)
        cost = run(collector.command(workload.command(root), log), root, _environment(collector))
        return cost, workload.check(root, cost)


def _row(workload: Workload, number: int, collector: Collector, cost: Cost, problem: str | None) -> dict[str, object]:
    per_call = cost.output.decode().strip() if workload.per_call and problem is None else ""
    return dict(
        zip(
            report.FIELDS,
            [
                workload.name,
                number,
                collector.name,
                f"{cost.wall:.6f}",
                f"{cost.cpu:.6f}",
                f"{cost.background:.6f}",
                per_call,
                problem or "",
            ],
            strict=True,
        )
    )


def _rounds(
    workload: Workload,
    collectors: Sequence[Collector],
    rounds: int,
    base: Path,
    logs: Logs,
    out: csv.DictWriter[str],
) -> None:
    root = Path(tempfile.mkdtemp(prefix=f"bench-{workload.name}-", dir=base))
    try:
        workload.prepare(root)
        # These runs warm the caches and fill the kept stores, and are not counted.
        for collector in [COLLECTORS["none"], *filter(logs.keeps, collectors)]:
            _measure(workload, collector, root, logs)
        for number in range(rounds):
            for collector in random.sample(list(collectors), k=len(collectors)):
                cost, problem = _measure(workload, collector, root, logs)
                out.writerow(_row(workload, number, collector, cost, problem))
                if problem:
                    print(f"{workload.name} under {collector.name}: {problem}", file=sys.stderr)
            progress.show(f"{workload.name}: round {number + 1} of {rounds}")
        progress.show("")
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run_paired(args: argparse.Namespace) -> int:
    """Runs the command `run` for the paired suites."""
    collectors = []
    for collector in chosen(["none", *(c for c in args.collectors.split(",") if c != "none")]):
        reason = collector.missing()
        if reason:
            print(f"left out: {collector.name}: {reason}", file=sys.stderr)
        else:
            collectors.append(collector)
    names = []
    for name in args.workloads.split(",") if args.workloads else SUITES[args.suite]:
        missing = lacking(name)
        if missing:
            print(f"SKIPPED: workload {name}: {missing}")
        else:
            names.append(name)
    out_path = Path(args.out or f"bench/runs/{time.strftime('%Y-%m-%d-%H%M%S')}.csv")
    become_subreaper()
    _measure_all(names, collectors, args, out_path)
    results = report.load(out_path)
    print(report.markdown(results))
    print(f"results: {out_path}", file=sys.stderr)
    if args.suite != "ci":
        return 0
    for name in unjudged(results):
        print(f"SKIPPED: wall time of {name}: other programs use the processors")
    for one in slower(results):
        print(f"SLOWER: {one} (no failure: measure on a quiet machine)")
    failed = never_measured(results)
    for name in failed:
        print(f"FAILED: workload {name}: no valid round")
    return 1 if failed else 0


def _measure_all(names: Sequence[str], collectors: list[Collector], args: argparse.Namespace, out_path: Path) -> None:
    versions: dict[str, str] = {}
    for collector in collectors:
        if version := version_of(collector):
            versions.setdefault(version, collector.name)  # the modes of a program have one
    programs = [f"{name}: {version}" for version, name in versions.items()]
    base = Path(args.workdir)
    logs = Logs(base, args.kept_stores)
    try:
        with report.new_table(out_path, report.FIELDS, args.workdir, programs) as (file, writer):
            for name in names:
                _rounds(WORKLOADS[name], collectors, args.rounds, base, logs, writer)
                file.flush()
    finally:
        logs.remove()
