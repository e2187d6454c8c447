"""The command line: generates, judges, shrinks, and prints.

Goes in: options. Comes out: a table, a script for each kind of failure, and a summary. The status
is 1 if anything was unsound.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from . import callers, commands, generate, kinds, markdown, sessions  # noqa: F401  (commands: more sessions)
from .judge import try_case
from .program import Case, from_json
from .shrink import blamed, shrink, size
from .transcript import transcript
from .verdict import Finding, Judgement

QUESTIONS = ["record", "fresh", "status", "of", "uses", "rerun", "person", "again", "failed", "export"]
VERDICTS = ["judged", "unsound", "alarm", "uncertain", "refused"]


def arguments() -> argparse.Namespace:
    """Reads the options."""
    parser = argparse.ArgumentParser(prog="truth", description="Judges backstory by executing random programs again.")
    parser.add_argument("--backstory", default=os.environ.get("BACKSTORY", "backstory"), help="the program")
    parser.add_argument("--count", type=int, default=150, help="cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after this time")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default="", help="kinds of line or session, with commas: each case has one of them")
    parser.add_argument("--sessions", type=float, default=0.4, help="the part of cases that are sessions")
    parser.add_argument("--out", type=Path, help="directory for the failures: a case and a script each")
    parser.add_argument("--json", type=Path, help="file for the summary")
    parser.add_argument("--report", type=Path, help="file for a report in Markdown")
    parser.add_argument("--replay", type=Path, help="judge this case again")
    parser.add_argument("--work", type=Path, help="directory to work in")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--list", action="store_true", help="print the kinds")
    return parser.parse_args()


def make_case(seed: int, number: int, names: list[str], part: float) -> Case:
    """Returns the case of a number."""
    return sessions.pick(f"{seed}.{number}", names, part) or generate.program(f"{seed}.{number}", names)


Failure = tuple[Case, Finding]
SHRUNK: dict[tuple[str, str], list[str]] = {}  # in each process: the groups that it has found


def work(task: tuple[argparse.Namespace, int, str]) -> tuple[Case, Judgement, list[Failure]]:
    """Judges one case and makes its faults small.

    A fault of the generator itself sets the case aside.
    """
    args, number, base = task
    case = make_case(args.seed, number, [k for k in args.kinds.split(",") if k], args.sessions)
    if time.time() > args.end:
        return case, Judgement(aside="no time"), []
    judgement = try_quietly(case, args.backstory, Path(base) / f"c{number}")
    failures: list[Failure] = []
    done: set[tuple[str, str]] = set()
    for finding in judgement.findings:
        key = (finding.question, finding.verdict)
        if key not in done:
            done.add(key)
            failures.append(make_small(args, case, finding, Path(base) / f"s{number}"))
    return case, judgement, failures


def make_small(args: argparse.Namespace, case: Case, finding: Finding, base: Path) -> Failure:
    """Shrinks a failure, unless this process has enough of its like or the time is over."""
    known = SHRUNK.setdefault((finding.question, finding.verdict), [])
    soft = finding.verdict in ("alarm", "uncertain", "refused")
    alike = any(line.kind in known for s in case.steps for line in s.lines)
    if args.no_shrink or time.time() > args.end or len(known) >= (5 if soft else 40) or (alike and len(known) > 2):
        return case, finding

    def again(smaller: Case) -> Judgement:
        late = time.time() > args.end + 2
        return Judgement() if late else try_quietly(smaller, args.backstory, base, finding.question)

    small = shrink(case, finding, again, 6 if soft else 16)
    known += [line.kind for s in small[0].steps for line in s.lines][:1]
    return small


class Report:
    """Counts and failures."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.counts: dict[str, int] = {}
        self.aside: dict[str, int] = {}
        self.groups: dict[tuple[str, str, str], tuple[Case, Finding, int]] = {}
        self.cases = 0

    def add(self, case: Case, judgement: Judgement, failures: list[Failure]) -> None:
        """Adds a case."""
        if judgement.aside == "no time":
            return
        self.cases += 1
        if judgement.aside:
            reason = judgement.aside.split(":")[0]
            self.aside[reason] = self.aside.get(reason, 0) + 1
            if reason == "generator":
                print(f"case {case.seed}: {judgement.aside}", file=sys.stderr)
        for name, n in judgement.counts.items():
            self.counts[name] = self.counts.get(name, 0) + n
        for small, finding in failures:
            self.group(small, finding)

    def group(self, case: Case, finding: Finding) -> None:
        """Puts a failure to those with the same lines and changes."""
        name = (finding.question, finding.verdict, blamed(case))
        old = self.groups.get(name)
        if old and size(old[0]) <= size(case):
            case, finding = old[0], old[1]
        self.groups[name] = (case, finding, (old[2] if old else 0) + 1)

    def ordered(self) -> Iterator[tuple[tuple[str, str, str], tuple[Case, Finding, int]]]:
        """Yields groups: unsound ones first, then the small ones."""
        yield from sorted(self.groups.items(), key=lambda g: (VERDICTS.index(g[0][1]), size(g[1][0]), g[0]))

    def table(self) -> str:
        """Returns the table of verdicts."""
        rows = [f"{'question':10}" + "".join(f"{v:>11}" for v in VERDICTS)]
        for q in QUESTIONS:
            if f"{q}.judged" in self.counts:
                rows.append(f"{q:10}" + "".join(f"{self.counts.get(f'{q}.{v}', 0):11}" for v in VERDICTS))
        aside = ", ".join(f"{n} {why}" for why, n in sorted(self.aside.items())) or "none"
        return "\n".join([*rows, f"{self.cases} cases; set aside: {aside}"])

    def write(self) -> None:
        """Prints the failures, and writes files."""
        for i, (name, (case, finding, n)) in enumerate(self.ordered(), 1):
            mark = f"{i:3} {n:4}x {name[0]:7}{name[1]:10}{name[2]}"
            print(mark)
            if self.args.out:
                self.args.out.mkdir(parents=True, exist_ok=True)
                stem = self.args.out / f"{i:03}-{name[0]}-{name[1]}"
                stem.with_suffix(".json").write_text(case.to_json())
                stem.with_suffix(".sh").write_text(transcript(case, finding))
        print(self.table())
        if self.args.report:
            title = f"{self.args.backstory}, seed {self.args.seed}"
            self.args.report.write_text(markdown.report(self.table(), self.ordered(), title, 60))
        if self.args.json:
            summary = {
                "cases": self.cases,
                "counts": self.counts,
                "aside": self.aside,
                "unsound": sum(n for k, n in self.counts.items() if k.endswith(".unsound")),
                "groups": [
                    {"question": k[0], "verdict": k[1], "kinds": k[2], "times": n, "finding": asdict(f)}
                    for k, (_, f, n) in self.ordered()
                ],
            }
            self.args.json.write_text(json.dumps(summary, indent=1) + "\n")


