"""Fills a store with many edges from real builds, and measures `of` in it.

The program records builds until the store has the requested number of edges. It can be interrupted
and resumed: the store, and the files named after the builds, show what is done. Then it asks about
files that the builds made. Each question is a process of its own, as when a person asks. Each
answer is written at once, so that an interrupted command continues where it stopped. The summary
covers the answers with at least a given number of edges.
"""

from __future__ import annotations

import csv
import os
import platform
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import progress
from .projects import PROJECTS, Project, configured, environment, run

FIELDS = ["result", "links", "wall_ms", "cpu_ms"]
SEED = 20241
# The classes of ancestry: each reaches from this number of edges to the next.
CLASSES = (0, 1_000, 5_000, 10_000, 20_000)


@dataclass(frozen=True)
class Answer:
    """The measurement of one question."""

    name: str
    links: int
    wall: float
    cpu: float


@dataclass(frozen=True)
class Workspace:
    """The directory with the store, the projects and the results, and the program to measure."""

    top: Path
    backstory: str

    @property
    def store(self) -> Path:
        """The directory of the store."""
        return self.top / "store"

    @property
    def results(self) -> Path:
        """The directory of the files that the builds made."""
        return self.top / "results"

    def record(self, command: list[str], home: Path) -> None:
        """Records one command."""
        run([self.backstory, "record", "--store", str(self.store), "--", *command], home, self.top / "output")

    def index(self) -> None:
        """Waits until the store has indexed all recorded runs."""
        command = [self.backstory, "log", "--store", str(self.store)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())

    def edges(self) -> tuple[int, int]:
        """Returns the numbers of edges and runs in the store (see docs/formats/store.md)."""
        database = self.store / "graph.db"
        if not database.exists():
            return 0, 0
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            edges, runs = connection.execute("SELECT coalesce(sum(edges), 0), count(*) FROM runs").fetchone()
        return int(edges), int(runs)


def _builds_done(workspace: Workspace) -> dict[str, int]:
    """Returns the number of each project's next build, from the names of the results."""
    done = {project.name: 0 for project in PROJECTS}
    for path in workspace.results.iterdir():
        name, number, _ = path.name.rsplit("-", 2) if path.name.count("-") >= 2 else ("", "", "")
        if name in done and number.isdigit():
            done[name] = max(done[name], int(number) + 1)
    return done


def _available() -> list[Project]:
    found = []
    for project in PROJECTS:
        lacking = project.missing()
        if lacking:
            print(f"left out: {project.name}: {lacking} is not installed", file=sys.stderr)
        else:
            found.append(project)
    return found


def build(workspace: Workspace, edges: int, until: float) -> None:
    """Records builds until the store has `edges`, or until the time `until` (`time.monotonic`)."""
    for directory in (workspace.store, workspace.results, workspace.top / "downloads", workspace.top / "projects"):
        directory.mkdir(parents=True, exist_ok=True)
    projects = _available()
    done = _builds_done(workspace)
    began, at_first = time.monotonic(), workspace.edges()[0]
    while workspace.edges()[0] < edges and time.monotonic() < until:
        for project in projects:
            home = workspace.top / "projects" / project.name
            configured(project, home, workspace.top / "downloads", workspace.record)
            number = done[project.name]
            project.change(home, number)
            workspace.record(project.command(workspace.results, number), home)
            done[project.name] = number + 1
        have, runs = workspace.edges()
        rate = (have - at_first) / (time.monotonic() - began)
        left = f", {(edges - have) / rate / 60:.0f} min left" if rate > 0 and have < edges else ""
        progress.show(f"{have:,} of {edges:,} edges, {runs:,} runs{left}")
    progress.show("")
    workspace.index()


def _sample(workspace: Workspace, files: int) -> list[Path]:
    """Returns `files` results of all builds, in a random order that is always the same."""
    results = sorted(workspace.results.iterdir())
    random.Random(SEED).shuffle(results)
    return results[:files]


def _ask(workspace: Workspace, path: Path) -> Answer:
    """Asks one question. Measures its wall and processor time in milliseconds."""
    command = [workspace.backstory, "of", "--store", str(workspace.store), "--json", str(path)]
    began, before = time.perf_counter(), os.times()
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment()).stdout
    wall, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    # No JSON string contains this text, because its quotes would be escaped.
    return Answer(path.name, answer.count(b'"flow": '), wall * 1000, cpu * 1000)


