"""Profiles workloads natively and under collectors, and says which part took the processor time.

`perf` samples all processors until the last process of a run has ended. The event `cpu-clock` needs
no counters of the processor, which virtual machines lack. Every round has one run under every
collector, in random order. The times of a profiled run are not those of one without.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from . import backstory_program, load_profile, progress
from .apart import measured
from .collectors import COLLECTORS, Collector, chosen
from .matrix.cell import environment
from .measure import Cost
from .perf_script import events, reading
from .profile_parts import OWN, PARTS, PHASES, Attribution, Roles, Span, attributed, c_sources
from .promises import WORKLOADS, lacking
from .report import read_rows, write_rows
from .workload import Workload
from .workloads import Instance, select

FIELDS = ["workload", "collector", "round", "part", "phase", "seconds"]
NATIVE = "none"
FREQUENCY = 2999
"""Samples in a second of each processor. No multiple of the kernel's timer."""
BUFFER = "4M"
"""Memory of each processor for samples that perf has not written yet."""
LEAST = 0.005
"""Smaller parts, in every column, are left out of the tables: a share of native time."""
NAME_LENGTH = 15
"""The kernel shows at most so many bytes of a process's name."""


def recording(data: Path) -> list[str]:
    """Returns the words before a command that is recorded until it ends."""
    words = ["perf", "record", "-q", "-a", "--no-buildid", "-e", "cpu-clock", "-F", str(FREQUENCY)]
    return [*words, "-k", "CLOCK_MONOTONIC", "-m", BUFFER, "-o", str(data), "--"]


def program_names(program: str) -> set[str]:
    """Returns the names that the kernel shows for processes of a program, or of its link."""
    found = shutil.which(program) or program
    return {os.path.basename(path)[:NAME_LENGTH] for path in (found, os.path.realpath(found))}


