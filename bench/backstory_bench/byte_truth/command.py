"""`backstory-bench bytes`: the agreement of the byte engine with known dependence, and its cost.

The engine is built into a temporary directory, unless one is named.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from .. import backstory_program
from .agreement import Agreement, agreements
from .cost import COMMANDS, MODES, Memory, executions
from .decisions import DECISIONS
from .levels import levels
from .programs import CASES
from .tables import byte_tables

BUILD = Path(__file__).resolve().parents[3] / "bytes" / "build"
FIELDS = ["what", "case", "measure", "value"]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"


def _agreement_rows(found: list[Agreement]) -> list[list[str]]:
    rows = []
    for a in found:
        values = {"recall": a.recall, "precision": a.precision, "file_precision": a.file_precision}
        rows += [["truth", a.name, name, f"{v:.6f}"] for name, v in values.items() if v is not None]
    return rows


def _agree(args: argparse.Namespace, engine: Path) -> tuple[list[list[str]], bool]:
    cases = [c for c in CASES if not args.cases or c.__name__ in args.cases.split(",")]
    found, good = list[Agreement](), True
    print(f"{'case':34} {'output':>8} {'recall':>9} {'precision':>10} {'of file level':>14}")
    for a in agreements(cases, args.rows, engine, []):
        found.append(a)
        good &= a.recall in (None, 1.0) and (not a.moves or a.precision is None or a.precision >= 0.99)
        shares = f"{_share(a.recall):>9} {_share(a.precision):>10} {_share(a.file_precision):>14}"
        print(f"{a.name:34} {a.output_bytes:8} {shares} {a.note}", flush=True)
    return _agreement_rows(found), good


def _decide(args: argparse.Namespace, engine: Path) -> list[list[str]]:
    """Cases whose output depends on decisions, without and with `--implicit`."""
    cases = [c for c in DECISIONS if not args.cases or c.__name__ in args.cases.split(",")]
    # The pairs of output and input bytes grow with the square of the lines.
    number = min(args.rows, 100)
    without = agreements(cases, number, engine, [])
    implicit = agreements(cases, number, engine, ["--implicit=yes"])
    rows = []
    print(f"{'decisions':34} {'explicit':>9} {'recall':>9} {'precision':>10} {'of file level':>14}")
    for a, b in zip(without, implicit, strict=True):
        values = {"recall_explicit": a.recall, "recall": b.recall, "precision": b.precision}
        values["file_precision"] = b.file_precision
        print(f"{a.name:34} {_share(a.recall):>9} {_share(b.recall):>9} {_share(b.precision):>10}", end=" ")
        print(f"{_share(b.file_precision):>14} {b.note}", flush=True)
        rows += [["decisions", a.name, name, f"{v:.6f}"] for name, v in values.items() if v is not None]
    return rows


def _level(args: argparse.Namespace, engine: Path) -> list[list[str]]:
    """Tasks of our own, by files, functions and bytes."""
    backstory = shutil.which(backstory_program.chosen())
    found = levels(args.rows, engine, backstory)
    rows = []
    for one in found:
        values = {"recall": one.recall, "precision": one.precision}
        rows += [["levels", one.case, f"{one.level}_{n}", f"{v:.6f}"] for n, v in values.items() if v is not None]
    print("tasks: recall, precision", *byte_tables(rows).get("levels", []), sep="\n")
    return rows


def _cost(args: argparse.Namespace, engine: Path) -> list[list[str]]:
    times = defaultdict[tuple[str, str], list[float]](list)
    memories, rows = dict[str, Memory](), []
    for e in executions(list(COMMANDS), args.rounds, args.copies, engine):
        times[e.command, e.mode].append(e.cpu_s)
        rows.append(["cost", e.command, f"{e.mode}_cpu_s_{e.round}", f"{e.cpu_s:.4f}"])
        if e.memory:
            memories[e.command] = e.memory
    print(f"{'command':14} {'native':>9} {'valgrind':>9} {'bytes':>9} {'ratio':>7}")
    for name in memories:
        native, valgrind, under = (median(times[name, mode]) for mode in MODES)
        print(f"{name:14} {native:7.3f} s {valgrind:7.3f} s {under:7.3f} s {under / native:7.1f}")
    print(f"{'command':14} {'program':>9} {'labels':>9} {'sets':>9} labels for each byte of the program")
    for name, m in memories.items():
        sizes = {"program": m.program, "labels": m.labels, "sets": m.sets}
        rows += [["memory", name, f"{part}_bytes", str(value)] for part, value in sizes.items()]
        mib = [f"{value / 2**20:7.1f} M" for value in sizes.values()]
        print(f"{name:14} {' '.join(mib)} {m.labels / m.program:7.2f}")
    return rows


@contextmanager
def built_engine(given: str | None) -> Iterator[Path]:
    """Returns the directory of the engine, which is built if none is given."""
    if given:
        yield Path(given).resolve()
        return
    with tempfile.TemporaryDirectory() as name:
        engine = Path(name).resolve()
        subprocess.run([str(BUILD), str(engine)], check=True)
        yield engine


def _measured(args: argparse.Namespace) -> tuple[list[list[str]], bool]:
    with built_engine(args.engine) as engine:
        rows, good = _agree(args, engine) if args.rows else ([], True)
        if args.rows:
            rows += _decide(args, engine)
        if args.rows and not args.cases:
            rows += _level(args, engine)
        if args.rounds:
            rows += _cost(args, engine)
    return rows, good


def _write(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(FIELDS)
        writer.writerows(rows)


def read_bytes(path: Path) -> list[list[str]]:
    """Reads the rows of an earlier measurement."""
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def measured_bytes(args: argparse.Namespace, out: Path | None) -> list[list[str]]:
    """Measures, and returns the rows. Writes them to `out`, if given."""
    rows, _ = _measured(args)
    if out:
        _write(out, rows)
    return rows


def main_bytes(args: argparse.Namespace) -> int:
    """Prints the tables, and writes the CSV. Exits with 1 if a promise about truth is broken."""
    rows, good = _measured(args)
    if args.out:
        _write(Path(args.out), rows)
    if not good:
        print("backstory-bench: recall or precision is below what is promised", file=sys.stderr)
    return 0 if good else 1
