"""Measures Postmark while a share of its files is text, whose versions are inspected afterwards.

Story Book's file system inspects each `.txt` file when it is closed. `backstory` keeps the contents
and inspects them later, on request. So this measures both parts for each share of text files:

- the seconds of Postmark's transactions, natively and recorded with contents: by `record`, or with
  `--mounted` below `mount --contents=all` (root);
- the seconds and the processor time of `backstory inspect OLD NEW` for each text file that they
  changed, one file after another.

The paper compares its file system with a pass-through one, too. So `--mounted` also measures the
transactions below `passthrough_ll`, and gives the ratios beside the paper's.

The parameters are those of `backstory-bench mounted`. Each round measures every share once, and for
each share every place once, in random order. Postmark's files are left between its phases, so that
a run of their own makes and changes them. Each phase below a mount has a mount of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import backstory_program, progress
from .mounted import PAPER, HungError, Place, compiled, opened, places, reduced, selected
from .report import write_rows

FIELDS = [
    "by",
    "text_percent",
    "round",
    "native_s",
    "passthrough_s",
    "recorded_s",
    "inspected_files",
    "inspection_s",
    "inspection_cpu_s",
]
BY, TEXT, ROUND, NATIVE_S, PASSTHROUGH_S, RECORDED_S, FILES, INSPECTION_S, INSPECTION_CPU_S = FIELDS
DIRECTORY, PASSTHROUGH, MOUNT, RECORD = "the directory", "passthrough_ll", "mount --contents=all", "record"
"""The places: the first three are those of `mounted`."""
COLUMNS = {DIRECTORY: NATIVE_S, PASSTHROUGH: PASSTHROUGH_S, MOUNT: RECORDED_S, RECORD: RECORDED_S}
"""The columns of the places' seconds."""
HEADS = {NATIVE_S: "native (s)", PASSTHROUGH_S: f"{PASSTHROUGH} (s)", RECORDED_S: "recorded (s)"}
PAPER_RATIOS = {"the paper's TxtFS, at first": ("1.09", "1.76"), "the paper's TxtFS, 25 %": ("1.40", "2.2")}
"""Its seconds over those of the pass-through file system, and over those of ext3 (section 4.3)."""
BEFORE, AFTER = "before", "after"
"""The names of the runs that made the files and that changed them."""


@dataclass(frozen=True)
class Work:
    """A Postmark with a share of text files, and the program that records it."""

    backstory: str
    program: Path
    size: Mapping[str, int]
    text: int
    """The percentage of text files."""


def places_of_round(backstory: str, libfuse: str, mounted: bool) -> list[Place]:
    """Returns the places that each round measures.

    Raises
    ------
    SystemExit
        The program of a place is not installed.
    """
    known = places(backstory, libfuse, [])
    if not mounted:
        return [*selected(DIRECTORY, known), Place(RECORD)]
    found = selected(",".join((DIRECTORY, PASSTHROUGH, MOUNT)), known)
    if lacking := [reason for place in found if (reason := place.missing())]:
        raise SystemExit(f"backstory-bench: {'; '.join(lacking)}")
    return found


def transactions_s(words: Sequence[str], environment: Mapping[str, str]) -> float:
    """Runs a Postmark, and returns the seconds of its transactions."""
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return float(done.stdout.split()[0])


def sizes(at: Path) -> dict[Path, int]:
    """Returns the sizes of the text files below a directory."""
    return {path: path.stat().st_size for path in at.glob("*/*.txt")}


def inspect_all(backstory: str, texts: Sequence[Path], environment: Mapping[str, str]) -> tuple[float, float]:
    """Inspects what changed in each file. Returns the elapsed and the processor time (s)."""
    began, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    for number, path in enumerate(texts):
        words = [backstory, "inspect", f"{path}@{BEFORE}", f"{path}@{AFTER}"]
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
        if done.returncode > 1 or "added" not in done.stdout:
            raise SystemExit(f"backstory-bench: inspect {path} fails: {done.stdout[-300:]}{done.stderr[-300:]}")
        if number % 20 == 0:
            progress.show(f"inspect: {number} of {len(texts)}")
    elapsed, ended = time.monotonic() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def postmark(work: Work, at: Path, phases: str) -> list[str]:
    """Returns the command of some phases of Postmark in a directory."""
    return [str(work.program), str(at), *(str(work.size[name]) for name in PAPER), str(work.text), phases]


def run_phases(place: Place, work: Work, top: Path, name: str, phases: str) -> float:
    """Runs phases of Postmark in a place below `top`. Returns the seconds of the transactions.

    A place that records makes the run `name` of them, and its record is then indexed.
    """
    environment = os.environ | {"BACKSTORY_STORE": str(top / "store")}
    record = [work.backstory, "record", "--name", name, "--"] if place.name == RECORD else []
    if place.name == MOUNT:
        place = replace(place, command=(*place.command, "--name", name))
    with opened(place, top) as at:
        seconds = transactions_s(record + postmark(work, at, phases), environment)
    if COLUMNS[place.name] == RECORDED_S:
        subprocess.run([work.backstory, "index", "--wait"], check=True, env=environment)
    return seconds


