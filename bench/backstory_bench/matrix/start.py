"""Starts or resumes a matrix: selects what can run here, then writes plan, rows and Parquet
file.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ..collectors import Collector
from ..collectors.base import apt
from ..measure import become_subreaper
from ..workloads import Instance
from ..workloads.base import python
from .cgroup import clear_stale
from .journal import Journal, Unusable, parquet
from .machine import describe
from .profile import profile
from .runner import Options, Runner


def to_install(instances: Sequence[Instance], collectors: Sequence[Collector]) -> list[tuple[str, ...]]:
    """Returns the commands that install missing packages of Debian and PyPI, and other
    requirements.
    """
    missing = [need for instance in instances for need in instance.needs if need.missing()]
    packages = sorted({need.package for need in missing if need.package})
    projects = sorted({project for need in missing for project in need.projects})
    commands = [words for need in missing for words in need.commands]
    commands += [words for collector in collectors if collector.missing() for words in collector.install]
    if projects:
        commands.insert(0, (python(), "-m", "pip", "install", *projects))
    if packages:
        commands = [*apt(*packages), *commands]
    if any(words[0] == "apt-get" for words in commands):
        commands.insert(0, ("apt-get", "update"))
    return commands


def _install(instances: Sequence[Instance], collectors: Sequence[Collector]) -> None:
    for words in to_install(instances, collectors):
        print(f"+ {' '.join(words)}", file=sys.stderr)
        status = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=sys.stderr, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        ).returncode
        if status:
            print(
                f"backstory-bench: {words[0]} ended with status {status}; what it installs is skipped", file=sys.stderr
            )


def _plan(
    args: argparse.Namespace, instances: Sequence[Instance], collectors: Sequence[Collector]
) -> tuple[dict[str, object], Options]:
    options = Options(
        seed=args.seed,
        iterations=args.iterations,
        target_s=args.target,
        cut=args.cut,
        tolerance=args.tolerance,
        memory=args.memory << 20 if args.memory else None,
        processor=args.processor if args.processor >= 0 else None,
    )
    lacking = {i.key: reason for i in instances if (reason := i.lacking())}
    missing = {c.name: reason for c in collectors if (reason := c.missing())}
    for name, reason in [*missing.items(), *lacking.items()]:
        print(f"SKIPPED: {name}: {reason}", file=sys.stderr)
    able = [c for c in collectors if c.name not in missing]
    plan: dict[str, object] = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "options": asdict(options),
        "workloads": [i.key for i in instances if i.key not in lacking],
        "collectors": [c.name for c in able],
        "templates": args.collector,
        "skipped_workloads": lacking,
        "skipped_collectors": missing,
        "machine": describe(able),
    }
    return plan, options


def run_matrix(args: argparse.Namespace, instances: list[Instance], collectors: list[Collector]) -> int:
    """Runs the command `run` for suites of the matrix."""
    directory = Path(args.out or f"bench/runs/matrix-{time.strftime('%Y-%m-%d-%H%M%S')}")
    journal = Journal(directory)
    if args.install:
        _install(instances, collectors)
    if args.resume:
        plan = journal.plan()
        options = Options(**plan["options"])
    else:
        plan, options = _plan(args, instances, collectors)
        journal.create(plan)
    planned = [i for i in instances if i.key in plan["workloads"]]
    able = [c for c in collectors if c.name in plan["collectors"]]
    if not planned:
        raise Unusable("none of these workloads can run here: see backstory-bench list workloads")
    become_subreaper()
    clear_stale()
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def after(instance: Instance) -> None:
        if not args.no_profile:
            profile(journal, instance, able, Path(args.workdir))

    work = Path(args.workdir)
    work.mkdir(parents=True, exist_ok=True)
    Runner(journal, options, planned, able, work, after).run()
    for instance in planned:
        after(instance)
    print(f"rows: {directory}", file=sys.stderr)
    try:
        print(parquet(journal))
    except ModuleNotFoundError:
        print("no Parquet file without pyarrow: install the extra `report`, then `report` makes it", file=sys.stderr)
    _say_marks(journal)
    return 0


def _say_marks(journal: Journal) -> None:
    for row in journal.rows():
        if row.get("kind") == "cell" and row["mark"] != "ok":
            print(f"{row['workload']} under {row['collector']}: {row['mark']}: {row['why']}", file=sys.stderr)
