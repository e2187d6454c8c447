"""Counts what `backstory hunt` finds in ordinary runs, where nothing is an attack.

The runs are builds, test suites, package installs and the work of tools: see `workloads.ordinary`.
The program records those that can be done here until the store has the requested number of runs. It
can be interrupted: the store shows how many runs are done. Then `hunt` looks at all of them.
Every finding is a false positive, or a workload that does what the rule describes. The table says
how many runs each rule matches, and of which workloads. The CSV has a row for each rule and
workload, from which the table can be made again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .report import read_rows, write_rows
from .workloads import EVERY, ORDINARY, Instance, select
from .workloads.ordinary import kind

FIELDS = ["rule", "level", "kind", "workload", "runs", "runs_with_finding", "findings"]
HEAD = ["Rule", "Level", "Runs with a finding", "Share", "Findings", "Workloads"]
NAMED = 3
"""Workloads that a row names."""
LONGEST = 600
"""Seconds after which a run is ended."""


def name_of(instance: Instance) -> str:
    """Returns the name of an instance's runs: a word."""
    return "".join(c if c.isalnum() else "-" for c in instance.key)


def kinds() -> dict[str, str]:
    """Returns the kind of each workload, by the name of its runs."""
    return {name_of(instance): kind(instance) for instance in EVERY.values()}


def counted(
    rules: Sequence[Mapping[str, str]], findings: Iterable[Mapping[str, object]], names: Mapping[str, str]
) -> list[dict[str, object]]:
    """Returns a row for each rule and workload. `names` has the workload of each run."""
    runs = Counter(names.values())
    of_kind = kinds()
    total: Counter[tuple[str, str]] = Counter()
    found: dict[tuple[str, str], set[str]] = {}
    for one in findings:
        run = str(one["run"])
        key = (str(one["rule"]), names.get(run, "?"))
        total[key] += 1
        found.setdefault(key, set()).add(run)
    rows: list[dict[str, object]] = []
    for rule in rules:
        for workload in sorted(runs):
            key = (rule["rule"], workload)
            counts = [runs[workload], len(found.get(key, ())), total[key]]
            values = [rule["rule"], rule["level"], of_kind.get(workload, "other"), workload, *counts]
            rows.append(dict(zip(FIELDS, values, strict=True)))
    return rows


def _number(row: Mapping[str, object], field: str) -> int:
    return int(str(row[field]))


def by_kind(rows: Sequence[Mapping[str, object]]) -> str:
    """Says how many runs there are, and of what kind they are."""
    workloads = {str(row["workload"]): (str(row["kind"]), _number(row, "runs")) for row in rows}
    runs: Counter[str] = Counter()
    for one, number in workloads.values():
        runs[one] += number
    whole = runs.total()
    words = [f"{one} {number} ({100 * number / whole:.0f} %)" for one, number in sorted(runs.items())]
    return f"{whole} runs of {len(workloads)} workloads: {', '.join(words)}"


def table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of Markdown with a row for each rule."""
    lines = [HEAD, ["---"] * len(HEAD)]
    for rule, level in dict.fromkeys((str(row["rule"]), str(row["level"])) for row in rows):
        own = [row for row in rows if row["rule"] == rule]
        runs, found, total = (sum(_number(row, field) for row in own) for field in FIELDS[4:])
        some = {str(row["workload"]): _number(row, "runs_with_finding") for row in own}
        some = {name: count for name, count in some.items() if count}
        words = [f"{name} ({count})" for name, count in sorted(some.items(), key=lambda x: (-x[1], x[0]))]
        if len(words) > NAMED:
            words[NAMED:] = [f"{len(words) - NAMED} more"]
        lines.append([rule, level, str(found), f"{100 * found / runs:.1f} %", str(total), ", ".join(words)])
    return [f"| {' | '.join(line)} |" for line in lines]


def _json(backstory: str, store: Path, *args: str) -> list[dict[str, str]]:
    done = subprocess.run([backstory, "--store", str(store), *args, "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode > 1:
        raise SystemExit(f"backstory-bench: backstory {' '.join(args)} failed")
    answer: list[dict[str, str]] = json.loads(done.stdout)
    return answer


def _recorded(backstory: str, store: Path) -> int:
    return len(_json(backstory, store, "log")) if store.exists() else 0


def _record_one(backstory: str, top: Path, instance: Instance, number: int) -> None:
    root = top / name_of(instance)
    if not (root / "prepared").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        instance.prepare(root)
        (root / "prepared").touch()
    instance.reset(root)
    command = [backstory, "--store", str(top / "store"), "record", "--contents=off"]
    command += ["--tag", f"workload={instance.key}", "--name", f"{name_of(instance)}-{number}"]
    with (top / "output").open("wb") as out:
        subprocess.run(
            [*command, "--", *instance.command(1)],
            cwd=root, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=True, timeout=LONGEST,
        )  # fmt: skip


def workload_of(run: Mapping[str, str | None]) -> str:
    """Returns the workload in the name of a run, or `?`."""
    return (run["name"] or "?").rsplit("-", 1)[0]


def _remove(backstory: str, store: Path, instance: Instance) -> None:
    """Removes the runs of an instance from the store, if there are any."""
    runs = _json(backstory, store, "log") if store.exists() else []
    own = [run["run"] for run in runs if workload_of(run) == name_of(instance)]
    if own:
        command = [backstory, "--store", str(store), "rm", *own]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def record(backstory: str, top: Path, instances: Sequence[Instance], runs: int) -> None:
    """Records the instances in turn until the store has `runs` runs.

    An instance that fails is not done again. Its runs so far are removed from the store.
    """
    able = list(instances)
    number = _recorded(backstory, top / "store")
    while able and number < runs:
        instance = able[number % len(able)]
        try:
            _record_one(backstory, top, instance, number)
            number += 1
        except (OSError, subprocess.SubprocessError) as error:
            print(f"left out: {instance.key}: {error}", file=sys.stderr)
            able.remove(instance)
            _remove(backstory, top / "store", instance)
            number = _recorded(backstory, top / "store")


def main_false_alarms(args: argparse.Namespace) -> int:
    """Records runs, or reads earlier results, and prints the table. `--out` names the CSV."""
    rows = read_rows(args.results, FIELDS) if args.results else _measured(args)
    if not rows:
        raise SystemExit("backstory-bench: there is no run")
    if args.out:
        write_rows(args.out, FIELDS, rows, args.backstory)
    print("\n".join([by_kind(rows), "", *table(rows)]))
    return 0


def _measured(args: argparse.Namespace) -> list[dict[str, object]]:
    chosen = select(args.workloads.split(",")) if args.workloads else list(ORDINARY.values())
    reasons = {instance: instance.lacking() for instance in chosen}
    for instance, reason in reasons.items():
        if reason:
            print(f"left out: {instance.key}: {reason}", file=sys.stderr)
    instances = [instance for instance, reason in reasons.items() if reason is None]
    if not instances:
        raise SystemExit("backstory-bench: none of the workloads can run here")
    top = args.dir.resolve()
    top.mkdir(parents=True, exist_ok=True)
    if args.runs:
        record(args.backstory, top, instances, args.runs)
    store = top / "store"
    names = {run["run"]: workload_of(run) for run in _json(args.backstory, store, "log")}
    rules = _json(args.backstory, store, "hunt", "--list")
    return counted(rules, _json(args.backstory, store, "hunt", "--all"), names)
