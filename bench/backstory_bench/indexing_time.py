"""Measures the processor time of the recording, and apart from it that of the indexing.

Each workload only looks at the files of a tree, or reads them. In each round and mode, a new store
gets a run of `true`, which leaves in it what a store has once. Then the workload is recorded twice,
over files that do not change. So the first run meets new files, and the second one files whose
identities the store knows. Indexers are kept from the store while a run is recorded, and one
indexer is measured afterwards.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import backstory_program, progress
from .measure import become_subreaper
from .pending_runs import checked, held, recorded
from .promises import WORKLOADS
from .report import write_rows

FIELDS = ["workload", "mode", "run", "round", "record_s", "index_s"]
NATIVE, OFF, LAZY = "native", "off", "lazy"
FIRST, AGAIN = "first", "again"
FILES = 20_000
"""The files of the tree of `find` and `grep`."""


@dataclass(frozen=True)
class Look:
    """A command that looks at each file of the tree, or reads it."""

    what: str
    command: str
    operations: int
    """For each file. An open, a read and a close are three."""


LOOKS = {
    "find": Look("`find` with `stat`", "find tree -type f -size +0 -printf '%s %p\\n' >out.txt", 1),
    "find-thrice": Look(
        "the same three times in a run",
        "for i in 1 2 3; do find tree -type f -size +0 -printf '%s %p\\n' >out.txt || exit; done",
        3,
    ),
    "grep": Look("`grep -r`", "grep -rc 'file 19999' tree >out.txt", 3),
}


def _recorded(command: Sequence[str], store: Path, root: Path, backstory: str, mode: str) -> tuple[float, float]:
    """Returns the processor time of a recording, and that of its indexing."""
    with held(store):
        record = checked(recorded(command, store, backstory, mode), root).cpu
    return record, checked([backstory, "index", "--store", str(store), "--wait"], root).cpu


def measure(name: str, root: Path, rounds: int, backstory: str) -> list[dict[str, object]]:
    """Returns the rows of a workload. `root` has the tree."""
    command = ["sh", "-c", LOOKS[name].command]
    rows: list[dict[str, object]] = []

    def add(mode: str, run: str, number: int, record: float, index: float) -> None:
        rows.append(dict(zip(FIELDS, [name, mode, run, number, f"{record:.4f}", f"{index:.4f}"], strict=True)))

    for number in range(rounds):
        for mode in random.sample((NATIVE, OFF, LAZY), k=3):
            if mode == NATIVE:
                add(mode, FIRST, number, checked(command, root).cpu, 0.0)
                continue
            store = Path(tempfile.mkdtemp(prefix="store-", dir=root.parent))
            try:
                _recorded(["true"], store, root, backstory, mode)
                for run in (FIRST, AGAIN):
                    add(mode, run, number, *_recorded(command, store, root, backstory, mode))
            finally:
                shutil.rmtree(store)
        progress.show(f"{name}: round {number + 1} of {rounds}")
    progress.show("")
    return rows


def _cell(values: Sequence[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the table."""
    heads = ["recording (s)", "indexing (s)", "indexing, a file (µs)", "indexed operations a second"]
    lines = [f"| workload | contents, run | {' | '.join(heads)} |", f"| --- | --- |{' ---: |' * len(heads)}"]
    for name in dict.fromkeys(str(row["workload"]) for row in rows):
        for mode, run in ((NATIVE, FIRST), (OFF, FIRST), (OFF, AGAIN), (LAZY, FIRST), (LAZY, AGAIN)):
            own = [row for row in rows if (row["workload"], row["mode"], row["run"]) == (name, mode, run)]
            record, index = ([float(str(row[what])) for row in own] for what in ("record_s", "index_s"))
            cells = [LOOKS[name].what, NATIVE if mode == NATIVE else f"`{mode}`, {run}", _cell(record, 3)]
            if mode == NATIVE:
                cells += ["", "", ""]
            else:
                rate = FILES * LOOKS[name].operations / statistics.median(index)
                cells += [_cell(index, 3), _cell([s * 1e6 / FILES for s in index], 1), f"{rate:,.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def main_indexing(args: argparse.Namespace) -> int:
    """Runs the command."""
    names = args.workloads.split(",")
    if unknown := [name for name in names if name not in LOOKS]:
        raise SystemExit(f"backstory-bench: {unknown[0]} is none of {', '.join(LOOKS)}")
    become_subreaper()
    backstory = backstory_program.needed()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-indexing-", dir=args.workdir) as top:
        root = Path(top) / "work"
        root.mkdir()
        WORKLOADS["grep"].prepare(root)
        for name in names:
            rows += measure(name, root, args.rounds, backstory)
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory)
    print("\n".join(summary(rows)))
    return 0


def add_indexing(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser("indexing", help="measure the processor time of indexing new and unchanged files")
    p.add_argument("--workloads", default=",".join(LOOKS), help=f"comma-separated: {', '.join(LOOKS)}")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of the tree and the stores")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_indexing)
