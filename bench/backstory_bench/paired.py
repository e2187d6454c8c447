"""Measures the promised commands in paired rounds: each round has one run under every collector.

The native run is one of them. This suite checks bounds and promises (`bounds`): few commands, many
rounds, ratios of medians, results as CSV. The matrix of the benchmark paper is in `matrix`.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
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


def _measure(workload: Workload, collector: Collector, root: Path) -> tuple[Cost, str | None]:
    scratch = Path(tempfile.mkdtemp(prefix="bench-log-", dir=root.parent))
    try:
        workload.reset(root)
        cost = run(collector.command(workload.command(root), scratch), root, _environment(collector))
        return cost, workload.check(root, cost)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


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
    workload: Workload, collectors: Sequence[Collector], rounds: int, base: Path, out: csv.DictWriter[str]
) -> None:
    root = Path(tempfile.mkdtemp(prefix=f"bench-{workload.name}-", dir=base))
    try:
        workload.prepare(root)
        _measure(workload, COLLECTORS["none"], root)  # warms caches, not counted
        for number in range(rounds):
            for collector in random.sample(list(collectors), k=len(collectors)):
                cost, problem = _measure(workload, collector, root)
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
    with report.new_table(out_path, report.FIELDS, args.workdir, programs) as (file, writer):
        for name in names:
            _rounds(WORKLOADS[name], collectors, args.rounds, Path(args.workdir), writer)
            file.flush()
