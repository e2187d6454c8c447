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
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from . import backstory_program, load_profile, progress
from .report import write_rows

FIELDS = ["place", "round", "transactions_s", "all_s"]
PAPER = {"threads": 30, "directories": 890, "files": 9000, "transactions": 3600, "mean": 190 << 10, "block": 28 << 10}
KATCHER = "postmark"
FEWEST_TRANSACTIONS = 10
"""Katcher's Postmark divides by a tenth of its transactions."""
PATIENCE_S = 30.0
MOST_S = 120.0
"""A file system that needs longer for one Postmark has hung, and is killed."""
HUNG = "hung"
"""The word for the seconds of a measurement in which the file system hung."""
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


class PostmarkError(Exception):
    """Katcher's Postmark failed."""


class HungError(Exception):
    """A file system did not serve its requests in time, and was killed."""


@contextmanager
def opened(place: Place, top: Path, most: float = MOST_S) -> Iterator[Path]:
    """Mounts a place over a directory below `top`, which it makes, and unmounts it at the end.

    Raises `HungError` if the work in the directory fails because the server was killed, after
    `most` seconds.
    """
    behind, at = top / "behind", top / "at"
    behind.mkdir(exist_ok=True)
    at.mkdir(exist_ok=True)
    if not place.command:
        yield behind
        return
    words = [word.format(behind=behind, at=at) for word in place.command]
    environment = os.environ | {"BACKSTORY_STORE": str(top / "store")}
    server = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    hung = threading.Event()

    def kill() -> None:
        # Without its server, each call below the mount fails, so that the program ends, too.
        hung.set()
        server.kill()

    end = threading.Timer(most, kill)
    try:
        _wait(True, at)
        end.start()
        yield at
    except (subprocess.CalledProcessError, PostmarkError) as error:
        if hung.is_set():
            raise HungError(place.name) from error
        raise
    finally:
        end.cancel()
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
        raise PostmarkError("postmark failed: " + printed[-1][-300:])
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


def profile_name(place: Place) -> str:
    """Returns the name of a place as that of a file."""
    return re.sub(r"[^a-z0-9_]+", "-", place.name.lower()).strip("-")


def selected(named: str | None, places: Sequence[Place]) -> list[Place]:
    """Returns the places of a comma-separated list, or all without a list."""
    if named is None:
        return list(places)
    known = {place.name: place for place in places}
    words = [word.strip() for word in named.split(",")]
    if unknown := [word for word in words if word not in known]:
        raise SystemExit(f"backstory-bench: no place {unknown[0]!r}; the places are: {', '.join(known)}")
    return [known[word] for word in words]


def measure(
    place: Place, program: Path | None, size: Mapping[str, int], base: Path, perf: Path | None = None
) -> tuple[float, float]:
    """Returns the seconds of the transactions, and those of all phases.

    Without a `program`, Katcher's Postmark runs. A profile is written into the directory `perf`.
    """
    top = Path(tempfile.mkdtemp(prefix="bench-mounted-", dir=base))
    try:
        with opened(place, top) as at, load_profile.profiled(perf, profile_name(place)):
            os.sync()
            if program is None:
                return run_katcher(Path(KATCHER), at, size, top)
            return run_threads(program, at, size)
    finally:
        shutil.rmtree(top, ignore_errors=True)


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians, and of the ratios of all phases to the directory.

    Measurements in which a file system hung are counted beside its name.
    """
    names = dict.fromkeys(str(row["place"]) for row in rows)
    seconds = {name: [str(row["all_s"]) for row in rows if row["place"] == name] for name in names}
    ended = {name: [float(each) for each in of if each != HUNG] for name, of in seconds.items()}
    medians = {name: statistics.median(of) for name, of in ended.items() if of}
    plain = medians.get("the directory")
    lines = [
        "| place | all phases (s) | of the directory | transactions (s) |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, of in seconds.items():
        median = f"{medians[name]:.2f}" if name in medians else ""
        ratio = f"{medians[name] / plain:.2f}" if plain and name in medians else ""
        hung = f" ({HUNG} in {of.count(HUNG)} of {len(of)} rounds)" if HUNG in of else ""
        some = [float(str(row["transactions_s"])) for row in rows if row["place"] == name and row["all_s"] != HUNG]
        transactions = f"{statistics.median(some):.2f}" if some else ""
        lines.append(f"| {name}{hung} | {median} | {ratio} | {transactions} |")
    return lines


def main_mounted(args: argparse.Namespace) -> int:
    """Runs the command."""
    chosen = selected(args.places, places(backstory_program.chosen(), args.libfuse, args.other))
    if args.perf and (reason := load_profile.missing()):
        raise SystemExit(f"backstory-bench: {reason}")
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
                try:
                    times = measure(place, None if args.katcher else program, size, base, args.perf)
                    words = [f"{each:.3f}" for each in times]
                except HungError:
                    words = [HUNG, HUNG]
                except PostmarkError as error:
                    raise SystemExit(f"backstory-bench: {error}") from error
                rows.append(dict(zip(FIELDS, [place.name, number, *words], strict=True)))
            progress.show(f"postmark: round {number + 1} of {args.rounds}")
    progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory_program.chosen())
    order = [place.name for place in chosen]
    rows.sort(key=lambda row: order.index(str(row["place"])))
    print("\n".join(summary(rows)))
    return 0