def read_profile(data: Path, root: int, cost: Cost, sources: Mapping[str, str]) -> Attribution:
    """Attributes the samples of a recording. `root`: the process that started the command."""
    roles = Roles(root, program_names(backstory_program.chosen()))
    span = Span(cost.ended - cost.wall, cost.ended, cost.ended + cost.background)
    with subprocess.Popen(
        reading(data), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as perf:
        assert perf.stdout is not None
        found = attributed(events(perf.stdout), roles, span, sources)
    if perf.returncode != 0:
        raise subprocess.CalledProcessError(perf.returncode, perf.args)
    return found


def _ended_well(_: Path, cost: Cost) -> str | None:
    return None if cost.status == 0 else f"exit status {cost.status}: {cost.output[-300:].decode(errors='replace')}"


def looped(instance: Instance, loops: int) -> Workload:
    """Returns a workload of the matrix with a number of loops."""
    return Workload(
        instance.key,
        instance.what,
        lambda _: instance.command(loops),
        instance.prepare,
        instance.reset,
        _ended_well,
    )


def named(names: Sequence[str]) -> list[Workload | Instance]:
    """Returns the workloads that can run here, of paired rounds or of the matrix."""
    found: list[tuple[str, Workload | Instance, str | None]] = []
    for name in names:
        if name in WORKLOADS:
            found.append((name, WORKLOADS[name], lacking(name)))
        else:
            found.extend((instance.key, instance, instance.lacking()) for instance in select([name]))
    for name, _, reason in found:
        if reason:
            print(f"SKIPPED: workload {name}: {reason}", file=sys.stderr)
    return [workload for _, workload, reason in found if not reason]


class FailedError(Exception):
    """A run of a workload failed."""


class Profiler:
    """Runs one workload, prepared in a directory, under collectors."""

    def __init__(self, top: Path, sources: Mapping[str, str]) -> None:
        self.top, self.sources = top, sources
        self.root = top / "w"
        self.root.mkdir()

    def run(self, workload: Workload, collector: Collector, data: Path | None = None) -> tuple[int, Cost]:
        """Runs the workload once. Returns the process that started the command, and the cost.

        Raises `FailedError` if the workload fails, or its result is wrong.
        """
        log = Path(tempfile.mkdtemp(prefix="log-", dir=self.top))
        try:
            workload.reset(self.root)
            argv = collector.command(workload.command(self.root), log)
            before = [] if data is None else recording(data)
            pid, cost = measured(argv, self.root, environment(collector), self.top, before)
            if problem := workload.check(self.root, cost):
                raise FailedError(f"{workload.name} under {collector.name}: {problem}")
            return pid, cost
        finally:
            shutil.rmtree(log, ignore_errors=True)

    def calibrated(self, instance: Instance, target: float) -> int:
        """Returns the number of loops that take about `target` seconds natively."""
        once = looped(instance, 1)
        self.run(once, COLLECTORS[NATIVE])  # warms caches
        if instance.fixed:
            return 1
        return max(1, round(target / self.run(once, COLLECTORS[NATIVE])[1].wall))

    def rows(self, workload: Workload, collector: Collector, number: int) -> Iterator[dict[str, object]]:
        """Profiles one run, and yields its rows."""
        data = self.top / "perf.data"
        root, cost = self.run(workload, collector, data)
        found = read_profile(data, root, cost, self.sources)
        if found.lost:
            print(f"{workload.name} under {collector.name}: perf lost {found.lost} events", file=sys.stderr)
        for phase in PHASES:
            for part in PARTS:
                if count := found.samples[part, phase]:
                    cells = [workload.name, collector.name, number, part, phase, f"{count / FREQUENCY:.4f}"]
                    yield dict(zip(FIELDS, cells, strict=True))


def profiled(
    subject: Workload | Instance, collectors: Sequence[Collector], args: argparse.Namespace, sources: Mapping[str, str]
) -> list[dict[str, object]]:
    """Measures all rounds of one workload."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-profiles-", dir=args.workdir, ignore_cleanup_errors=True) as top:
        profiler = Profiler(Path(top), sources)
        subject.prepare(profiler.root)
        try:
            if isinstance(subject, Instance):
                workload = looped(subject, args.loops or profiler.calibrated(subject, args.target))
            else:
                workload = subject
            profiler.run(workload, COLLECTORS[NATIVE])  # warms caches, not counted
        except FailedError as error:
            print(f"left out: {error}", file=sys.stderr)
            return []
        for number in range(args.rounds):
            for collector in random.sample(list(collectors), k=len(collectors)):
                try:
                    rows.extend(profiler.rows(workload, collector, number))
                except FailedError as error:
                    print(f"left out: round {number} of {error}", file=sys.stderr)
            progress.show(f"{workload.name}: round {number + 1} of {args.rounds}")
        progress.show("")
    return rows


class Medians:
    """The medians of the rounds of one workload, in seconds."""

    def __init__(self, rows: Sequence[Mapping[str, object]]) -> None:
        self.rounds: dict[str, set[str]] = {}
        self.seconds: dict[tuple[str, str, str, str], float] = {}
        for row in rows:
            collector, number = str(row["collector"]), str(row["round"])
            self.rounds.setdefault(collector, set()).add(number)
            self.seconds[collector, number, str(row["part"]), str(row["phase"])] = float(str(row["seconds"]))
        self.collectors = sorted(self.rounds, key=lambda name: (name != NATIVE, name))

    def of(self, collector: str, parts: Sequence[str], phases: Sequence[str]) -> float:
        """Returns the median of the sum of parts in phases. An absent part took no time."""
        return statistics.median(
            sum(self.seconds.get((collector, number, part, phase), 0.0) for part in parts for phase in phases)
            for number in self.rounds[collector]
        )


def table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the table of one workload: seconds of each part, and their share of native time."""
    medians = Medians(rows)
    if NATIVE not in medians.collectors:
        raise SystemExit(f"backstory-bench: there is no native run of {rows[0]['workload']}")
    whole = medians.of(NATIVE, OWN, PHASES)

    def line(label: str, parts: Sequence[str], phases: Sequence[str], least: float = 0.0) -> list[str]:
        values = [medians.of(collector, parts, phases) for collector in medians.collectors]
        if max(values) <= least:
            return []
        cells = [f"{value:.3f} s ({value / whole:.1%})" if whole else f"{value:.3f} s" for value in values]
        return [f"| {' | '.join([label, *cells])} |"]

    names = ["native" if name == NATIVE else f"`{name}`" for name in medians.collectors]
    lines = [f"| {' | '.join([str(rows[0]['workload']), *names])} |"]
    lines.append(f"| {' | '.join(['---', *['---:'] * len(names)])} |")
    for phase in PHASES:
        lines += line(f"**{phase}**", OWN, [phase])
        for part in PARTS:
            lines += line(part, [part], [phase], LEAST * whole)
    return [*lines, *line("**both**", OWN, PHASES)]


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table for each workload."""
    lines: list[str] = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        lines += ["", *table([row for row in rows if row["workload"] == workload])]
    return lines[1:]


def main_profiles(args: argparse.Namespace) -> int:
    """Runs the command."""
    if args.results:
        print("\n".join(summary(read_rows(args.results, FIELDS))))
        return 0
    if reason := load_profile.missing():
        raise SystemExit(f"backstory-bench: {reason}")
    collectors = []
    for collector in chosen([NATIVE, *(name for name in args.collectors.split(",") if name != NATIVE)]):
        if reason := collector.missing():
            print(f"left out: {collector.name}: {reason}", file=sys.stderr)
        else:
            collectors.append(collector)
    program = shutil.which(backstory_program.chosen())
    sources = c_sources(program) if program else {}
    rows: list[dict[str, object]] = []
    for subject in named(args.workloads.split(",")):
        rows += profiled(subject, collectors, args, sources)
        if args.out:
            write_rows(args.out, FIELDS, rows, backstory_program.chosen())
    print("\n".join(summary(rows)))
    return 0


def add_profiles(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command `profiles`."""
    p = commands.add_parser("profiles", help="measure which part of a recording takes the processor time (root, perf)")
    p.add_argument(
        "--workloads",
        default="tar,find,grep,cp,git,true",
        help="comma-separated names, of paired rounds or of the matrix",
    )
    p.add_argument(
        "--collectors", default="backstory,backstory-lazy", help="comma-separated names beside the native run"
    )
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--loops", type=int, metavar="N", help="repeat each workload of the matrix N times")
    p.add_argument(
        "--target", type=float, default=1.0, metavar="SECONDS", help="without --loops, repeat until this native time"
    )
    p.add_argument("--sources", help="directory with the built lmbench, splash-3 and byte-unixbench")
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory in which workloads are prepared")
    p.add_argument("--out", help="CSV to write: a row for each part, phase and run")
    p.add_argument("--results", metavar="CSV", help="show earlier results, and measure nothing")
    p.set_defaults(do=main_profiles)
