"""Writes and reads the results of paired rounds, and makes the table of ratios."""

from __future__ import annotations

import argparse
import contextlib
import csv
import itertools
import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from . import backstory_program
from .matrix.journal import Unusable
from .promises import PROMISED, WORKLOADS
from .stats import geometric_mean, ratio

FIELDS = ["workload", "round", "collector", "wall_s", "cpu_s", "settle_s", "per_call_ns", "problem"]

Pairs = list[tuple[float, float]]


@dataclass(frozen=True)
class Results:
    """Pairs (collector, native) of figures, by workload and collector."""

    machine: str
    figure: dict[str, dict[str, Pairs]]
    """Wall seconds, or ns per call for a workload that prints them."""
    cpu: dict[str, dict[str, Pairs]]
    problems: dict[tuple[str, str], str]


@contextlib.contextmanager
def new_table(
    path: Path, fields: Sequence[str], workdir: str | Path, programs: Sequence[str] = ()
) -> Iterator[tuple[TextIO, csv.DictWriter[str]]]:
    """Creates the working directory and a file of results. Its first line describes the machine,
    and the versions of the measured programs.

    # Errors
    `Unusable` if the file exists.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    Path(workdir).mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise Unusable(f"{path} exists, and results are never overwritten: give another --out")
    with path.open("x", newline="") as file:
        machine = f"{platform.platform()} cpus={os.cpu_count()} workdir={workdir}"
        file.write(f"# {'; '.join(part for part in [machine, *programs] if part)}\n")
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        yield file, writer


def write_rows(
    path: str | Path,
    fields: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    program: str | None = None,
    about: str = "",
) -> None:
    """Writes a file of figures: a line of names, and the rows.

    `program`: the backstory that was measured. A note before the names then says which build.
    `about`: a note of what the figures are.
    """
    with Path(path).open("w", newline="") as out:
        if about:
            out.write(f"# {about}\n")
        if program is not None and (note := backstory_program.build(program)):
            out.write(f"# {note}\n")
        writer = csv.DictWriter(out, fields)
        writer.writeheader()
        writer.writerows(rows)


def figures(file: Iterable[str]) -> csv.DictReader[str]:
    """Reads the lines of a file of figures. Notes before the names are left out; older files have
    none."""
    return csv.DictReader(itertools.dropwhile(lambda line: line.startswith("#"), file))


def all_rows(path: str | Path) -> list[dict[str, str | Any]]:
    """Returns all rows of a file of figures, with all columns."""
    with Path(path).open(newline="") as file:
        return list(figures(file))


def add_directory(command: argparse.ArgumentParser, what: str) -> None:
    """Adds `--dir`, and instead of it `--results`."""
    either = command.add_mutually_exclusive_group(required=True)
    either.add_argument("--dir", type=Path, help=what)
    either.add_argument("--results", metavar="CSV", help="show earlier results, and record nothing")


def read_rows(path: str | Path, fields: Sequence[str]) -> list[dict[str, object]]:
    """Reads what `write_rows` has written.

    # Errors
    `Unusable` if the file has other columns.
    """
    with Path(path).open(newline="") as file:
        table = figures(file)
        if lacking := [name for name in fields if name not in (table.fieldnames or ())]:
            raise Unusable(f"{path} is another table: its first line lacks {', '.join(lacking)}")
        return [{name: row[name] for name in fields} for row in table]


def load(path: Path) -> Results:
    """Reads a file of results. Rounds with a problem on either side are left out and listed.

    # Errors
    `Unusable` if the file is not a table of paired rounds.
    """
    with path.open(newline="") as file:
        machine = file.readline().lstrip("# ").strip()
        table = csv.DictReader(file)
        rows = list(table)
        columns = table.fieldnames or ()
    if lacking := [name for name in FIELDS if name not in columns]:
        raise Unusable(f"{path} is not a table of paired rounds: its second line lacks {', '.join(lacking)}")
    rounds: dict[tuple[str, str], dict[str, dict[str, str]]] = defaultdict(dict)
    problems = {}
    for row in rows:
        rounds[row["workload"], row["round"]][row["collector"]] = row
        if row["problem"]:
            problems[row["workload"], row["collector"]] = row["problem"]
    figure: dict[str, dict[str, Pairs]] = defaultdict(lambda: defaultdict(list))
    cpu: dict[str, dict[str, Pairs]] = defaultdict(lambda: defaultdict(list))
    for (workload, _), by in rounds.items():
        native = by.get("none")
        for name, row in by.items():
            if name == "none" or native is None or row["problem"] or native["problem"]:
                continue
            key = "per_call_ns" if row["per_call_ns"] else "wall_s"
            figure[workload][name].append((float(row[key]), float(native[key])))
            cpu[workload][name].append((float(row["cpu_s"]), float(native["cpu_s"])))
    return Results(machine, figure, cpu, problems)


def _cells(results: Results, workload: str, collectors: list[str]) -> list[str]:
    cells = []
    for name in collectors:
        pairs = results.figure[workload].get(name)
        if not pairs:
            cells.append("–")
            continue
        text = str(ratio(pairs))
        if not WORKLOADS[workload].per_call and name.startswith("backstory"):
            text += f" (cpu {ratio(results.cpu[workload][name]).value:.2f})"
        cells.append(text)
    return cells


def _promise(workload: str) -> str:
    w = WORKLOADS[workload]
    if w.first is None and w.goal is None:
        return ""
    return " / ".join("–" if bound is None else f"{bound:.2f}" for bound in (w.first, w.goal))


MEAN, MEAN_STORED = "1.10 / 1.06", "1.11 / 1.08"
"""First promise and goal of the geometric mean, without contents and with stored ones."""


def _promise_of_mean(collectors: Sequence[str]) -> str:
    stored = any(name.startswith(("backstory-lazy", "backstory-all")) for name in collectors)
    return f"{MEAN}; with contents {MEAN_STORED}" if stored else MEAN


def markdown(results: Results) -> str:
    """Returns the table: a row for each workload, ratios to native with 95 % intervals."""
    collectors = sorted({c for by in results.figure.values() for c in by})
    lines = [
        f"Machine: {results.machine}",
        "",
        "| workload | " + " | ".join(collectors) + " | first / goal |",
        "|" + "---|" * (len(collectors) + 2),
    ]
    for workload in results.figure:
        lines.append(
            f"| {WORKLOADS[workload].what} | {' | '.join(_cells(results, workload, collectors))} | {_promise(workload)} |"
        )
    promised = [w for w in PROMISED if w in results.figure]
    if len(promised) > 1:
        means = []
        for name in collectors:
            rows = {w: results.figure[w][name] for w in promised if results.figure[w].get(name)}
            means.append(f"**{geometric_mean(rows)}**" if len(rows) == len(promised) else "–")
        lines.append(f"| geometric mean | {' | '.join(means)} | {_promise_of_mean(collectors)} |")
    for (workload, name), problem in results.problems.items():
        lines.append(f"\nProblem: {workload} under {name}: {problem}")
    return "\n".join(lines)