def measure_place(place: Place, work: Work, top: Path) -> dict[str, object]:
    """Returns the values of a place by column."""
    # The record of a mount has the paths of the directory behind it, too.
    behind = top / "behind"
    run_phases(place, work, top, BEFORE, "m")
    before = sizes(behind)
    os.sync()
    seconds = run_phases(place, work, top, AFTER, "t")
    found: dict[str, object] = {COLUMNS[place.name]: f"{seconds:.3f}"}
    if RECORDED_S in found:
        after = sizes(behind)
        texts = sorted(path for path, length in before.items() if after.get(path, length) != length)
        environment = os.environ | {"BACKSTORY_STORE": str(top / "store")}
        elapsed, cpu = inspect_all(work.backstory, texts, environment)
        found |= {FILES: len(texts), INSPECTION_S: f"{elapsed:.3f}", INSPECTION_CPU_S: f"{cpu:.3f}"}
    return found


def measure(chosen: Sequence[Place], work: Work, base: str) -> dict[str, object]:
    """Measures every place once, in random order. Returns the values of a row by column."""
    row: dict[str, object] = {}
    for place in random.sample(chosen, k=len(chosen)):
        with tempfile.TemporaryDirectory(prefix="bench-inspected-", dir=base) as top:
            row |= measure_place(place, work, Path(top))
    return row


def shares(rows: Sequence[Mapping[str, object]]) -> dict[str, list[Mapping[str, object]]]:
    """Returns the rows of each share of text files."""
    found: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        found.setdefault(f"{row[TEXT]} %", []).append(row)
    return found


def ratio(rows: Sequence[Mapping[str, object]], parts: Sequence[str], to: str) -> str:
    """Returns the median ratio of the sum of some columns to another column of the same round."""
    found = [
        sum(float(str(row[name])) for name in parts) / float(str(row[to])) for row in rows if float(str(row[to])) > 0
    ]
    return f"{statistics.median(found):.2f}" if found else ""


def ratios(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of the ratios to `passthrough_ll` and to the directory, and of the paper's.

    The paper's file system inspects while the transactions run. Here, the inspection is added.
    """
    both = (RECORDED_S, INSPECTION_S)
    heads = [f"{what} / {to}" for to in (PASSTHROUGH, "native") for what in ("recorded", "with inspection")]
    lines = [f"| text files | {' | '.join(heads)} |", f"|{' ---: |' * 5}"]
    for share, own in shares(rows).items():
        cells = [ratio(own, parts, to) for to in (PASSTHROUGH_S, NATIVE_S) for parts in (both[:1], both)]
        lines.append(f"| {share} | {' | '.join(cells)} |")
    lines += [f"| {name} |  | {passthrough} |  | {plain} |" for name, (passthrough, plain) in PAPER_RATIOS.items()]
    return lines


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians for each share of text files.

    If all rows have the seconds of `passthrough_ll`, the table of ratios follows.
    """
    beside = all(row.get(PASSTHROUGH_S) for row in rows)
    seconds = [name for name in HEADS if beside or name != PASSTHROUGH_S]
    heads = [*(HEADS[name] for name in seconds), "inspected", "processor time each (ms)"]
    lines = [f"| text files | {' | '.join(heads)} |", f"|{' ---: |' * (len(heads) + 1)}"]
    for share, own in shares(rows).items():
        names = [*seconds, FILES, INSPECTION_CPU_S]
        *times, files, cpu = (statistics.median(float(str(row[name])) for row in own) for name in names)
        each = f"{1000 * cpu / files:.1f}" if files else ""
        lines.append(f"| {share} | {' | '.join(f'{value:.2f}' for value in times)} | {files:.0f} | {each} |")
    return [*lines, "", *ratios(rows)] if beside else lines


def main_inspected(args: argparse.Namespace) -> int:
    """Runs the command."""
    backstory = backstory_program.needed()
    chosen = places_of_round(backstory, args.libfuse, args.mounted)
    size = reduced(args.part)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-postmark-") as made:
        program = compiled(Path(made))
        for number in range(args.rounds):
            for text in random.sample(args.text, k=len(args.text)):
                try:
                    found = measure(chosen, Work(backstory, program, size, text), args.workdir)
                except HungError as error:
                    raise SystemExit(f"backstory-bench: {error} hung, and was killed") from error
                rows.append({BY: "mount" if args.mounted else RECORD, TEXT: text, ROUND: number, **found})
                progress.show(f"postmark: round {number + 1} of {args.rounds}, {text} % text")
    progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory_program.chosen())
    rows.sort(key=lambda row: args.text.index(row[TEXT]))
    print("\n".join(summary(rows)))
    return 0
