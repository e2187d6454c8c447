"""Counts what `backstory hunt` finds in ordinary runs, where nothing is an attack.

The runs are the workloads of the matrix: builds, downloads, servers, archives, notebooks. The
program records those that can run here until the store has the requested number of runs. It can be
interrupted: the store shows how many runs are done. Then `hunt` looks at all of them.
Every finding is a false positive, or a workload that does what the rule describes. The table says
how many runs each rule matches, and of which workloads.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .workloads import INSTANCES, Instance, select

HEAD = ["Rule", "Level", "Runs with a finding", "Share", "Findings", "Workloads"]
NAMED = 3
"""Workloads that a row names."""


def name_of(instance: Instance) -> str:
    """Returns the name of an instance's runs: a word."""
    return "".join(c if c.isalnum() else "-" for c in instance.key)


def counted(
    rules: Sequence[Mapping[str, str]], findings: Iterable[Mapping[str, object]], names: Mapping[str, str]
) -> list[list[str]]:
    """Returns a row for each rule. `names` has the workload of each run."""
    found = [(str(one["rule"]), str(one["run"])) for one in findings]
    rows = []
    for rule in rules:
        runs = {run for name, run in found if name == rule["rule"]}
        by_workload = Counter(names.get(run, "?") for run in runs)
        words = [f"{name} ({count})" for name, count in sorted(by_workload.items(), key=lambda x: (-x[1], x[0]))]
        if len(words) > NAMED:
            words[NAMED:] = [f"{len(words) - NAMED} more"]
        total = sum(name == rule["rule"] for name, _ in found)
        share = f"{100 * len(runs) / len(names):.1f} %" if names else ""
        rows.append([rule["rule"], rule["level"], str(len(runs)), share, str(total), ", ".join(words)])
    return rows


def table(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as a table of Markdown."""
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _json(backstory: str, store: Path, *args: str) -> list[dict[str, str]]:
    done = subprocess.run([backstory, "--store", str(store), *args, "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode > 1:
        raise SystemExit(f"backstory-bench: backstory {' '.join(args)} failed")
    answer: list[dict[str, str]] = json.loads(done.stdout)
    return answer


def record(backstory: str, top: Path, instances: Sequence[Instance], runs: int) -> None:
    """Records the instances in turn until the store has `runs` runs."""
    have = len(_json(backstory, top / "store", "log")) if (top / "store").exists() else 0
    broken: set[str] = set()
    for number, instance in zip(range(have, runs), itertools.cycle(instances), strict=False):
        if instance.key in broken:
            continue
        root = top / name_of(instance)
        try:
            if not root.exists():
                root.mkdir(parents=True)
                instance.prepare(root)
            instance.reset(root)
            command = [backstory, "--store", str(top / "store"), "record", "--contents=off"]
            command += ["--tag", f"workload={instance.key}", "--name", f"{name_of(instance)}-{number}"]
            with (top / "output").open("wb") as out:
                subprocess.run(
                    [*command, "--", *instance.command(1)],
                    cwd=root, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=True, timeout=600,
                )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            print(f"left out: {instance.key}: {error}", file=sys.stderr)
            broken.add(instance.key)


def main_false_alarms(args: argparse.Namespace) -> int:
    """Records runs, and prints the table."""
    chosen = select(args.workloads.split(",")) if args.workloads else list(INSTANCES.values())
    instances = [instance for instance in chosen if instance.lacking() is None]
    if not instances:
        raise SystemExit("backstory-bench: none of the workloads can run here")
    args.dir.mkdir(parents=True, exist_ok=True)
    if args.runs:
        record(args.backstory, args.dir, instances, args.runs)
    store = args.dir / "store"
    names = {run["run"]: (run["name"] or "?").rsplit("-", 1)[0] for run in _json(args.backstory, store, "log")}
    rules = _json(args.backstory, store, "hunt", "--list")
    print(f"{len(names)} runs of {len(set(names.values()))} workloads\n")
    print(table(counted(rules, _json(args.backstory, store, "hunt", "--all"), names)))
    return 0
