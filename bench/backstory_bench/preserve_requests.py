"""Counts the requests that programs make before they change files that their run has read.

Each workload reads all files of a tree, and then removes or replaces them. It is recorded once
under strace, for these counts:

- requests: calls of `getpriority` by which a process asks the supervisor to preserve a content;
- own links: files that a process has preserved itself, by a hard link;
- preserved: all contents that were preserved.

The supervisor does not say how long a request waits, and strace makes it wait longer. So each round
then measures the workload without strace: natively, without contents and with `lazy`. The
difference of the last two, over the requests and the own links, bounds the time of one of them.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import backstory_program, progress
from .measure import become_subreaper
from .pending_runs import checked, held, recorded
from .promises import WORKLOADS
from .report import write_rows
from .stats import paired

FIELDS = ["workload", "what", "mode", "round", "value"]
NATIVE, OFF, LAZY = "native", "off", "lazy"
MODES = (NATIVE, OFF, LAZY)
COUNTS = ("files", "directories", "requests", "own_links", "preserved")
WALL = "wall_s"
REQUEST = re.compile(r"getpriority\((?:0x62736d67|1651731815)\b[^,]*, 4\b")
"""`BS_MAGIC_WHICH`, `BS_MAGIC_PRESERVE` of `backstory_abi.h`. A resumed line has no arguments."""
LINK = re.compile(r'linkat\([^,]+, "(?!/proc/)[^"]*", AT_FDCWD, "[^"]*\.kept/\d+", 0')
"""The supervisor links a file by its descriptor in /proc."""
FAILED = "= -1 "
READ = "find {} -type f -exec cat {{}} + >/dev/null"


def _copied(name: str) -> Callable[[Path], None]:
    """Returns what makes a new copy of the tree, and an archive of it."""

    def reset(root: Path) -> None:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
        if not (root / "tree.tar").exists():
            subprocess.run(["tar", "-cf", "tree.tar", "tree"], cwd=root, check=True)
        subprocess.run(["tar", "-xf", "tree.tar", "-C", name], cwd=root, check=True)

    return reset


def _cloned(root: Path) -> None:
    shutil.rmtree(root / "clone", ignore_errors=True)
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", "origin", "clone"], cwd=root, check=True)


@dataclass(frozen=True)
class Replacement:
    """A command that reads files, and then removes or replaces them."""

    what: str
    tree: str
    """The directory of the files."""
    prepare: Callable[[Path], None]
    reset: Callable[[Path], None]
    change: str
    """The part of the command that changes the files."""

    def command(self) -> list[str]:
        """Returns the command. It reads the files first."""
        return ["sh", "-c", f"{READ.format(self.tree)} && {self.change}"]


_TREE = WORKLOADS["tar"].prepare
"""Makes 5,000 files of 600 bytes in 50 directories."""

REPLACEMENTS = {
    "rm": Replacement("`rm -r`", "old/tree", _TREE, _copied("old"), "rm -r old/tree"),
    "untar": Replacement("`tar x` over its former output", "old/tree", _TREE, _copied("old"), "tar xf tree.tar -C old"),
    "overwrite": Replacement(
        "the same with `--overwrite`", "old/tree", _TREE, _copied("old"), "tar xf tree.tar -C old --overwrite"
    ),
    "checkout": Replacement(
        "`git checkout` of an old commit and back, five times",
        "clone/src",
        WORKLOADS["git"].prepare,
        _cloned,
        "cd clone && for i in 1 2 3 4 5; do git checkout -q main~1000 && git checkout -q main || exit; done",
    ),
}


def counted(log: str) -> tuple[int, int]:
    """Returns the numbers of requests and of own links in an output of strace."""
    links = (line for line in log.splitlines() if LINK.search(line))
    return len(REQUEST.findall(log)), sum(1 for line in links if FAILED not in line)


def count(replacement: Replacement, root: Path, backstory: str) -> dict[str, int]:
    """Records the command under strace, and returns the counts."""
    store, log = root.with_name("counted-store"), root.with_name("strace.log")
    replacement.reset(root)
    files = [path for path in (root / replacement.tree).rglob("*") if path.is_file()]
    traced = ["strace", "-f", "-qq", "-e", "trace=getpriority,linkat", "-e", "signal=none", "-o", str(log)]
    with held(store):
        checked([*traced, *recorded(replacement.command(), store, backstory, LAZY)], root)
        preserved = sum(1 for _ in store.glob("runs/*.kept/*"))
    requests, links = counted(log.read_text(errors="replace"))
    shutil.rmtree(store)
    directories = len({path.parent for path in files})
    return dict(zip(COUNTS, [len(files), directories, requests, links, preserved], strict=True))


def seconds(replacement: Replacement, mode: str, root: Path, backstory: str) -> float:
    """Returns the seconds of the command in a mode, until the prompt is back."""
    replacement.reset(root)
    os.sync()
    command = replacement.command()
    if mode == NATIVE:
        return checked(command, root).wall
    store = Path(tempfile.mkdtemp(prefix="store-", dir=root.parent))
    try:
        return checked(recorded(command, store, backstory, mode), root).wall
    finally:
        shutil.rmtree(store)


def measure(name: str, top: Path, rounds: int, backstory: str) -> list[dict[str, object]]:
    """Returns the rows of a workload: its counts, and the times of all rounds."""
    replacement, root = REPLACEMENTS[name], top / name / "work"
    root.mkdir(parents=True)
    replacement.prepare(root)
    counts = count(replacement, root, backstory)
    rows: list[dict[str, object]] = [
        dict(zip(FIELDS, [name, what, LAZY, 0, value], strict=True)) for what, value in counts.items()
    ]
    for number in range(rounds):
        for mode in random.sample(MODES, k=len(MODES)):
            took = seconds(replacement, mode, root, backstory)
            rows.append(dict(zip(FIELDS, [name, WALL, mode, number, f"{took:.4f}"], strict=True)))
        progress.show(f"{name}: round {number + 1} of {rounds}")
    progress.show("")
    shutil.rmtree(root.parent)
    return rows


def waits(walls: Sequence[Mapping[str, object]], number: int) -> str:
    """Returns the µs that `lazy` adds for each of so many requests and links, with the range."""
    if number == 0:
        return ""
    values = {(str(row["round"]), str(row["mode"])): float(str(row["value"])) for row in walls}
    rounds = {turn for turn, _ in values}
    added = sorted((values[turn, LAZY] - values[turn, OFF]) * 1e6 / number for turn in rounds)
    return f"{statistics.median(added):.0f} ({added[0]:.0f} to {added[-1]:.0f})"


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the table."""
    heads = ["files", "directories", "requests", "own links", "preserved", "native (s)", "`off` / native"]
    heads += ["`lazy` / `off`", "`lazy` − `off`, of a request or link (µs)"]
    lines = [f"| the files are read, and then | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for name in dict.fromkeys(str(row["workload"]) for row in rows):
        own = [row for row in rows if row["workload"] == name]
        counts = {str(row["what"]): int(str(row["value"])) for row in own if row["what"] != WALL}
        walls = [row for row in own if row["what"] == WALL]
        native = statistics.median(float(str(row["value"])) for row in walls if row["mode"] == NATIVE)
        cells = [REPLACEMENTS[name].what, *(f"{counts[what]:,}" for what in COUNTS), f"{native:.3f}"]
        for mode, to in ((OFF, NATIVE), (LAZY, OFF)):
            ratios = paired(walls, "value", mode, to)
            cells.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        lines.append(f"| {' | '.join([*cells, waits(walls, counts['requests'] + counts['own_links'])])} |")
    return lines


def main_requests(args: argparse.Namespace) -> int:
    """Runs the command."""
    names = args.workloads.split(",")
    if unknown := [name for name in names if name not in REPLACEMENTS]:
        raise SystemExit(f"backstory-bench: {unknown[0]} is none of {', '.join(REPLACEMENTS)}")
    if missing := [name for name in ("strace", "git", "tar") if shutil.which(name) is None]:
        raise SystemExit(f"backstory-bench: not installed: {', '.join(missing)}")
    become_subreaper()
    backstory = backstory_program.needed()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-requests-", dir=args.workdir) as top:
        for name in names:
            rows += measure(name, Path(top), args.rounds, backstory)
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory)
    print("\n".join(summary(rows)))
    return 0


def add_requests(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser("requests", help="count requests before changes, and measure what they add (strace)")
    p.add_argument("--workloads", default=",".join(REPLACEMENTS), help=f"comma-separated: {', '.join(REPLACEMENTS)}")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of trees and stores")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_requests)
