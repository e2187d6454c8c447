"""Questions to backstory.

Goes in: the program, a store and a directory. Comes out: states of files, names of sources, and
what `rerun` did. Invariant: each call has a time limit, and no answer is taken from an earlier
version's wording where JSON has it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .program import Step
from .typed import type_lines
from .world import end_group, environment, finish, kill_when, start

SECONDS = 30


@dataclass
class Answer:
    """The status and the output of a call."""

    status: int | None
    out: str
    err: str


class Backstory:
    """One store, asked in one directory."""

    def __init__(self, program: str, store: Path, root: Path, opt: Path) -> None:
        self.program, self.store, self.root, self.opt = program, store, root, opt
        self.env = {**environment(opt), "BACKSTORY_STORE": str(store), "HISTFILE": ""}
        self.reasons: dict[str, str] = {}  # of the last states

    def call(self, *words: str, cwd: str = ".") -> Answer:
        """Executes `backstory WORDS`."""
        process = subprocess.Popen(
            [self.program, *words],
            cwd=self.root / cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            end_group(process)
            out, err = process.communicate()
            return Answer(None, out.decode(errors="replace"), err.decode(errors="replace"))
        return Answer(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def record(self, run: Step) -> subprocess.Popen[bytes]:
        """Starts a recorded run; the caller waits for it."""
        return start(run, self.root, self.env, [self.program, "record", "--"])

    def record_all(self, run: Step) -> int | None:
        """Records a run; returns its status."""
        if run.form == "typed":
            lines = [line.text for line in run.lines]
            shell = [self.program, "shell", "--", "bash", "-i"]
            return 0 if type_lines(shell, lines, self.root / run.cwd, self.env, SECONDS) else None
        process = self.record(run)
        if run.signal_after:
            kill_when(process, self.root / run.signal_after)
        status = finish(process, SECONDS)
        return status

    def kill_rerun(self, paths: list[str], seconds: float) -> None:
        """Starts `rerun` and kills all of it after a while."""
        process = subprocess.Popen(
            [self.program, "rerun", "--yes", "--", *paths],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(seconds)
        if process.poll() is None:
            end_group(process)
        process.wait()

    def states(self, paths: list[str]) -> tuple[dict[str, str], int | None]:
        """Returns the state of each file, by `status --json`, and the exit status."""
        answer = self.call("status", "--json", "--", *paths) if paths else self.call("status", "--json")
        found: dict[str, str] = {}
        try:
            rows = json.loads(answer.out)
        except ValueError:
            return {p: f"no answer ({answer.status}: {answer.err.strip()[:200]})" for p in paths}, answer.status
        rows = rows if isinstance(rows, list) else rows.get("files", [])
        for r in rows:
            path = os.path.relpath(r["path"], self.root.resolve())
            found[path] = r["state"]
            self.reasons[path] = ", ".join(" ".join(map(str, reason.values())) for reason in r.get("reasons", []))
        return found, answer.status

    def sources_of(self, path: str) -> set[str]:
        """Returns the words of `of PATH --inputs --files`: without it, only a screen is filled."""
        return self.words("of", "--inputs", "--files", "--", path)

    def words(self, *call: str) -> set[str]:
        """Returns the words of an answer, as paths without punctuation."""
        text = self.call(*call).out
        return {w.strip(",:;()'\"") for w in re.split(r"\s+", text) if w}

    def used_by(self, path: str) -> set[str]:
        """Returns the files that `uses PATH` leads to, by its text and its JSON."""
        names = self.words("uses", "--", path)
        answer = self.call("uses", "--json", "--level", "step", "--", path)
        try:
            files = json.loads(answer.out).get("files", [])
        except ValueError:
            return names
        return names | {os.path.relpath(f["path"], self.root.resolve()) for f in files}

    def close(self) -> None:
        """Ends all work in the background."""
        self.call("index", "--wait")
