"""Results that can depend on a changed source, by what the kinds of line declare.

Goes in: a case and the changed paths. Comes out: a predicate on results. It is used for alarms
only, so too much taint hides an alarm and never causes a false one.
"""

from __future__ import annotations

from collections.abc import Callable

from .program import Case, Step, join


def below(path: str, root: str) -> bool:
    """Returns whether two names can stand for the same thing: equal, inside, or with a suffix."""
    return path == root or path.startswith((root + "/", root + ".")) or root.startswith(path + "/")


def control(run: Step) -> bool:
    """Returns whether a failing line decides about later lines."""
    return "set -e" in run.head or run.lang in ("python", "perl")


def tainted(case: Case, paths: list[str], same: set[str]) -> Callable[[str], bool]:
    """Returns whether a result may depend on these paths; those of `same` have other times only."""
    only_times = same | {op.path for s in case.steps for op in s.ops if op.op in ("touch", "same")}
    seeds = {p[5:] if p.startswith("@opt/") else p for p in paths if p not in only_times}
    times = {p for p in paths if p in only_times}
    reached: set[str] = set(seeds)

    def is_reached(name: str) -> bool:
        return any(below(name, r) for r in reached)

    for _ in range(3):
        for run in case.runs():
            script = join(run.cwd, run.script)
            all_lines = script in seeds
            for line in run.lines:
                reads = [r if r.startswith("$") else join(run.cwd, r) for r in line.reads]
                hit = any(is_reached(r) for r in reads) or (
                    "src" in line.flags and any(below(r, t) for r in reads for t in times)
                )
                if hit or all_lines:
                    reached.update(w if w.startswith("$") else join(run.cwd, w) for w in line.writes)
                    all_lines = all_lines or control(run)
    known = {join(r.cwd, w) for r in case.runs() for line in r.lines for w in line.writes}
    return lambda path: is_reached(path) or not any(below(path, k) for k in known)


def frail(case: Case) -> Callable[[str], bool]:
    """Returns whether a command behind a result may fail on purpose.

    Such a result need not be current.
    """
    reached: set[str] = set()
    for run in case.runs():
        for line in run.lines:
            reads = [r if r.startswith("$") else join(run.cwd, r) for r in line.reads]
            if "fails" in line.flags or any(below(r, x) for r in reads for x in reached):
                reached.update(w if w.startswith("$") else join(run.cwd, w) for w in line.writes)
    return lambda path: any(below(path, r) for r in reached)
