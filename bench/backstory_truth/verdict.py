"""Findings and counts, and what is said about a file and a name.

Goes in: verdicts and trees. Comes out: a `Judgement`, which `judge.py` fills and `cli.py` adds up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .program import Case, Op, Step
from .truth import Place
from .world import Tree


@dataclass
class Finding:
    """One fault."""

    question: str
    verdict: str  # unsound, alarm, uncertain, refused
    path: str
    detail: str
    asked: list[str] = field(default_factory=list)  # what `rerun` was asked for


@dataclass
class Judgement:
    """The outcome of one case."""

    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    aside: str = ""
    asked: list[str] = field(default_factory=list)

    def add(self, question: str, verdict: str, path: str = "", detail: str = "") -> None:
        """Counts a verdict, and keeps it if it is a fault."""
        self.count(f"{question}.judged")
        if verdict != "right":
            self.count(f"{question}.{verdict}")
            self.findings.append(Finding(question, verdict, path, detail, self.asked))

    def count(self, name: str) -> None:
        """Adds one."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def unsound(self) -> list[Finding]:
        """Returns the faults that make the program fail."""
        return [f for f in self.findings if f.verdict == "unsound"]


def same_time(path: Path, ctime: int) -> bool:
    """Returns whether a file was not touched."""
    return path.exists() and path.lstat().st_ctime_ns == ctime


def flags(run: Step) -> set[str]:
    """Returns the flags of all lines."""
    return {f for line in run.lines for f in line.flags}


def differing(a: Tree, b: Tree) -> list[str]:
    """Returns the paths that differ."""
    return sorted(p for p in {*a, *b} if a.get(p) != b.get(p))


def describe(path: str, before: Tree, after: Tree, truth: Tree) -> str:
    """Returns three short texts."""

    def short(what: tuple[str, int, bytes] | None) -> str:
        return "nothing" if what is None else f"{what[0]} {what[1]:o} {what[2][:60]!r}"

    return f": before {short(before.get(path))}; after {short(after.get(path))}; fresh {short(truth.get(path))}"


def full_name(name: str, at: Place) -> str:
    """Returns the name that the program is given."""
    return str(at.opt / name[5:]) if name.startswith("@opt/") else name


def is_named(name: str, words: set[str], at: Place) -> bool:
    """Returns whether an answer has this name, as it is or as a whole path."""
    full = at.opt / name[5:] if name.startswith("@opt/") else at.root / name
    return name in words or str(full) in words or any(w.endswith("/" + name) for w in words)


def accepted_names(op: Op, case: Case) -> list[str]:
    """Returns names of which one must be in `of`: the changed file, or what stands for it."""
    entries = {e.path: e for e in case.entries}
    if op.op == "link":
        target = entries[op.path].data if op.path in entries else ""
        inner = [p for p in entries if p.startswith(target + "/")]
        return [op.path, target, *inner]
    if op.op == "swapdir":
        return [f"{op.path}/f1", op.path]
    if op.path not in entries or op.op in ("touch", "same"):
        return []
    parent = op.path.rsplit("/", 1)[0]
    if op.op in ("rename", "delete") and "/" in op.path:
        return [op.path, parent]
    return [op.path]