def _asked_before(out: Path, store: str) -> list[Answer]:
    """Returns the answers in a CSV file, which must be of the same store.

    An incomplete last row is removed, so that its question is asked again.
    """
    if not out.exists() or not out.stat().st_size:
        return []
    with out.open(newline="") as file:
        first = file.readline()
        if f" {store} " not in first:
            raise RuntimeError(f"{out} holds answers from another store, {first[1:].strip()}: give another --out")
        text = file.read()
    whole = text[: text.rfind("\n") + 1]
    with out.open("w", newline="") as file:
        file.write(first + whole)
    rows = list(csv.reader(whole.splitlines()))[1:]
    return [Answer(name, int(links), float(wall), float(cpu)) for name, links, wall, cpu in rows]


def ask(workspace: Workspace, files: int, fewest: int, out: Path) -> str:
    """Asks where `files` results come from, and writes a row for each.

    Returns a summary in Markdown.
    """
    have, runs = workspace.edges()
    store = f"edges={have} runs={runs}"
    size = (workspace.store / "graph.db").stat().st_size
    machine = f"{platform.platform()} cpus={os.cpu_count()} {store} graph.db={size}"
    out.parent.mkdir(parents=True, exist_ok=True)
    answers = _asked_before(out, store)
    known = {answer.name for answer in answers}
    sample = _sample(workspace, files)
    wanted = [path for path in sample if path.name not in known]
    with out.open("a", newline="") as file:
        writer = csv.writer(file)
        if not file.tell():
            file.write(f"# {machine}\n")
            writer.writerow(FIELDS)
        began = time.monotonic()
        for at, path in enumerate(wanted, 1):
            answer = _ask(workspace, path)
            answers.append(answer)
            writer.writerow((answer.name, answer.links, f"{answer.wall:.3f}", f"{answer.cpu:.3f}"))
            file.flush()
            left = (time.monotonic() - began) / at * (len(wanted) - at) / 60
            done = len(known) + at
            progress.show(f"{done:,} of {len(known) + len(wanted):,} files asked for, {left:.0f} min left")
    progress.show("")
    selected = [answer for answer in answers if answer.links >= fewest]
    if not selected:
        raise RuntimeError(f"no result in {workspace.results} has {fewest} edges of ancestry: build more")
    return summary(machine, have, size, selected)


def _at(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def _times(values: Iterable[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f} ms, {_at(ordered, 0.95):.1f} ms, {ordered[-1]:.1f} ms"


def summary(machine: str, edges: int, size: int, answers: list[Answer]) -> str:
    """Returns the promised figures, and others, in Markdown."""
    links = sorted(answer.links for answer in answers)
    lines = [
        f"Machine: {machine}",
        "",
        "| | |",
        "|---|---|",
        f"| edges in the store | {edges:,} |",
        f"| bytes per edge at rest | {size / edges:.1f} |",
        f"| files asked for, edges of ancestry each | {len(answers):,}, {links[0]:,} to {links[-1]:,} |",
        f"| `of`, a process each: median, 95 %, longest | {_times(answer.wall for answer in answers)} |",
        f"| its processor time: median, 95 %, longest | {_times(answer.cpu for answer in answers)} |",
        "",
        "| edges of ancestry | files | median of wall, processor time |",
        "|---|---|---|",
    ]
    for least, most in zip(CLASSES, (*CLASSES[1:], sys.maxsize), strict=True):
        some = [answer for answer in answers if least <= answer.links < most]
        if some:
            wall = statistics.median(answer.wall for answer in some)
            cpu = statistics.median(answer.cpu for answer in some)
            lines.append(f"| {least:,} and more | {len(some):,} | {wall:.1f} ms, {cpu:.1f} ms |")
    return "\n".join(lines)


def main_lineage(
    top: Path, backstory: str, edges: int, files: int, fewest: int, minutes: float, out: Path | None
) -> int:
    """Runs the command `lineage`."""
    program = shutil.which(backstory)
    if not program:
        print(f"the program {backstory} was not found: set BACKSTORY to its path", file=sys.stderr)
        return 2
    workspace = Workspace(top.resolve(), str(Path(program).resolve()))
    build(workspace, edges, time.monotonic() + minutes * 60)
    have = workspace.edges()[0]
    if have < edges:
        print(f"{have:,} of {edges:,} edges: run the same command again to continue", file=sys.stderr)
    if files:
        out = out or Path(f"bench/runs/{time.strftime('%Y-%m-%d')}-lineage.csv")
        print(ask(workspace, files, fewest, out))
        print(f"results: {out}", file=sys.stderr)
    return 0
