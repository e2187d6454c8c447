"""Measures Postmark while a share of its files is text, whose versions are inspected afterwards.

Story Book's file system inspects each `.txt` file when it is closed. `backstory` keeps the contents
and inspects them later, on request. So this measures both parts for each share of text files:

- the seconds of Postmark's transactions, natively and recorded with contents: by `record`, or with
  `--mounted` below `mount --contents=all` (root);
- the processor time of `backstory inspect OLD NEW` for each text file that they changed.

The parameters are those of `backstory-bench mounted`. Each round measures every share once.
Postmark's files are left between its phases, so that a run of their own makes and changes them.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import backstory_program, progress
from .mounted import PAPER, Place, compiled, opened, reduced
from .report import write_rows

FIELDS = ["by", "text_percent", "round", "native_s", "recorded_s", "inspected_files", "inspection_cpu_s"]
BEFORE, AFTER = "before", "after"
"""The names of the runs that made the files and that changed them."""


def transactions_s(words: Sequence[str], environment: Mapping[str, str]) -> float:
    """Runs a Postmark, and returns the seconds of its transactions."""
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return float(done.stdout.split()[0])


def sizes(at: Path) -> dict[Path, int]:
    """Returns the sizes of the text files below a directory."""
    return {path: path.stat().st_size for path in at.glob("*/*.txt")}


def inspect_all(backstory: str, texts: Sequence[Path], environment: Mapping[str, str]) -> float:
    """Inspects what changed in each file. Returns the processor time (s)."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    for number, path in enumerate(texts):
        words = [backstory, "inspect", f"{path}@{BEFORE}", f"{path}@{AFTER}"]
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
        if done.returncode > 1 or "added" not in done.stdout:
            raise SystemExit(f"backstory-bench: inspect {path} fails: {done.stdout[-300:]}{done.stderr[-300:]}")
        if number % 20 == 0:
            progress.show(f"inspect: {number} of {len(texts)}")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def postmark(program: Path, at: Path, size: Mapping[str, int], text: int, phases: str) -> list[str]:
    """Returns the command of some phases of Postmark in a directory."""
    return [str(program), str(at), *(str(size[name]) for name in PAPER), str(text), phases]


def measure(
    backstory: str, program: Path, size: Mapping[str, int], text: int, top: Path, mounted: bool
) -> list[object]:
    """Returns the last four values of a row."""
    environment = os.environ | {"BACKSTORY_STORE": str(top / "store")}
    plain, behind = top / "plain", top / "behind"
    for directory in (plain, behind):
        directory.mkdir()
    transactions_s(postmark(program, plain, size, text, "m"), environment)
    os.sync()
    native = transactions_s(postmark(program, plain, size, text, "t"), environment)
    shutil.rmtree(plain)

    def recorded(name: str, phases: str) -> float:
        if mounted:
            words = (backstory, "mount", "--contents=all", "--name", name, "{behind}", "{at}")
            with opened(Place("mount", words), top) as at:
                found = transactions_s(postmark(program, at, size, text, phases), environment)
        else:
            record = [backstory, "record", "--name", name, "--"]
            found = transactions_s(record + postmark(program, behind, size, text, phases), environment)
        subprocess.run([backstory, "index", "--wait"], check=True, env=environment)
        return found

    recorded(BEFORE, "m")
    # The record of a mount has the paths of the directory behind it, too.
    before = sizes(behind)
    os.sync()
    seconds = recorded(AFTER, "t")
    after = sizes(behind)
    texts = sorted(path for path, length in before.items() if after.get(path, length) != length)
    cpu = inspect_all(backstory, texts, environment)
    return [f"{native:.3f}", f"{seconds:.3f}", len(texts), f"{cpu:.3f}"]


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians for each share of text files."""
    lines = [
        "| text files | native (s) | recorded (s) | inspected | processor time each (ms) |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for text in dict.fromkeys(str(row["text_percent"]) for row in rows):
        own = [row for row in rows if str(row["text_percent"]) == text]
        native, recorded, files, cpu = (statistics.median(float(str(row[name])) for row in own) for name in FIELDS[3:])
        each = f"{1000 * cpu / files:.1f}" if files else ""
        lines.append(f"| {text} % | {native:.2f} | {recorded:.2f} | {files:.0f} | {each} |")
    return lines


def main_inspected(args: argparse.Namespace) -> int:
    """Runs the command."""
    backstory = backstory_program.needed()
    size = reduced(args.part)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-postmark-") as made:
        program = compiled(Path(made))
        for number in range(args.rounds):
            for text in random.sample(args.text, k=len(args.text)):
                with tempfile.TemporaryDirectory(prefix="bench-inspected-", dir=args.workdir) as top:
                    found = measure(backstory, program, size, text, Path(top), args.mounted)
                values = ["mount" if args.mounted else "record", text, number, *found]
                rows.append(dict(zip(FIELDS, values, strict=True)))
                progress.show(f"postmark: round {number + 1} of {args.rounds}, {text} % text")
    progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory_program.chosen())
    rows.sort(key=lambda row: args.text.index(row["text_percent"]))
    print("\n".join(summary(rows)))
    return 0
