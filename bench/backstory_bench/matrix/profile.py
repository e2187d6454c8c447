"""Profiles a workload: its syscall counts, and the quality of each collector's log.

The quality is measured against the files and process starts that strace sees. Nothing is timed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..collectors import COLLECTORS, Collector
from ..collectors.strace_log import read as read_strace
from ..workloads import Instance
from . import execute
from .cell import environment
from .execute import Limits
from .journal import Journal, Row

LIMITS = Limits(120.0)
TRUTH_CALLS = "%file,%process,fchdir"
_TEMPORARY = re.compile(r"^/tmp/(cc\w{6}|tmp\w+|sh-thd\S+)")
_NOT_FILES = re.compile(r"^/(proc|sys)/|^/dev/(?!shm/)|/ld-(linux|musl)[^/]*$")
# The loader is excluded as well: the kernel opens it, and strace cannot see that.


def _traced(instance: Instance, root: Path, scratch: Path, words: list[str]) -> bool:
    io = Path(tempfile.mkdtemp(prefix="io-", dir=scratch))
    instance.reset(root)
    env = environment(COLLECTORS["none"])
    return execute.run([*words, *instance.command(1)], root, env, LIMITS, None, io).status == 0


def counts(instance: Instance, root: Path, scratch: Path) -> Row:
    """Counts the syscalls of one loop by name, by `strace -c`."""
    out = scratch / "counts"
    head = {"kind": "counts", "workload": instance.key, "group": instance.group}
    if not _traced(instance, root, scratch, ["strace", "-f", "-qq", "-c", "-U", "name,calls", "-o", str(out)]):
        return {**head, "counts": {}, "why": "it does not run under strace"}
    found = {}
    for line in out.read_text().splitlines():
        words = line.split()
        if len(words) == 2 and words[1].isdigit() and words[0] != "total":
            found[words[0]] = int(words[1])
    return {**head, "counts": found}


def names(files: set[str], *apart: Path) -> set[str]:
    """Normalises file names, so that they can be compared across runs.

    Links are resolved, and random names become equal. Files of the kernel are removed, as are files
    below the directories `apart`, such as a log.
    """
    found = set()
    for path in files:
        real = _TEMPORARY.sub("/tmp/(random)", os.path.realpath(path))
        if not _NOT_FILES.search(real) and not any(real.startswith(f"{p}/") for p in apart) and not os.path.isdir(real):
            found.add(real)
    return found


@dataclass(frozen=True)
class Run:
    """The files and process starts that strace saw in one run."""

    files: set[str]
    starts: set[tuple[str, str]]


@dataclass(frozen=True)
class Truth:
    """The files and process starts of a command, from two runs.

    A collector must find everything that both runs had. It may find everything that either had.
    """

    stable: set[str]
    """Files that both runs used."""
    always: set[str]
    """Shapes of varying names (random names, times) that both runs used."""
    sometimes: set[str]
    """Shapes of varying names that only one run used."""
    starts: set[tuple[str, str]]
    possible_starts: set[tuple[str, str]]
    stated: set[str] | None
    """The files that the workload itself states, if it states any."""

    @classmethod
    def of(cls, one: Run, other: Run, stated: set[str] | None) -> Truth:
        """Derives the truth from two runs."""
        stable = one.files & other.files
        words = _words(stable)
        varying = [{_shape(path, words) for path in run.files - stable} for run in (one, other)]
        return cls(
            stable,
            varying[0] & varying[1],
            varying[0] ^ varying[1],
            one.starts & other.starts,
            one.starts | other.starts,
            stated,
        )

    def comparable(self, files: set[str]) -> set[str]:
        """Replaces names that vary from run to run by their shapes."""
        words = _words(self.stable)
        known, shapes = self.stable | (self.stated or set()), self.always | self.sometimes
        return {s if p not in known and (s := _shape(p, words)) in shapes else p for p in files}

    @property
    def right(self) -> set[str]:
        """The files that a collector may find."""
        return self.wanted | self.stable | self.always | self.sometimes

    @property
    def wanted(self) -> set[str]:
        """The files that a collector must find."""
        return self.stated if self.stated is not None else self.stable | self.always


def _words(paths: set[str]) -> set[str]:
    return {word for path in paths for word in path.split("/")}


def _shape(path: str, words: set[str]) -> str:
    """Replaces random parts of a path by stars, except components that a stable path has."""
    return "/".join(word if word in words else re.sub(r"\w+", "*", word) for word in path.split("/"))


def truth(instance: Instance, root: Path, scratch: Path) -> Truth | None:
    """Derives the truth of a workload. Returns `None` if it does not run under strace."""
    runs = []
    for _ in range(2):
        log = Path(tempfile.mkdtemp(prefix="truth-", dir=scratch))
        path = log / "strace.log"
        words = ["strace", "-f", "-y", "-qq", "-s", "4096", "-e", f"trace={TRUTH_CALLS}", "-o", str(path)]
        if not _traced(instance, root, scratch, words):
            return None
        seen = read_strace(path, str(root))
        runs.append(Run(names(seen.files or set(), log), seen.starts or set()))
    return Truth.of(runs[0], runs[1], names(instance.truth(root)) if instance.truth else None)


def quality(instance: Instance, collector: Collector, root: Path, scratch: Path, true: Truth | None) -> Row:
    """Compares a collector's log with the truth. The row has a reason if that is not possible."""
    head = {"kind": "quality", "workload": instance.key, "group": instance.group, "collector": collector.name}
    if true is None:
        return {**head, "why": "it does not run under strace"}
    log = Path(tempfile.mkdtemp(prefix="log-", dir=scratch))
    io = Path(tempfile.mkdtemp(prefix="io-", dir=scratch))
    try:
        instance.reset(root)
        argv = collector.command(instance.command(1), log)
        outcome = execute.run(argv, root, environment(collector), LIMITS, None, io)
        if outcome.status != 0:
            return {**head, "why": f"exit status {outcome.status}"}
        (log / "cwd").write_text(str(root))
        found = collector.read(log)
        if found.files is None:
            return {**head, "why": "its log is not read as a set of files"}
        files = true.comparable(names(found.files, log, io))
        wanted = true.wanted
        row: Row = {
            **head,
            "truth_by": "workload" if true.stated is not None else "strace",
            "files_true": len(wanted),
            "files_found": len(files),
            "files_recalled": len(files & wanted),
            "files_right": len(files & true.right),
            "missed": sorted(wanted - files)[:5],
            "invented": sorted(files - true.right)[:5],
        }
        if found.starts is not None:
            row |= {
                "starts_true": len(true.starts),
                "starts_found": len(found.starts),
                "starts_recalled": len(found.starts & true.starts),
                "starts_right": len(found.starts & true.possible_starts),
            }
        return row
    except (OSError, ValueError, KeyError) as error:
        return {**head, "why": f"its log can't be read: {error}"}
    finally:
        shutil.rmtree(log, ignore_errors=True)
        shutil.rmtree(io, ignore_errors=True)


