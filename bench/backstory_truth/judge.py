"""Verdicts: records a case, changes its sources, asks backstory, and compares with the truth.

Goes in: a case and the program. Comes out: counts of what was judged, and findings. The questions:

| question | unsound | others |
| --- | --- | --- |
| `record` | a run's status or results differ from a native execution | |
| `fresh` | | alarm: not `current` right after recording, although nothing failed |
| `status` | `current`, but a fresh execution leaves other bytes, mode or target, or nothing | alarm, uncertain |
| `of` | `of RESULT --inputs` lacks the source whose change changes the result | |
| `uses` | `uses SOURCE` lacks that result | |
| `rerun` | it ends with 0, and a result is not that of a fresh execution | refused: it ended with another status |
| `person` | a file that no maker made was changed, lost or left behind by `rerun` | |
| `again` | a second `rerun` executed something, or a result is not `current` after the first | uncertain |

`alarm` of `status`: the file is called outdated, although its bytes stay the same. It counts only
if the changed source is not in the closure of what the kinds of line declare. If it is in the
closure, a command behind the file took in other bytes: not judged.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .closure import tainted
from .exporting import judge_export
from .program import Case
from .recording import Recording
from .truth import reference
from .verdict import Judgement, accepted_names, describe, full_name, is_named, same_time
from .world import Tree, scan, write_snapshot


class Trial(Recording):
    """One case, asked and judged."""

    def judge(self) -> Judgement:
        """Does everything; the directories are left for the caller to remove."""
        write_snapshot(self.case, self.snapshot.root, self.snapshot.opt)
        self.snapshot.copy(self.present)
        self.sources = scan(self.snapshot.root)
        try:
            if self.play() and not self.out.aside and self.only not in ("record", "fresh", "failed"):
                self.ask()
        finally:
            self.backstory.close()
        return self.out

    def ask(self) -> None:
        """Asks all questions about the present state, and judges them."""
        history = self.history
        pair = [reference(self.case, self.snapshot, self.present, history, self.scratch) for _ in range(2)]
        if pair[0] is None or pair[1] is None:
            self.out.aside = "no single reference"
            return
        if pair[0] != pair[1]:
            self.out.aside = "nondeterministic after the change"
            return
        truth, code = pair[0]
        before = scan(self.present.root)
        results = [
            p for p in sorted(history.makers) if p not in history.person_last and (p in before or p in history.deleted)
        ]
        if not results:
            self.out.aside = "no results"
        elif set(history.person) & history.edited:
            self.judge_rerun(results, before, truth, code)
        else:
            self.ask_all(results, before, truth, code)

    def ask_all(self, results: list[str], before: Tree, truth: Tree, code: int) -> None:
        """Asks and judges all questions about these results."""
        states, exit_status = self.backstory.states(results)
        wrong = [p for p in results if before.get(p) != truth.get(p)]
        self.judge_status(results, wrong, states, exit_status)
        if wrong and self.only in ("", "of", "uses"):
            self.judge_names(wrong)
        if self.only in ("", "export") and len(self.case.runs()) == 1 and not code and not self.history.edited:
            self.judge_export([p for p in wrong if p in truth and not self.frail(p)], truth)
        if self.only in ("", "rerun", "person", "again"):
            self.judge_rerun(results, before, truth, code)

    def judge_status(self, results: list[str], wrong: list[str], states: dict[str, str], code: int | None) -> None:
        """Judges `status`."""
        present = scan(self.present.root)
        same = {
            p
            for p in self.history.person
            if not p.startswith("@opt/") and p in present and present[p] == self.sources.get(p)
        }
        taint = tainted(
            self.case, [*self.history.person, *self.history.edited, *self.history.makers_over(self.sources)], same
        )
        for path in results:
            state = states.get(path, "not listed")
            if path in wrong:
                if state == "current":
                    self.out.add("status", "unsound", path, "current, but a fresh execution leaves something else")
                else:
                    self.out.add("status", "uncertain" if state == "uncertain" else "right", path, state)
            elif state == "current":
                self.out.add("status", "right")
            elif state == "uncertain":
                self.out.add("status", "uncertain", path, state)
            elif not taint(path) and not self.frail(path) and path not in self.failed_results():
                self.out.add("status", "alarm", path, f"{state}, but it stays the same, and nothing behind it changed")
        all_current = all(states.get(p) == "current" for p in results)
        if (code == 0) != all_current:
            self.out.add("status", "unsound", "", f"exit status {code} does not fit the states {states}")

    def judge_export(self, wrong: list[str], truth: Tree) -> None:
        """Executes an export of one result in a copy."""
        if not wrong or self.complained() or self.case.form in ("failing", "killed"):
            return
        form = "make" if sum(map(ord, self.case.seed)) % 2 else "shell"
        places = (self.snapshot, self.present, self.scratch)
        path = wrong[-1]
        verdict, why = judge_export(self.backstory, form, path, *places, self.history.person, truth)
        self.out.add("export", verdict, path, why)

    def failed_results(self) -> set[str]:
        """Returns results of runs that failed or have lines that fail.

        Their state is not judged as an alarm.
        """
        runs = self.case.runs()
        return {
            p
            for p, i in self.history.makers.items()
            if self.history.statuses[i] != 0 or runs[i].fails or self.complained()
        }

    def judge_names(self, wrong: list[str]) -> None:
        """Judges `of` and `uses`, if exactly one source was changed."""
        ops = [op for s in self.case.steps if s.do in ("change", "during") for op in s.ops]
        if len(ops) != 1 or self.history.edited or self.history.makers_over(self.sources):
            return
        op = ops[0]
        accepted = accepted_names(op, self.case)
        # Without the file, a builder may end before it comes to commands that do not use it.
        lines = [line for run in self.case.runs() for line in run.lines if "unseen" in line.flags]
        is_unseen = any(op.path in line.text for line in lines)
        ends_early = op.op in ("delete", "rename") and self.case.runs()[0].lang in ("make", "ninja")
        if not accepted or ends_early or is_unseen:
            return
        for path in wrong[:3]:
            words = self.backstory.sources_of(path)
            hit = any(is_named(name, words, self.present) for name in accepted)
            self.out.add("of", "right" if hit else "unsound", path, f"{op.path} is not named")
        used = set()
        for name in accepted[:2]:
            used |= self.backstory.used_by(full_name(name, self.present))
        for path in wrong[:3]:
            self.out.add("uses", "right" if path in used else "unsound", path, f"not among those that use {op.path}")

    def judge_rerun(self, results: list[str], before: Tree, truth: Tree, code: int) -> None:
        """Executes `rerun` and judges what it left."""
        asked = [p for p in results if p in truth]
        if not asked:
            return
        self.out.asked = asked
        conflict = bool(set(self.history.person) & self.history.edited)
        if "kill-rerun" in self.case.expect:
            self.backstory.kill_rerun(asked, 0.03 + 0.02 * (len(self.case.to_json()) % 9))
        answer = self.backstory.call("rerun", "--yes", "--", *asked)
        after = scan(self.present.root)
        self.judge_person(before, after, truth)
        if conflict:
            return
        if answer.status != 0:
            if code == 0:
                said = (answer.err or answer.out).strip().splitlines()
                self.out.add("rerun", "refused", asked[0], f"status {answer.status}: {said[-1] if said else ''}"[:200])
            return
        for path in asked:
            right = after.get(path) == truth[path]
            self.out.add("rerun", "right" if right else "unsound", path, describe(path, before, after, truth))
        firm = [p for p in asked if not self.frail(p)]
        if code == 0 and firm and not self.complained():
            self.judge_again(firm, after)
        self.judge_modified(truth)

    def judge_modified(self, truth: Tree) -> None:
        """Asks for results that a person edited: they stay as they are."""
        mine = [
            p for p in sorted(self.history.person_last) if p in self.history.makers and (self.present.root / p).exists()
        ]
        if mine:
            before = scan(self.present.root)
            self.out.asked = mine
            self.backstory.call("rerun", "--yes", "--", *mine)
            self.judge_person(before, scan(self.present.root), truth)

    def judge_person(self, before: Tree, after: Tree, truth: Tree) -> None:
        """Judges all other files than results."""
        makers = set(self.history.makers) - self.history.person_last
        for path in sorted({*before, *after} - makers):
            if before.get(path) == after.get(path) or (path not in before and path in truth):
                self.out.count("person.judged")
                continue
            if (
                path in self.history.edited
                and path not in self.history.person_last
                and after.get(path) == truth.get(path)
            ):
                continue
            if path not in after and path not in truth and self.comes_back(path, before):
                self.out.count("person.judged")
                continue
            what = "left behind" if path not in before else "changed" if path in after else "lost"
            self.out.add("person", "unsound", path, f"`rerun` {what} it{describe(path, before, after, truth)}")

    def comes_back(self, path: str, before: Tree) -> bool:
        """Returns whether `undo` brings back a file that the program itself removes.

        The program would have removed it without backstory, too. Afterwards it is removed again.
        """
        self.backstory.call("undo", "--", path)
        back = scan(self.present.root).get(path)
        self.backstory.call("redo", "--", path)
        return back == before[path]

    def judge_again(self, asked: list[str], after: Tree) -> None:
        """Asks after a `rerun` that ended with 0: nothing is left to do."""
        states, _ = self.backstory.states(asked)
        for path in asked:
            state = states.get(path, "not listed")
            verdict = {"current": "right", "uncertain": "uncertain"}.get(state, "unsound")
            self.out.add("again", verdict, path, f"{state} after `rerun` ended with 0")
        times = {p: (self.present.root / p).lstat().st_ctime_ns for p in asked if p in after}
        answer = self.backstory.call("rerun", "--yes", "--", *asked)
        redone = [
            p
            for p, t in times.items()
            if not (self.present.root / p).is_symlink() and not same_time(self.present.root / p, t)
        ]
        right = answer.status == 0 and not redone
        self.out.add(
            "again",
            "right" if right else "unsound",
            ", ".join(redone),
            f"the second `rerun` (status {answer.status}) made results again",
        )


def try_case(case: Case, program: str, base: Path, only: str = "") -> Judgement:
    """Judges a case below `base`, which is removed afterwards.

    The calls may be limited to those that one question needs.
    """
    trial = Trial(case, program, base, only)
    try:
        return trial.judge()
    finally:
        shutil.rmtree(base, ignore_errors=True)
