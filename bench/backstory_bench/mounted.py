"""Measures Postmark in a directory, below passthrough file systems, and below `backstory mount`.

The parameters are those of the Story Book paper (figure 8). There are 30 threads, 890 directories,
9,000 files of 190 KiB, 3,600 transactions, and blocks of 28 KiB. With `--larger N`, fewer and
larger files have the same bytes, so that the work is heavy on data. Each round measures every place
once, in random order. The page cache is written back before each measurement.

The program is a Postmark with threads, or Katcher's own one (Debian package postmark). The latter
has no threads, so that one process runs for each thread, with its part of the files.
"""

from __future__ import annotations

import argparse
import os
import random
import re
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
from .report import write_rows

FIELDS = ["place", "round", "transactions_s", "all_s"]
PAPER = {"threads": 30, "directories": 890, "files": 9000, "transactions": 3600, "mean": 190 << 10, "block": 28 << 10}
KATCHER = "postmark"
FEWEST_TRANSACTIONS = 10
"""Katcher's Postmark divides by a tenth of its transactions."""
PATIENCE_S = 30.0
LIBFUSE = "target/foreign-sources/fuse3"
"""Where `scripts/foreign-sources fuse3` builds the pass-through file systems of libfuse."""
SECONDS = re.compile(r"^\s*(\d+) seconds of transactions", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A directory to measure in: the plain one, or what a command mounts over it."""

    name: str
    command: tuple[str, ...] = ()
    source: str = ""
    """How to get the program, if it is in no package."""

    def missing(self) -> str | None:
        """Returns why the place cannot be measured here."""
        if self.command and shutil.which(self.command[0]) is None:
            return f"{self.command[0]} is not installed" + (f" ({self.source})" if self.source else "")
        return None


def places(backstory: str, libfuse: str, others: Sequence[str]) -> list[Place]:
    """Returns the places.

    `libfuse` has the programs of libfuse. `others` are NAME=COMMAND, with {behind} and {at} in the
    command.
    """
    mount = (backstory, "mount", "{behind}", "{at}")
    built = "scripts/foreign-sources fuse3"
    first, second = (os.path.abspath(os.path.join(libfuse, name)) for name in ("passthrough_hp", "passthrough_ll"))
    found = [
        Place("the directory"),
        Place("bindfs", ("bindfs", "-f", "--multithreaded", "{behind}", "{at}")),
        # It keeps attributes for a day. `mount` keeps none, so the second is the fair comparison.
        Place("passthrough_hp", (first, "--foreground", "{behind}", "{at}"), built),
        Place("passthrough_hp --nocache", (first, "--foreground", "--nocache", "{behind}", "{at}"), built),
        Place("passthrough_ll", (second, "-f", "-o", "source={behind}", "{at}"), built),
        Place("mount", mount),
        Place("mount --passthrough on", (*mount, "--passthrough", "on")),
        Place("mount --contents=all", (*mount, "--contents=all")),
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


def katcher_script(location: Path, number: int, size: Mapping[str, int]) -> str:
    """Returns the commands for one of several processes of Katcher's Postmark."""
    part = {name: max(1, size[name] // size["threads"]) for name in ("directories", "files", "transactions")}
    settings = {
        "location": location,
        "subdirectories": part["directories"],
        "number": part["files"],
        "transactions": max(FEWEST_TRANSACTIONS, part["transactions"]),
        "size": f"1 {2 * size['mean'] - 1}",
        "read": size["block"],
        "write": size["block"],
        "buffering": "false",
        "seed": number + 1,
    }
    return "".join(f"set {name} {value}\n" for name, value in settings.items()) + "run\nquit\n"


def run_katcher(program: Path, at: Path, size: Mapping[str, int], scripts: Path) -> tuple[float, float]:
    """Runs Katcher's Postmark in as many processes as the paper has threads."""
    words = []
    for number in range(size["threads"]):
        location = at / f"m{number}"
        location.mkdir()
        script = scripts / f"postmark.{number}"
        script.write_text(katcher_script(location, number, size))
        words.append([str(program), str(script)])
    began = time.monotonic()
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in words]
    printed = [process.communicate()[0] for process in running]
    whole = time.monotonic() - began
    found = [SECONDS.search(text) for text in printed]
    if any(process.returncode != 0 for process in running) or None in found:
        raise SystemExit("backstory-bench: postmark failed: " + printed[-1][-300:])
    return max(float(match[1]) for match in found if match), whole


def compiled(directory: Path) -> Path:
    """Compiles the Postmark with threads in a directory, and returns its path."""
    program, source = directory / "postmark", directory / "postmark.c"
    source.write_text(resources.files(__package__).joinpath("postmark.c").read_text())
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, source], check=True)
    return program


def reduced(part: int) -> dict[str, int]:
    """Returns the paper's parameters with a part of its directories, files and transactions."""
    unchanged = {name: PAPER[name] for name in ("threads", "mean", "block")}
    return {name: max(1, value // part) for name, value in PAPER.items()} | unchanged


def larger(size: Mapping[str, int], times: int) -> dict[str, int]:
    """Returns parameters with the same bytes in fewer files, each of them `times` as large."""
    fewer = {name: max(1, size[name] // times) for name in ("directories", "files", "transactions")}
    return {**size, **fewer, "mean": size["mean"] * times, "threads": min(size["threads"], fewer["files"])}


def run_threads(program: Path, at: Path, size: Mapping[str, int]) -> tuple[float, float]:
    """Runs the Postmark with threads."""
    words = [str(program), str(at), *(str(size[name]) for name in PAPER)]
    printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return float(printed[0]), float(printed[1])


def measure(place: Place, program: Path | None, size: Mapping[str, int], base: Path) -> tuple[float, float]:
    """Returns the seconds of the transactions, and those of all phases.

    Without a `program`, Katcher's Postmark runs.
    """
    top = Path(tempfile.mkdtemp(prefix="bench-mounted-", dir=base))
    try:
        with opened(place, top) as at:
            os.sync()
            if program is None:
                return run_katcher(Path(KATCHER), at, size, top)
            return run_threads(program, at, size)
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
    chosen = places(os.environ.get("BACKSTORY", "backstory"), args.libfuse, args.other)
    if args.katcher and shutil.which(KATCHER) is None:
        raise SystemExit(f"backstory-bench: {KATCHER} is not installed (Debian: apt install postmark)")
    lacking = [(place.name, place.missing()) for place in chosen if place.missing()]
    for name, reason in lacking:
        print(f"SKIPPED {name}: {reason}", file=sys.stderr)
    chosen = [place for place in chosen if not place.missing()]
    size = larger(reduced(args.part), args.larger)
    base = Path(args.workdir)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-postmark-") as made:
        program = compiled(Path(made))
        for number in range(args.rounds):
            for place in random.sample(chosen, k=len(chosen)):
                transactions, whole = measure(place, None if args.katcher else program, size, base)
                values = [place.name, number, f"{transactions:.3f}", f"{whole:.3f}"]
                rows.append(dict(zip(FIELDS, values, strict=True)))
            progress.show(f"postmark: round {number + 1} of {args.rounds}")
    progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, rows)
    order = [place.name for place in chosen]
    rows.sort(key=lambda row: order.index(str(row["place"])))
    print("\n".join(summary(rows)))
    return 0
