"""The files that each test used, from the record of the run.

In: the notes of the session, and its run. Out: for each test, the paths that it read, listed,
looked at, or looked for in vain. Paths that a test made are not included.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..store import Run
from .notes import Notes, Project

#: The ways to use a path, strongest first.
READ, LISTED, LOOKED, MISSED = "read", "listed", "looked at", "missed"

_HOW = {
    "read": READ,
    "exec": READ,
    "link": READ,
    "dir": LISTED,
    "stat": LOOKED,
    "missing": MISSED,
}
_STRENGTH = {READ: 0, LISTED: 1, LOOKED: 2, MISSED: 3}

#: Paths whose state is not an input of a test.
_OF_KERNEL = ("/proc/", "/sys/", "/dev/")


@dataclass
class Used:
    """The paths that one activity used."""

    paths: dict[str, str] = field(default_factory=dict)
    forked: bool = False
    """True if a child ran without an exec, so that its functions were not traced."""

    def add(self, path: str, how: str) -> None:
        """Adds a use of a path. The strongest use is kept."""
        old = self.paths.get(path)
        if old is None or _STRENGTH[how] < _STRENGTH[old]:
            self.paths[path] = how

    def join(self, other: Used) -> None:
        """Adds the uses of another activity."""
        for path, how in other.paths.items():
            self.add(path, how)
        self.forked |= other.forked


@dataclass
class SessionInputs:
    """The paths that tests, shared fixtures and the rest of the session used."""

    tests: dict[str, Used] = field(default_factory=dict)
    fixtures: dict[str, Used] = field(default_factory=dict)
    before: Used = field(default_factory=Used)


def of_run(run: Run, notes: Notes, project: Project) -> SessionInputs:
    """Reads the uses from the record of a session."""
    processes = {row["id"]: row for row in run.processes().to_dicts()}
    marks = {id_: _mark(id_, processes, notes.pid) for id_ in processes}
    inputs = SessionInputs()
    edges = run.edges()
    columns = (edges[name] for name in ("process", "path", "version", "how"))
    for process, path, version, how in zip(*columns):
        kind, name = marks[process]
        used = _used_by(inputs, kind, name)
        if version == 0 and how in _HOW and path.startswith("/"):
            own = processes[process]["pid"] == notes.pid
            _take(used, path, _HOW[how], (kind, name), own, notes, project)
    for id_, row in processes.items():
        if row["epoch"] == 0 and not row["execed"] and row["pid"] != notes.pid:
            kind, name = marks[id_]
            _used_by(inputs, kind, name).forked = True
    return inputs


def _used_by(inputs: SessionInputs, kind: str, name: str) -> Used:
    if kind == "test":
        return inputs.tests.setdefault(name, Used())
    if kind == "fixture":
        return inputs.fixtures.setdefault(name, Used())
    return inputs.before


def _mark(id_: int, processes: dict[int, dict[str, Any]], pid: int) -> tuple[str, str]:
    """Returns the test or fixture to which an activity belongs."""
    at: int | None = id_
    while at is not None and at in processes:
        row = processes[at]
        argv = row["argv"]
        if row["pid"] == pid and len(argv) == 2 and argv[0] in ("test", "fixture"):
            return argv[0], argv[1]
        at = row["parent_id"]
    return "before", ""


def _take(
    used: Used,
    path: str,
    how: str,
    mark: tuple[str, str],
    own: bool,
    notes: Notes,
    project: Project,
) -> None:
    """Adds a use, unless another part of the fingerprint covers the file."""
    if path.startswith(_OF_KERNEL) or project.is_installed(path):
        return
    name = os.path.basename(path)
    if name.endswith((".pyc", ".opt-1.pyc")) or f"{os.sep}__pycache__" in path:
        # Python reads the compiled module, and only calls stat on its source.
        source = _source(path)
        if source is None or how != READ or own:
            return
        path = source
    inside = project.has(path)
    if f"{os.sep}.pytest_cache" in path or (how != READ and not inside):
        return
    if path.endswith(".py") and own and path in notes.loaded and how in (READ, LOOKED):
        note = notes.tests.get(mark[1])
        imported = mark[0] != "test" or note is None or path in note.loaded
        if imported or how == LOOKED:
            # An import: the functions and the rest of the module are compared instead.
            return
    if mark[0] == "before" and (how == LISTED or how == LOOKED):
        # pytest collects tests, and Python searches for modules.
        return
    used.add(path, how)


def _source(path: str) -> str | None:
    try:
        return importlib.util.source_from_cache(path)
    except (ValueError, NotImplementedError):
        return None


def all_paths(inputs: SessionInputs) -> Iterable[str]:
    """Yields all paths of a session."""
    for used in (*inputs.tests.values(), *inputs.fixtures.values(), inputs.before):
        yield from used.paths
