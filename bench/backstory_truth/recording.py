"""A case, recorded: its runs and a person's changes, in its own directories.

Goes in: a case, the program and a directory. Comes out: the present state, and the history that
`truth.py` needs. This module judges the recording itself (`record`), and the answers right after a
run (`fresh`, `failed`).
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from .client import Backstory
from .closure import frail
from .program import Case, Step
from .truth import History, Place
from .verdict import Judgement, differing, flags
from .world import (
    NATIVE_SECONDS,
    Tree,
    apply,
    changed,
    errors_of,
    finish,
    op_paths,
    run_native,
    scan,
    wait_for,
)

QUIET = 0.015  # seconds between what a person does and what is recorded: a tick of the clock of files is 10 ms


class Recording:
    """One case in its own directories below `base`."""

    def __init__(self, case: Case, program: str, base: Path, only: str = "") -> None:
        self.case, self.base, self.only = case, base, only
        self.snapshot = Place(base / "snap", base / "snap.opt")
        self.present = Place(base / "w", base / "w.opt")
        self.scratch = Place(base / "n", base / "n.opt")
        self.history = History()
        self.out = Judgement()
        self.backstory = Backstory(program, base / "store", self.present.root, self.present.opt)
        self.sources: Tree = {}
        self.frail = frail(case)
        self.waiting: tuple[Step, int, subprocess.Popen[bytes], Tree] | None = None

    def play(self) -> bool:
        """Records the runs and does the changes; returns whether there is something to ask."""
        number = 0
        during: Step | None = None
        for step in self.case.steps:
            time.sleep(QUIET)
            if step.do == "run":
                if not self.record(step, number, during):
                    return False
                during, number = None, number + 1
            elif step.do == "during":
                during = step
            elif step.do == "change":
                self.change(step)
            elif step.do == "undo":
                self.undo(step)
        return True

    def change(self, step: Step) -> None:
        """Does a person's changes."""
        for op in step.ops:
            apply(op, self.present.root, self.present.opt)
            paths = op_paths(op)
            if op.op in ("delete", "rename") and op.path in self.history.makers:
                self.history.deleted.add(op.path)
                paths = paths[1:]
            self.history.person += [p for p in paths if p not in self.history.person]
            self.history.person_last.update(paths)

    def undo(self, step: Step) -> None:
        """Takes back the last version of files, as a person does."""
        for op in step.ops:
            if self.backstory.call("undo", "--", op.path).status == 0:
                self.history.person.append(op.path)
                self.history.person_last.add(op.path)

    def record(self, run: Step, number: int, during: Step | None) -> bool:
        """Records one run, and compares it with a native execution if it is the first."""
        before = scan(self.present.root)
        status: int | None
        if run.background:
            self.waiting = (run, number, self.backstory.record(run), before)
            return True
        if during:
            process = self.backstory.record(run)
            wait_for(self.present.root / during.when, process)
            time.sleep(QUIET)
            self.change(during)
            status = finish(process, NATIVE_SECONDS)
        else:
            status = self.backstory.record_all(run)
        after = scan(self.present.root)
        if not self.note(run, number, status, before, after, during):
            return False
        if number == 0 and not during:
            return self.compare_native(run, status or 0, after)
        if self.waiting:
            run, number, process, before = self.waiting
            self.waiting = None
            late = finish(process, NATIVE_SECONDS)
            before.update(after)
            return self.note(run, number, late, before, scan(self.present.root), None)
        return True

    def note(self, run: Step, number: int, status: int | None, before: Tree, after: Tree, during: Step | None) -> bool:
        """Notes what a run made; returns whether it ended in time."""
        history = self.history
        history.statuses[number] = status
        made = set(changed(before, after))
        if run.edit:
            history.edited |= {p for p in before if p not in after}
        if run.repeats:
            made |= {p for p in history.made.get(0, set()) if p in after}
        if during:
            made -= {p for op in during.ops for p in op_paths(op)}
        for path in made:
            first = path in self.sources or path in history.edited
            if run.edit or (path in self.sources and "rmw" in flags(run)):
                history.edited.add(path)
                history.edited_results |= not first
            else:
                history.makers[path] = number
            history.person_last.discard(path)
        history.made[number] = made
        if status is None:
            self.out.aside = "too slow"
            return False
        if run.fails:
            self.ask_failed(sorted(made))
        return True

    def compare_native(self, run: Step, status: int, after: Tree) -> bool:
        """Compares a recorded run with native ones; sets the case aside if these differ.

        A race may have the recorded end seldom, so up to five executions are compared.
        """
        trees = []
        for _ in range(5):
            self.snapshot.copy(self.scratch)
            if run.signal_after:
                self.scratch.remove()
                return True
            code = run_native(run, self.scratch.root, self.scratch.opt)
            trees.append((scan(self.scratch.root), code))
            self.scratch.remove()
            if trees[-1] == (after, status):
                break
        if trees[-1] != (after, status):
            if any(tree != trees[0] for tree in trees):
                self.out.aside = "nondeterministic"
                return False
            wrong = differing(trees[0][0], after)
            self.out.add("record", "unsound", ", ".join(wrong), f"status {status}, natively {trees[0][1]}")
            return False
        self.out.add("record", "right")
        if (
            self.only in ("", "fresh")
            and status == 0
            and not run.fails
            and not self.complained()
            and self.case.steps[0] is run
        ):
            self.ask_fresh()
        return True

    def complained(self) -> bool:
        """Returns whether a native execution wrote to standard error.

        If so, a maker may have failed.
        """
        path = errors_of(self.scratch.root)
        return path.exists() and path.stat().st_size > 0

    def ask_failed(self, results: list[str]) -> None:
        """Asks right after a run whose maker failed: nothing of it is current."""
        states, _ = self.backstory.states(results)
        for path in results:
            state = states.get(path, "not listed")
            self.out.add(
                "failed", "unsound" if state == "current" else "right", path, f"its maker failed half-way: {state}"
            )

    def ask_fresh(self) -> None:
        """Asks right after the run: all must be current."""
        results = [p for p in sorted(self.history.makers) if not self.frail(p)]
        states, _ = self.backstory.states(results)
        for path in results:
            state = states.get(path, "not listed")
            verdict = {"current": "right", "uncertain": "uncertain"}.get(state, "alarm")
            self.out.add("fresh", verdict, path, f"right after the run: {state} ({self.backstory.reasons.get(path)})")
