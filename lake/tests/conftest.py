"""Fixtures: a working directory with a store, and a lake.

The program is the one that `BACKSTORY_PROGRAM` names.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backstory_lake import cli, questions, shipping
from backstory_lake.lake import Lake
from backstory_lake.privacy import Config
from backstory_lake.program import Program
from backstory_lake.questions import Limits, Question

if TYPE_CHECKING:
    from hunter import Hunter

PACKAGE = Path(__file__).resolve().parents[1]

#: On a busy machine an answer takes minutes. One that never comes still ends its test.
LIMITS = Limits(seconds=900)
questions.USUAL = LIMITS


class Machine:
    """A working directory, and a store of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = directory.parent / f"{directory.name}.store"
        directory.mkdir()

    def record(self, script: str) -> str:
        """Records a line of the shell. Returns the run's id."""
        self.program("record", "--wait", "--", "sh", "-c", f"{script}; true")
        return str(self.rows("SELECT run FROM runs ORDER BY started_ns DESC LIMIT 1")[0]["run"])

    def program(self, *words: str) -> str:
        """Runs the program, and returns its output."""
        ended = subprocess.run(
            [os.environ["BACKSTORY_PROGRAM"], *words],
            capture_output=True,
            cwd=self.directory,
            env=os.environ | {"BACKSTORY_STORE": str(self.store)},
            check=False,
        )
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The answer of the store."""
        rows: list[dict[str, Any]] = json.loads(self.program("query", "--json", sql))
        return rows

    def ship(
        self, lake: Path, *runs: str, config: Config | None = None, forget: bool = False
    ) -> shipping.Shipped:
        """Ships runs into a lake."""
        program = Program(str(self.store))
        opened = Lake.open(str(lake), True)
        return shipping.ship(program, opened, list(runs), config or Config(), forget)


def answer(lake: Path, sql: str) -> list[tuple[Any, ...]]:
    """The answer of a lake."""
    return answers(lake, sql)[0]


def answers(lake: Path, *questions: str) -> list[list[tuple[Any, ...]]]:
    """The answers of one snapshot of a lake."""
    asked = Question(Lake.open(str(lake)), LIMITS)
    found = []
    for sql in questions:
        with asked.rows(sql) as rows:
            found.append(rows.fetchall())
    return found


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in this process, which saves the time for the libraries' imports."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(words)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def random_line(choice: random.Random) -> str:
    """A line of the shell that reads and changes some of six files."""
    a, b, c = (choice.choice("abcdef") for _ in range(3))
    forms = [
        f"cat {a} {b} > {c}.new; mv {c}.new {c}",
        f"cp {a} {b}",
        f"cat {a} >> {b}",
        f"sort -o {a} {b}",
        f"ln -f {a} {b}.link; cat {b}.link > {c}",
        f"cat {a} | tr 0-9 1-90 | tee {b} > {c}.tee; rm {c}.tee",
        f"(cat {a}; cat {b}) > {c}.tmp && cp {c}.tmp {c}",
        f"echo {choice.random()} > {a}; test -e {b} && wc {b} >> {a}",
    ]
    return choice.choice(forms) + " 2>/dev/null"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Lists what was skipped, and why. `scripts/test` repeats these lines at its end."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = {(one.location[0], one.longrepr[2].removeprefix("Skipped: ")) for one in skipped}
    for file, reason in sorted(reasons):
        terminalreporter.write_line(f"SKIPPED: lake/{file}: {reason}")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with two files."""
    made = Machine(tmp_path / "work")
    (made.directory / "in").write_text("b\na\n")
    return made


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The directory of a lake that does not exist yet."""
    return tmp_path / "lake"


@pytest.fixture
def hunter(tmp_path: Path) -> Hunter:
    """The program with the package beside it."""
    from hunter import Hunter

    return Hunter(tmp_path / "hunter")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a few recorded runs."""
    from backstory_fleet import corpus

    directory = tmp_path_factory.mktemp("corpus")
    corpus.record(directory / "work", directory / "lake", quick=True)
    return directory / "lake"