def try_quietly(case: Case, program: str, base: Path, only: str = "") -> Judgement:
    """Judges a case; a fault of the generator is no fault of the program."""
    try:
        return try_case(case, program, base, only)
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
        return Judgement(aside=f"generator: {type(e).__name__}: {e}")


def replay(args: argparse.Namespace, base: Path) -> int:
    """Judges a kept case again, and prints its script."""
    case = from_json(args.replay.read_text())
    judgement = try_case(case, args.backstory, base / "r")
    for finding in judgement.findings:
        print(f"{finding.question}: {finding.verdict}: {finding.path} {finding.detail}")
    if judgement.aside:
        print(f"set aside: {judgement.aside}")
    if judgement.findings:
        print(transcript(case, judgement.findings[0]))
    return 1 if judgement.unsound() else 0


def print_kinds() -> int:
    """Lists the kinds of line and of session."""
    kinds.rows_for("dash")
    for lang, rows in kinds.ROWS.items():
        print(f"{lang} ({len(rows)}): " + " ".join(r.name for r in rows))
    print(f"sessions ({len(sessions.KINDS)}): " + " ".join(sessions.KINDS))
    return 0


def main() -> int:
    """Does what the options say."""
    args = arguments()
    found = shutil.which(args.backstory)
    if not args.list and found is None:
        print(f"truth: {args.backstory} is no program: set BACKSTORY or --backstory", file=sys.stderr)
        return 2
    args.backstory = os.path.abspath(found or "")
    parent = args.work or Path(tempfile.gettempdir())
    base = Path(tempfile.mkdtemp(prefix="backstory-truth-", dir=parent))
    os.environ["TRUTH_BIN"] = str(callers.build())
    if args.list:
        shutil.rmtree(base)
        return print_kinds()
    args.end = time.time() + args.seconds
    try:
        return replay(args, base) if args.replay else judge_all(args, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def judge_all(args: argparse.Namespace, base: Path) -> int:
    """Judges all cases, and reports."""
    report = Report(args)
    tasks = [(args, args.first + i, str(base)) for i in range(args.count)]
    if args.jobs > 1:
        with multiprocessing.get_context("fork").Pool(args.jobs) as pool:
            for result in pool.imap(work, tasks):
                report.add(*result)
    else:
        for task in tasks:
            report.add(*work(task))
    report.write()
    return 1 if any(k.endswith(".unsound") for k in report.counts) else 0
