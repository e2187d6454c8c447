"""The part of the plug-in that runs inside the recorded pytest."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from typing import Any

import pytest

from .. import _marks
from .notes import Notes, Project, Ran, TestNote
from .session import UNCHANGED
from .tracing import tracer


def _join(all_: Ran, new: Ran) -> None:
    for path, lines in new.items():
        all_[path] = sorted({*all_.get(path, ()), *lines})


class SessionObserver:
    """Marks tests and shared fixtures as activities, and notes the functions that ran in them."""

    def __init__(self, config: pytest.Config, path: str) -> None:
        self._path = path
        self._select = bool(config.getoption("backstory_select"))
        self._project = Project(str(config.rootpath))
        self._notes = Notes(pid=os.getpid())
        self._test: TestNote | None = None
        self._tracer = tracer()
        self._tracer.start()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselects the tests whose inputs are unchanged."""
        if not self._select:
            return
        with open(f"{self._path}{UNCHANGED}", encoding="utf-8") as file:
            same = set(json.load(file))
        left = [item for item in items if item.nodeid in same]
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if item.nodeid not in same]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Runs a test as an activity."""
        _join(self._notes.before, self._project.ran(self._tracer.taken()))
        loaded = self._project.modules()
        note = TestNote(module=os.path.realpath(item.path))
        self._notes.tests[item.nodeid] = note
        self._test = note
        _marks.begin(["test", item.nodeid])
        try:
            yield
        finally:
            _marks.end()
            self._test = None
            _join(note.ran, self._project.ran(self._tracer.taken()))
            note.loaded = sorted(self._project.modules() - loaded)
            note.complete = self._tracer.complete
            note.fixtures = sorted(set(note.fixtures) | set(self._shared(item)))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: Any, request: pytest.FixtureRequest
    ) -> Generator[None, Any, None]:
        """Sets up a shared fixture as an activity, on which all tests that use it depend."""
        if fixturedef.scope == "function":
            yield
            return
        key = _key(fixturedef)
        outer = self._project.ran(self._tracer.taken())
        _join(self._test.ran if self._test else self._notes.before, outer)
        _marks.begin(["fixture", key])
        try:
            yield
        finally:
            _marks.end()
            ran = self._project.ran(self._tracer.taken())
            _join(self._notes.fixtures.setdefault(key, {}), ran)

    def _shared(self, item: pytest.Item) -> list[str]:
        """Returns the shared fixtures that a test used, directly or through other fixtures."""
        info = getattr(item, "_fixtureinfo", None)
        found = []
        for definitions in getattr(info, "name2fixturedefs", {}).values():
            found += [_key(one) for one in definitions if one.scope != "function"]
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes whether a test failed."""
        note = self._notes.tests.get(report.nodeid)
        if note is not None and report.failed:
            note.passed = False

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Writes the notes to the file."""
        _join(self._notes.before, self._project.ran(self._tracer.taken()))
        self._tracer.stop()
        self._notes.loaded = sorted(self._project.modules())
        self._notes.write(self._path)


def _key(fixturedef: Any) -> str:
    return f"{fixturedef.baseid}::{fixturedef.argname}"
