"""The package as it is in this tree, with the program and the extension module of cargo's build.

The tests run in any Python from 3.10 on: `scripts/test-python` looks for them. The directory of the
built package is in `BACKSTORY_STAGED`; the package of a wheel is used if that is not set.
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


class Place:
    """A directory for work, and a store of its own."""

    def __init__(self, directory: Path, program: str) -> None:
        self.directory = directory
        self.program = program
        self.store = directory.parent / "store"

    def tell(self, *words: str, status: int = 0) -> Any:
        """What the command line prints as JSON."""
        command = [self.program, *words, "--json", "--store", str(self.store)]
        ended = subprocess.run(command, capture_output=True, cwd=self.directory, check=False)
        assert ended.returncode == status, ended.stderr.decode()
        return json.loads(ended.stdout)

    def prints(self, *words: str) -> str:
        """What the command line prints for people."""
        command = [self.program, *words, "--store", str(self.store)]
        ended = subprocess.run(command, capture_output=True, cwd=self.directory, check=True)
        return ended.stdout.decode()

    def fails(self, *words: str) -> str:
        """The line that the command line fails with, without its name."""
        command = [self.program, *words, "--store", str(self.store)]
        ended = subprocess.run(command, capture_output=True, cwd=self.directory, check=False)
        assert ended.returncode != 0
        return ended.stderr.decode().strip().removeprefix("backstory: ")

    def python(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs this Python here."""
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            cwd=self.directory,
            env={**os.environ, "BACKSTORY_STORE": str(self.store), **env},
            check=False,
        )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place in which the current directory is."""
    from backstory import _program

    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    found = Place(directory.resolve(), _program.program())
    monkeypatch.setenv("BACKSTORY_STORE", str(found.store))
    return found


@pytest.fixture
def recorded(place: Place) -> Place:
    """A place with the run of a small pipeline."""
    import backstory as bs

    (place.directory / "raw.csv").write_text("name,number\nb,2\na,1\nc,3\n")
    command = "sort raw.csv > sorted.csv; grep -v c < sorted.csv | tee few.csv > /dev/null"
    bs.run(["sh", "-c", command], name="pipeline")
    return place
