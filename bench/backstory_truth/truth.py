"""The truth about a case, from native executions.

Goes in: a snapshot from before the first run, the present directory, and the steps. Comes out: the
tree that a fresh execution leaves, or a reason why there is no single right one.

**One run.** The reference is the program, executed natively from the snapshot, with each changed
source as the person left it (bytes, mode, times). Files that the run itself rewrites (`rmw`) begin
from their version in the snapshot: an edit is never repeated on top of itself. If the person
changed such a file afterwards, only their work is judged.

**Several runs.** The present state of all that no recorded maker made is true. So is the present
state of a source that a recorded edit (`sed -i`) changed. From the snapshot with these in place,
each maker is executed once, after the makers of what it reads. The reads are those that the kinds
of line declare. Makers of which all results were later overwritten are dead and left out. A circle
sets the case aside. If an edit changed a *result* of this session, the reference is the session in
order from the snapshot. The edits are included, and the changed sources are in place.

Each reference is computed twice; what differs between the two is set aside.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from .program import Case, Step, join
from .world import Tree, carry, copy_tree, run_native, scan


@dataclass
class History:
    """The observations made while a case was recorded."""

    makers: dict[str, int] = field(default_factory=dict)  # result: number of its last run
    made: dict[int, set[str]] = field(default_factory=dict)  # run: all that it ever made
    edited: set[str] = field(default_factory=set)  # files that an edit changed
    edited_results: bool = False
    person: list[str] = field(default_factory=list)  # paths that a person changed, whenever
    person_last: set[str] = field(default_factory=set)  # paths whose last change is a person's
    deleted: set[str] = field(default_factory=set)  # results that a person deleted
    statuses: dict[int, int | None] = field(default_factory=dict)

    def makers_over(self, sources: Tree) -> list[str]:
        """Returns sources that a maker overwrote."""
        return [p for p in self.makers if p in sources]


@dataclass
class Place:
    """A directory of a case, and where its data below /opt lie."""

    root: Path
    opt: Path

    def copy(self, to: Place) -> None:
        """Copies it to another place."""
        copy_tree(self.root, to.root)
        copy_tree(self.opt, to.opt)

    def remove(self) -> None:
        """Removes it."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.opt, ignore_errors=True)


def in_order(case: Case, snapshot: Place, present: Place, history: History, at: Place) -> tuple[Tree, int]:
    """Executes all runs in order, from the snapshot with the person's changes in place."""
    snapshot.copy(at)
    carry(history.person, (present.root, present.opt), (at.root, at.opt))
    status = 0
    for run in case.runs():
        status = run_native(run, at.root, at.opt) or status
    return scan(at.root), status


def by_need(case: Case, snapshot: Place, present: Place, history: History, at: Place) -> tuple[Tree, int] | None:
    """Executes each living maker once, after the makers of what it reads.

    Returns None if they need each other.
    """
    snapshot.copy(at)
    keep = [*history.person, *history.edited]
    carry(keep, (present.root, present.opt), (at.root, at.opt))
    runs = case.runs()
    waiting = [i for i, r in enumerate(runs) if not r.edit and not is_dead(i, history)]
    status = 0
    while waiting:
        ready = [i for i in waiting if not any(j in waiting and j != i for j in needs(runs[i], history))]
        if not ready:
            return None
        status = run_native(runs[ready[0]], at.root, at.opt) or status
        carry(sorted(history.person_last), (present.root, present.opt), (at.root, at.opt))
        waiting.remove(ready[0])
    return scan(at.root), status


def needs(run: Step, history: History) -> set[int]:
    """Returns the makers of what a run reads."""
    reads = {join(run.cwd, r) for line in run.lines for r in line.reads}
    return {i for path, i in history.makers.items() if any(path == r or path.startswith(r + "/") for r in reads)}


def is_dead(number: int, history: History) -> bool:
    """Returns whether other runs made all that this one made."""
    made = history.made.get(number, set())
    return bool(made) and all(history.makers.get(p) != number for p in made)


def reference(case: Case, snapshot: Place, present: Place, history: History, at: Place) -> tuple[Tree, int] | None:
    """Returns the true tree and the status of the runs, or None if it cannot be told."""
    try:
        if len(case.runs()) == 1 or history.edited_results:
            return in_order(case, snapshot, present, history, at)
        return by_need(case, snapshot, present, history, at)
    finally:
        at.remove()