def _lacking(journal: Journal, instance: Instance, collectors: list[Collector]) -> tuple[bool, list[Collector]]:
    """Returns whether the counts are missing, and the collectors whose quality is missing."""
    have = {
        (r["kind"], r["workload"], r.get("collector")) for r in journal.rows() if r.get("kind") in ("counts", "quality")
    }
    if instance.figure:
        collectors = []  # it runs for a fixed time, so its work depends on the collector's speed
    named = [c for c in collectors if c.name != "none" and ("quality", instance.key, c.name) not in have]
    return ("counts", instance.key, None) not in have, named


def profile(journal: Journal, instance: Instance, collectors: list[Collector], work: Path) -> None:
    """Adds the missing counts and quality rows of one workload. Without strace it adds none."""
    count, missing = _lacking(journal, instance, collectors)
    if not (count or missing) or not shutil.which("strace"):
        return
    scratch = Path(tempfile.mkdtemp(prefix="backstory-bench-", dir=work))
    scratch.chmod(0o755)
    try:
        root = scratch / "w"
        root.mkdir()
        instance.prepare(root)
        if count:
            journal.append(counts(instance, root, scratch))
        true = truth(instance, root, scratch) if missing else None
        for collector in missing:
            journal.append(quality(instance, collector, root, scratch, true))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"{instance.key}: not profiled: {error}", file=sys.stderr)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
