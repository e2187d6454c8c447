"""The smallest case with the same fault.

Goes in: a case, a finding and the program. Comes out: a case from which no line, change, head or
source can be taken without losing a fault of the same question and verdict. At most `budget`
executions are spent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .generate import head_for_all
from .program import Case, Op, Step, script_text
from .verdict import Finding, Judgement


def same_fault(judgement: Judgement, finding: Finding) -> Finding | None:
    """Returns a finding of the same question and verdict."""
    for f in judgement.findings:
        if (f.question, f.verdict) == (finding.question, finding.verdict):
            return f
    return None


def shrink(case: Case, finding: Finding, judge: Callable[[Case], Judgement], budget: int = 30) -> tuple[Case, Finding]:
    """Returns the smallest case found, and its finding."""
    best, found = case, finding
    for small in (sliced(case, finding.path.split(", "), False), sliced(case, finding.path.split(", "), True)):
        if small and size(small) < size(best):
            budget -= 1
            again = same_fault(judge(small), finding)
            if again:
                best, found = small, again
    progress = True
    while progress and budget > 0:
        progress = False
        for smaller in candidates(best):
            if dangling(smaller):
                continue
            budget -= 1
            again = same_fault(judge(smaller), finding)
            if again:
                best, found, progress = smaller, again, True
                break
            if budget <= 0:
                break
    best = without_unused(best)
    return best, found


def sliced(case: Case, paths: list[str], with_change: bool) -> Case | None:
    """Returns a case with only the lines that these results need, as the kinds of line declare.

    If asked for, lines that read a changed file stay, too.
    """
    small = case.copy()
    wanted = {p for p in paths if p}
    if with_change:
        wanted_reads = {op.path for s in case.steps for op in s.ops}
    for step in reversed(small.steps):
        keep = []
        for line in reversed(step.lines):
            needed = any(w == p or p.startswith((w + ".", w + "/")) for w in line.writes for p in wanted)
            needed |= with_change and any(p == r or p.startswith(r + "/") for r in line.reads for p in wanted_reads)
            if needed:
                wanted.update(line.reads)
                keep.append(line)
        if step.lines and not keep:
            return None
        step.lines = keep[::-1]
    return fix(small)


def dangling(case: Case) -> bool:
    """Returns whether a line reads a result or variable that no line makes any more."""
    made: set[str] = set()
    for run in case.runs():
        for line in run.lines:
            if any(re.fullmatch(r"o\d+|\$v\d+", r) and r not in made for r in line.reads):
                return True
            made.update(line.writes)
    return False


def candidates(case: Case) -> Iterator[Case]:
    """Yields smaller cases, the much smaller ones first."""
    for i, step in enumerate(case.steps):
        n = len(step.lines)
        if n > 3:
            for part in (slice(0, n // 2), slice(n // 2, n)):
                small = case.copy()
                del small.steps[i].lines[part]
                yield fix(small)
        if len(case.steps) > 2 and i < len(case.steps) - 1:
            small = case.copy()
            del small.steps[i]
            if small.runs():
                yield small
    for i, step in enumerate(case.steps):
        for j in reversed(range(len(step.lines))):
            if len(step.lines) > 1:
                small = case.copy()
                del small.steps[i].lines[j]
                yield fix(small)
        for j in range(len(step.ops)):
            if len(step.ops) > 1:
                small = case.copy()
                del small.steps[i].ops[j]
                yield small
    yield from plainer(case)


def plainer(case: Case) -> Iterator[Case]:
    """Yields cases with plainer forms of the same programs and changes."""
    for i, step in enumerate(case.steps):
        if step.head.startswith("set "):
            small = case.copy()
            small.steps[i].head = ""
            yield small
        if step.do == "run" and step.form not in ("file", "argv"):
            small = case.copy()
            small.steps[i].form = "file"
            yield small
        if step.lang == "make" and step.argv:
            small = case.copy()
            small.steps[i].argv = []
            yield small
        for j, op in enumerate(step.ops):
            if op.op in ("replace", "mv", "keep-mtime"):
                small = case.copy()
                small.steps[i].ops[j] = Op("write", op.path, op.data)
                yield small


def fix(case: Case) -> Case:
    """Repairs what depends on the lines: the targets of a makefile."""
    for step in case.steps:
        if step.lang in ("make", "ninja") and step.do == "run" and step.form != "argv":
            step.head = head_for_all(step)
    return case


def without_unused(case: Case) -> Case:
    """Leaves out sources that nothing mentions."""
    small = case.copy()
    text = " ".join(script_text(r) + " ".join(r.argv) + r.stdin for r in small.runs())
    text += " ".join(f"{op.path} {op.data}" for s in small.steps for op in s.ops)
    text += " ".join(e.data for e in small.entries if e.kind == "link" or len(e.data) < 200)
    small.entries = [e for e in small.entries if e.kind == "setup" or mentioned(e.path, text)]
    return small


def mentioned(path: str, text: str) -> bool:
    """Returns whether a path, or a directory or stem of it, stands in a text."""
    path = path.removeprefix("@opt/")
    parts = {path, path.split("/")[0], path.split(".")[0] or path, path.rsplit("/", 1)[0], path.rstrip("ab")}
    return any(p and p in text for p in parts)


def size(case: Case) -> tuple[int, int]:
    """Returns how big a case is, for sorting."""
    return sum(len(s.lines) + len(s.ops) for s in case.steps) + len(case.steps), len(case.to_json())


def blamed(case: Case) -> str:
    """Returns the kinds of line of a small case, as the name of its group."""
    kinds = [line.kind for s in case.steps for line in s.lines]
    steps: list[Step] = case.steps
    ops = sorted({op.op for s in steps for op in s.ops})
    return f"{case.form}: {'+'.join(kinds) or 'command'} / {'+'.join(ops)}"
