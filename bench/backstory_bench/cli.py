"""`backstory-bench`: list, run, report, lineage."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from . import report
from .bounds import Broken, broken, unjudged
from .collectors import COLLECTORS, Collector, chosen
from .lineage import main_lineage
from .measure import Cost, become_subreaper, run
from .workloads import SUITES, WORKLOADS, Workload, lacking

FIELDS = ["workload", "round", "collector", "wall_s", "cpu_s", "settle_s", "per_call_ns", "problem"]


def _environment(collector: Collector) -> dict[str, str]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith("BACKSTORY")}
    return keep | {"LC_ALL": "C.UTF-8"} | collector.environment


def _measure(workload: Workload, collector: Collector, root: Path) -> tuple[Cost, str | None]:
    scratch = Path(tempfile.mkdtemp(prefix="bench-log-", dir=root.parent))
    try:
        workload.reset(root)
        cost = run([*collector.prefix(scratch), *workload.command(root)], root, _environment(collector))
        return cost, workload.check(root, cost)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _row(workload: Workload, number: int, collector: Collector, cost: Cost, problem: str | None) -> dict[str, object]:
    per_call = cost.output.decode().strip() if workload.per_call and problem is None else ""
    return dict(
        zip(
            FIELDS,
            [
                workload.name,
                number,
                collector.name,
                f"{cost.wall:.6f}",
                f"{cost.cpu:.6f}",
                f"{cost.settle:.6f}",
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
            print(f"\r{workload.name}: round {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _run(args: argparse.Namespace) -> int:
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
            print(f"SKIPPED: workload {name}: needs {missing}")
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
        print(f"SKIPPED: wall time of {name}: others use the processors")
    return _check(broken(results), collectors, args, out_path)


def _measure_all(names: Sequence[str], collectors: list[Collector], args: argparse.Namespace, out_path: Path) -> None:
    out_path.parent.mkdir(parents=True, exist_ok=True)
    with out_path.open("x", newline="") as file:
        file.write(f"# {platform.platform()} cpus={os.cpu_count()} workdir={args.workdir}\n")
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for name in names:
            _rounds(WORKLOADS[name], collectors, args.rounds, Path(args.workdir), writer)
            file.flush()


def _check(first: list[Broken], collectors: list[Collector], args: argparse.Namespace, out_path: Path) -> int:
    """Measures what broke its bounds once more, and fails if it does again."""
    if not first:
        return 0
    print("once more, as it was slower than it may be:", *first, sep="\n  ", file=sys.stderr)
    again = out_path.with_suffix(".again.csv")
    _measure_all(sorted({one.workload for one in first}), collectors, args, again)
    known = {(one.workload, one.what) for one in first}
    still = [one for one in broken(report.load(again)) if (one.workload, one.what) in known]
    for one in still:
        print(f"FAILED: {one}")
    return 1 if still else 0


def _list(args: argparse.Namespace) -> int:
    if args.what == "workloads":
        for w in WORKLOADS.values():
            print(f"{w.name:14} {w.what}")
    else:
        for c in COLLECTORS.values():
            print(f"{c.name:20} {c.missing() or 'can run here'}")
    return 0


def _report(args: argparse.Namespace) -> int:
    print(report.markdown(report.load(Path(args.results))))
    return 0


def _lineage(args: argparse.Namespace) -> int:
    backstory = os.environ.get("BACKSTORY", "backstory")
    return main_lineage(
        args.dir, backstory, args.edges, args.files, args.fewest, args.minutes, Path(args.out) if args.out else None
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    parser = argparse.ArgumentParser(prog="backstory-bench", description=__doc__)
    commands = parser.add_subparsers(required=True)
    p = commands.add_parser(
        "run", help="measure workloads under collectors, interleaved; suite ci fails above its bounds"
    )
    p.add_argument("--suite", choices=list(SUITES), default="promises")
    p.add_argument("--workloads", help="comma-separated names instead of a suite")
    p.add_argument("--collectors", default="backstory,backstory-guard-off,strace")
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--workdir", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir())
    p.add_argument("--out", help="CSV to write (must not exist)")
    p.set_defaults(do=_run)
    p = commands.add_parser("report", help="print the table of a results file")
    p.add_argument("results")
    p.set_defaults(do=_report)
    p = commands.add_parser("list", help="what there is")
    p.add_argument("what", choices=["workloads", "collectors"])
    p.set_defaults(do=_list)
    p = commands.add_parser("lineage", help="fill a store by recording real builds, then time `of` in it")
    p.add_argument("--dir", type=Path, required=True, help="where store and builds are kept; the same one resumes")
    p.add_argument("--edges", type=int, default=10_000_000, help="how many edges the store shall hold")
    p.add_argument("--files", type=int, default=1000, help="how many files to ask for; 0 only builds")
    p.add_argument("--fewest", type=int, default=1000, help="leave out files with fewer edges of ancestry")
    p.add_argument("--minutes", type=float, default=1e6, help="stop building after so many")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=_lineage)
    args = parser.parse_args(argv)
    return int(args.do(args))


if __name__ == "__main__":
    sys.exit(main())
