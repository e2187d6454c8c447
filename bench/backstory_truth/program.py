"""The data of a case: sources, lines of a program, runs and changes; and the text of a program.

Goes in: what `generate.py` chose. Comes out: objects that `world.py` writes to a directory, that
`shrink.py` makes smaller, and that are kept as JSON. Invariant: a case has no state besides these
fields, so it can be repeated.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Entry:
    """One file, link or directory that exists before the first run."""

    path: str
    kind: str = "file"  # file, link, dir, sqlite, tar, seq (huge), setup (commands)
    data: str = ""  # the bytes, or the target of a link, or rows (sqlite), names=texts (tar), or commands
    mode: int = 0o644
    mtime: int = 1577836800


@dataclass
class Line:
    """One line of a program, and what its author says that it takes in and makes."""

    kind: str
    text: str
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


@dataclass
class Op:
    """One change of a file: by a person, or by a recorded editor if it stands in a run."""

    op: str  # write, replace, keep-mtime, append, delete, chmod, touch, link, rename, mkdir, sqlite
    path: str
    data: str = ""


@dataclass
class Step:
    """One event of a case: `run`, `change`, `undo` or `during`.

    `during` is a change while the next run goes on.
    """

    do: str
    # of a run
    form: str = "file"  # file, dash-c, exec, stdin, make, python, text, typed; or argv: execute `argv` as it is
    lang: str = "dash"
    head: str = ""  # set -e and the like
    lines: list[Line] = field(default_factory=list)
    cwd: str = "."
    script: str = "prog.sh"
    argv: list[str] = field(default_factory=list)
    stdin: str = ""
    stdout: str = ""
    edit: bool = False  # the run is a recorded edit: a fact, never repeated
    fails: bool = False  # the maker fails on purpose
    background: bool = False  # the run goes on while the next one is recorded
    repeats: bool = False  # the same program as an earlier run: it makes the same files
    signal_after: str = ""  # kill the run when this file exists
    # of a change
    ops: list[Op] = field(default_factory=list)
    when: str = ""  # of `during`: the file whose appearance is waited for


@dataclass
class Case:
    """A whole case."""

    seed: str
    entries: list[Entry]
    steps: list[Step]
    form: str = "program"  # or the name of a kind of session
    git: bool = False
    expect: list[str] = field(default_factory=list)  # kill-rerun: the first `rerun` is killed

    def runs(self) -> list[Step]:
        """Returns the runs, in order."""
        return [s for s in self.steps if s.do == "run"]

    def to_json(self) -> str:
        """Returns the case as JSON."""
        return json.dumps(asdict(self), indent=1)

    def copy(self) -> Case:
        """Returns a deep copy."""
        return from_json(self.to_json())


def from_json(text: str) -> Case:
    """Reads what `to_json` wrote."""
    d: dict[str, Any] = json.loads(text)
    steps = []
    for s in d["steps"]:
        s["lines"] = [Line(**x) for x in s["lines"]]
        s["ops"] = [Op(**x) for x in s["ops"]]
        steps.append(Step(**s))
    d["entries"] = [Entry(**e) for e in d["entries"]]
    d["steps"] = steps
    return Case(**d)


def script_text(run: Step) -> str:
    """Returns the text of the program of a run."""
    body = "\n".join(line.text for line in run.lines)
    head = run.head + "\n" if run.head else ""
    if run.form == "exec":
        head = {
            "dash": "#!/bin/dash\n",
            "bash": "#!/bin/bash\n",
            "python": "#!/usr/bin/python3\n",
            "perl": "#!/usr/bin/perl\n",
        }[run.lang] + head
    return head + body + "\n"


INTERPRETER = {"dash": "dash", "bash": "bash", "python": "python3", "perl": "perl", "make": "make"}


def command(run: Step) -> list[str]:
    """Returns the words of a run's command."""
    if run.form == "argv":
        return run.argv
    if run.lang == "make":
        return ["make", "-s", "-f", run.script, *run.argv]
    if run.lang == "ninja":
        return ["ninja", "--quiet", "-f", run.script, *run.argv]
    if run.form == "exec":
        return ["./" + run.script]
    program = INTERPRETER[run.lang]
    if run.form in ("text", "typed"):
        return [program, "-e" if run.lang == "perl" else "-c", script_text(run)]
    if run.form == "stdin":
        return [program]
    if run.form == "make":
        return ["make", "-s", "-f", run.script + ".mk"]
    if run.form == "python":
        return ["python3", "-c", f"import subprocess,sys; sys.exit(subprocess.call(['{program}','{run.script}']))"]
    return [program, run.script]


def script_entries(run: Step) -> list[Entry]:
    """Returns the files that hold the program of a run."""
    if run.form in ("argv", "text", "typed"):
        return []
    mode = 0o755 if run.form == "exec" else 0o644
    files = [Entry(join(run.cwd, run.script), "file", script_text(run), mode)]
    if run.form == "make":
        rule = f".PHONY: all\nall:\n\t{INTERPRETER[run.lang]} {run.script}\n"
        files.append(Entry(join(run.cwd, run.script + ".mk"), "file", rule))
    return files


def join(directory: str, path: str) -> str:
    """Joins without a leading `./`."""
    return path if directory in (".", "") else f"{directory}/{path}"
