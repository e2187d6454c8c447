"""Records a pytest session, and stores the inputs of its tests."""

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


#: The suffix of the file that lists the unchanged tests.
UNCHANGED = ".unchanged"


def records_path(config: pytest.Config) -> str:
    """Returns the path of the file with the fingerprints of the project's tests."""
    try:
        cache = os.fspath(config.getini("cache_dir"))
    except ValueError:
        # The cache plug-in of pytest is disabled.
        cache = ".pytest_cache"
    cache = os.path.join(str(config.rootpath), cache)
    return os.path.join(cache, "backstory", "tests.json")


def record(config: pytest.Config) -> int:
    """Runs pytest with the same arguments under the recorder. Returns its exit status."""
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="backstory-pytest-") as directory:
        path = os.path.join(directory, "notes.json")
        if config.getoption("backstory_select"):
            # The comparison happens in this process, because its reads must not be recorded.
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
            # Without suppression the log has every read, so that each test has its own reads.
            options=["--suppress", "off"],
        )
        if not os.path.exists(path):
            return status
        notes = Notes.read(path)
    project = Project(str(config.rootpath))
    used = inputs.of_run(run, notes, project)
    TestRecords(records_path(config)).update(notes, used, began)
    return status
