"""Records a pytest session, and remembers the inputs of its tests."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from .. import recording
from ..pytest_plugin import _NOTES
from . import inputs
from .notes import Notes, Project
from .records import TestRecords

if TYPE_CHECKING:
    import pytest


#: The end of the name of the file with the tests that need not run.
UNCHANGED = ".unchanged"


def records_path(config: pytest.Config) -> str:
    """The file with the fingerprints of the project's tests."""
    try:
        cache = os.fspath(config.getini("cache_dir"))
    except ValueError:
        # Without pytest's cache.
        cache = ".pytest_cache"
    cache = os.path.join(str(config.rootpath), cache)
    return os.path.join(cache, "backstory", "tests.json")


def record(config: pytest.Config) -> int:
    """Runs pytest with the same arguments, recorded. Returns its status."""
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="backstory-pytest-") as place:
        path = os.path.join(place, "notes.json")
        if config.getoption("backstory_select"):
            # The recorded process must not read the files that it compares.
            same = sorted(TestRecords(records_path(config)).unchanged())
            with open(f"{path}{UNCHANGED}", "w", encoding="utf-8") as file:
                json.dump(same, file)
        command = [sys.executable, "-m", "pytest", *config.invocation_params.args]
        run, status = recording.start(
            command,
            name="pytest",
            store=None,
            cwd=str(config.invocation_params.dir),
            env={**os.environ, _NOTES: path},
            # Without suppression the log has each read, so that a test has its own.
            options=["--suppress", "off"],
        )
        if not os.path.exists(path):
            return status
        notes = Notes.read(path)
    project = Project(str(config.rootpath))
    used = inputs.of_run(run, notes, project)
    TestRecords(records_path(config)).update(notes, used, began)
    return status
