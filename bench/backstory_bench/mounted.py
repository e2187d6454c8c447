"""Measures Postmark in a directory, below passthrough file systems, and below `backstory mount`.

The parameters are those of the Story Book paper (figure 8). There are 30 threads, 890 directories,
9,000 files of 190 KiB, 3,600 transactions, and blocks of 28 KiB. Each round measures every place
once, in random order. The page cache is written back before each measurement.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from . import progress

FIELDS = ["place", "round", "transactions_s", "all_s"]
PAPER = {"threads": 30, "directories": 890, "files": 9000, "transactions": 3600, "mean": 190 << 10, "block": 28 << 10}
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Place:
    """A directory to measure in: the plain one, or what a command mounts over it."""

    name: str
    command: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Returns why the place cannot be measured here."""
        if self.command and shutil.which(self.command[0]) is None:
            return f"{self.command[0]} is not installed"
        return None


def places(backstory: str, others: Sequence[str]) -> list[Place]:
    """Returns the places. `others` are NAME=COMMAND, with {behind} and {at} in the command."""
    mount = (backstory, "mount", "{behind}", "{at}")
    found = [
        Place("the directory"),
        Place("bindfs", ("bindfs", "-f", "--multithreaded", "{behind}", "{at}")),
        Place("mount", mount),
        Place("mount --passthrough on", (*mount, "--passthrough", "on")),
    ]
    for other in others:
        name, _, command = other.partition("=")
        found.append(Place(name, tuple(shlex.split(command))))
    return found


def _wait(done: bool, at: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while os.path.ismount(at) != done:
        if time.monotonic() > deadline:
            raise SystemExit(f"backstory-bench: {at} is {'not' if done else 'still'} mounted after {PATIENCE_S:.0f} s")
        time.sleep(0.01)


@contextmanager
def opened(place: Place, top: Path) -> Iterator[Path]:
    """Mounts a place over an empty directory below `top`, and unmounts it at the end."""
    behind, at = top / "behind", top / "at"
    behind.mkdir()
    at.mkdir()
    if not place.command:
        yield behind
        return
    words = [word.format(behind=behind, at=at) for word in place.command]
    environment = os.environ | {"BACKSTORY_STORE": str(top / "store")}
    server = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(True, at)
        yield at
    finally:
        subprocess.run(["umount", at], check=False)
        _wait(False, at)
        server.wait(PATIENCE_S)


def measure(place: Place, program: Path, size: Mapping[str, int], base: Path) -> tuple[float, float]:
    """Returns the seconds of the transactions, and those of all phases."""
    top = Path(tempfile.mkdtemp(prefix="bench-mounted-", dir=base))
    try:
        with opened(place, top) as at:
            os.sync()
            words = [str(program), str(at), *(str(size[name]) for name in PAPER)]
            printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        return float(printed[0]), float(printed[1])
    finally:
        shutil.rmtree(top, ignore_errors=True)


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians, and of their ratios to the directory."""
    medians = {
        name: statistics.median(float(str(row["all_s"])) for row in rows if row["place"] == name)
        for name in dict.fromkeys(str(row["place"]) for row in rows)
    }
    plain = medians.get("the directory")
    lines = ["| Place | All phases (s) | To the directory |", "| --- | ---: | ---: |"]
    for name, median in medians.items():
        ratio = f"{median / plain:.2f}" if plain else ""
        lines.append(f"| {name} | {median:.2f} | {ratio} |")
    return lines


def main_mounted(args: argparse.Namespace) -> int:
    """Runs the command."""
    chosen = places(os.environ.get("BACKSTORY", "backstory"), args.other)
    lacking = [(place.name, place.missing()) for place in chosen if place.missing()]
    for name, reason in lacking:
        print(f"SKIPPED {name}: {reason}", file=sys.stderr)
    chosen = [place for place in chosen if not place.missing()]
    size = {name: max(1, value // args.part) for name, value in PAPER.items()} | {
        name: PAPER[name] for name in ("threads", "mean", "block")
    }
    base = Path(args.workdir)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-postmark-") as made:
        program = Path(made) / "postmark"
        source = Path(made) / "postmark.c"
        source.write_text(resources.files(__package__).joinpath("postmark.c").read_text())
        subprocess.run(["gcc", "-O2", "-pthread", "-o", program, source], check=True)
        for number in range(args.rounds):
            for place in random.sample(chosen, k=len(chosen)):
                transactions, whole = measure(place, program, size, base)
                values = [place.name, number, f"{transactions:.3f}", f"{whole:.3f}"]
                rows.append(dict(zip(FIELDS, values, strict=True)))
            progress.show(f"postmark: round {number + 1} of {args.rounds}")
    progress.show("")
    if args.out:
        with Path(args.out).open("w", newline="") as out:
            writer = csv.DictWriter(out, FIELDS)
            writer.writeheader()
            writer.writerows(rows)
    order = [place.name for place in chosen]
    rows.sort(key=lambda row: order.index(str(row["place"])))
    print("\n".join(summary(rows)))
    return 0
