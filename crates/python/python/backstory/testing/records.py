"""The fingerprints of tests, stored from one session to the next.

In: the notes and inputs of a session. Out: a JSON file in pytest's cache, and the tests whose
fingerprints are unchanged.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import stat
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import metadata
from typing import Any

from .inputs import LISTED, LOOKED, MISSED, READ, SessionInputs, Used
from .notes import Notes, Ran, TestNote
from .sources import Source, parsed

_VERSION = 1


class PresentFiles:
    """The present state of files. Each file is read at most once."""

    def __init__(self) -> None:
        self.source = lru_cache(maxsize=None)(self._source)
        self.state = lru_cache(maxsize=None)(self._state)

    def _source(self, path: str) -> Source | None:
        try:
            with open(path, "rb") as file:
                return parsed(file.read())
        except OSError:
            return None

    def _state(self, path: str, how: str) -> str:
        """Returns the state of a path, as far as a use of kind ``how`` can observe it."""
        try:
            meta = os.stat(path)
            if how == MISSED:
                return "there"
            if how == LISTED or stat.S_ISDIR(meta.st_mode):
                names = os.listdir(path) if how == LISTED else []
                return _digest("\0".join(sorted(_counted(names))))
            if how == LOOKED:
                return f"{meta.st_size} {meta.st_mtime_ns}"
            if not stat.S_ISREG(meta.st_mode):
                return "special"
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()[:24]
        except OSError:
            return "absent"


def _counted(names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in ("__pycache__", ".pytest_cache")]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def environment() -> str:
    """Returns a digest of the Python version and of all installed distributions."""
    found = {
        f"{one.metadata['Name']}=={one.version}"
        for one in metadata.distributions()
        if one.metadata["Name"]
    }
    return _digest("\n".join([sys.version, platform.machine(), *sorted(found)]))


@dataclass
class Fingerprint:
    """The state of the inputs of a test, or of the inputs that all tests of a session share."""

    sources: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    """For each source file: a digest of the code outside functions, and one of each function."""
    files: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """For each path: its use, and its state, or ``None`` if the file may have changed since."""
    known: bool = True
    """False if a source file may have changed since the session read it."""

    def is_same(self, files: PresentFiles) -> bool:
        """Returns true if every input is unchanged."""
        if not self.known:
            return False
        for path, (rest, units) in self.sources.items():
            source = files.source(path)
            if source is None or source.rest != rest:
                return False
            now = source.digests()
            if any(now.get(name) != digest for name, digest in units.items()):
                return False
        return all(
            state is not None and files.state(path, how) == state
            for path, (how, state) in self.files.items()
        )


class TestRecords:
    """The stored fingerprints of tests."""

    __test__ = False

    def __init__(self, path: str) -> None:
        self._path = path
        self._tests: dict[str, dict[str, Any]] = {}
        self._sessions: dict[str, dict[str, Any]] = {}
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                raw = json.load(file)
        except (OSError, ValueError):
            return
        if raw.get("version") == _VERSION and raw.get("environment") == environment():
            self._tests, self._sessions = raw["tests"], raw["sessions"]

    def unchanged(self) -> set[str]:
        """Returns the tests that passed and whose fingerprints are unchanged."""
        files = PresentFiles()
        same = {
            session: Fingerprint(**common).is_same(files)
            for session, common in self._sessions.items()
        }
        found = set()
        for name, record in self._tests.items():
            if not record["passed"] or not same.get(record["session"]):
                continue
            if Fingerprint(**record["own"]).is_same(files):
                found.add(name)
        return found

    def update(self, notes: Notes, inputs: SessionInputs, began: float) -> None:
        """Adds the records of a session, and writes the file."""
        maker = _RecordMaker(notes, inputs, began)
        common = asdict(maker.common())
        session = _digest(json.dumps(common, sort_keys=True))
        self._sessions[session] = common
        for name, note in notes.tests.items():
            own = asdict(maker.own(name, note))
            self._tests[name] = {"passed": note.passed, "session": session, "own": own}
        needed = {record["session"] for record in self._tests.values()}
        sessions = {name: one for name, one in self._sessions.items() if name in needed}
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        beside = f"{self._path}.{os.getpid()}"
        written = {
            "version": _VERSION,
            "environment": environment(),
            "sessions": sessions,
            "tests": self._tests,
        }
        with open(beside, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(written, file)
        os.replace(beside, self._path)


class _RecordMaker:
    """Makes the records of the tests of one session."""

    def __init__(self, notes: Notes, inputs: SessionInputs, began: float) -> None:
        self._notes, self._inputs, self._began = notes, inputs, began
        self._files = PresentFiles()
        self._of_tests = {note.module for note in notes.tests.values()}

    def common(self) -> Fingerprint:
        """Returns the state of the inputs that all tests of the session share."""
        found = Fingerprint(files=self._states(self._inputs.before))
        modules = {*self._notes.loaded, *self._notes.before} - self._of_tests
        self._add(found, modules, [self._notes.before], everything=False)
        return found

    def own(self, name: str, note: TestNote) -> Fingerprint:
        """Returns the state of the other inputs of one test."""
        used = Used()
        used.join(self._inputs.tests.get(name, Used()))
        ran: list[Ran] = [note.ran]
        for fixture in note.fixtures:
            used.join(self._inputs.fixtures.get(fixture, Used()))
            ran.append(self._notes.fixtures.get(fixture, {}))
        found = Fingerprint(files=self._states(used))
        everything = used.forked or not note.complete
        modules = {path for one in ran for path in one} | {note.module}
        if everything:
            modules.update(self._notes.loaded)
        self._add(found, modules, ran, everything)
        return found

    def _add(self, found: Fingerprint, modules: set[str], ran: list[Ran], everything: bool) -> None:
        """Adds the modules, each with its functions that ran, or with all its functions."""
        for path in modules:
            source = self._files.source(path)
            if source is None or self._is_newer(path):
                found.known = False
                continue
            units = source.units
            if not everything:
                lines = {line for one in ran for line in one.get(path, ())}
                ran_here = (source.unit_at(line) for line in lines)
                units = tuple(unit for unit in ran_here if unit is not None)
            found.sources[path] = (source.rest, {unit.name: unit.digest for unit in units})

    def _is_newer(self, path: str) -> bool:
        """Returns true if a file may have changed after the session read it."""
        try:
            return os.stat(path).st_mtime >= self._began
        except OSError:
            return True

    def _states(self, used: Used) -> dict[str, tuple[str, str | None]]:
        return {path: (how, self._state(path, how)) for path, how in used.paths.items()}

    def _state(self, path: str, how: str) -> str | None:
        """Returns the state of a path, or ``None`` if it may have changed since its use."""
        if how == READ and os.path.isfile(path) and self._is_newer(path):
            return None
        return self._files.state(path, how)
