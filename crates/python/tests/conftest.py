"""Fixtures: the package of this tree, with the program and the extension module of cargo's build.

The tests run with any Python from 3.10 on. `scripts/test-python` finds the interpreters, builds the
package, and names the program in `BACKSTORY_PROGRAM`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


class Workspace:
    """A working directory, and a store of its own."""

    def __init__(self, directory: Path, program: str) -> None:
        self.directory = directory
        self.program = program
        self.store = directory.parent / "store"

    def json_of(self, *words: str, status: int = 0) -> Any:
        """Runs the program and returns its output, parsed as JSON."""
        command = [self.program, *words, "--json", "--store", str(self.store)]
        ended = subprocess.run(command, capture_output=True, cwd=self.directory, check=False)
        assert ended.returncode == status, ended.stderr.decode()
        return json.loads(ended.stdout)

    def text_of(self, *words: str) -> str:
        """Runs the program and returns its output for people."""
        command = [self.program, *words, "--store", str(self.store)]
        ended = subprocess.run(command, capture_output=True, cwd=self.directory, check=True)
        return ended.stdout.decode()

    def fails(self, *words: str) -> str:
        """Runs the program, which must fail, and returns its message without the prefix."""
        command = [self.program, *words, "--store", str(self.store)]
        ended = subprocess.run(command, capture_output=True, cwd=self.directory, check=False)
        assert ended.returncode != 0
        return ended.stderr.decode().strip().removeprefix("backstory: ")

    def python(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs this Python in the working directory."""
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            cwd=self.directory,
            env={**os.environ, "BACKSTORY_STORE": str(self.store), **env},
            check=False,
        )


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A new working directory, which is the current directory."""
    from backstory import _program

    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    found = Workspace(directory.resolve(), _program.program())
    monkeypatch.setenv("BACKSTORY_STORE", str(found.store))
    return found


@pytest.fixture
def recorded(workspace: Workspace) -> Workspace:
    """A working directory with the run of a small pipeline, whose contents are stored."""
    import backstory as bs

    (workspace.directory / "raw.csv").write_text("name,number\nb,2\na,1\nc,3\n")
    command = "sort raw.csv > sorted.csv; grep -v c < sorted.csv | tee few.csv > /dev/null"
    bs.run(["sh", "-c", command], name="pipeline")
    workspace.text_of("index", "--wait")
    return workspace
