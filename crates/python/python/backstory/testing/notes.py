"""The notes that the recorded pytest passes to the pytest that started it.

In: the code objects that ran in each test. Out: a JSON file. File names are absolute.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from types import CodeType

#: For each file, the first lines of the functions that ran.
Ran = dict[str, list[int]]


@dataclass
class TestNote:
    """The notes about one test."""

    ran: Ran = field(default_factory=dict)
    loaded: list[str] = field(default_factory=list)
    """Modules that were loaded during the test."""
    fixtures: list[str] = field(default_factory=list)
    """Shared fixtures that the test used."""
    module: str = ""
    """The file of the test."""
    passed: bool = True
    complete: bool = True
    """False if functions may have run without being traced."""


@dataclass
class Notes:
    """The notes about a session."""

    pid: int = 0
    tests: dict[str, TestNote] = field(default_factory=dict)
    fixtures: dict[str, Ran] = field(default_factory=dict)
    """The functions that ran while a shared fixture was set up."""
    before: Ran = field(default_factory=dict)
    """The functions that ran outside tests."""
    loaded: list[str] = field(default_factory=list)
    """All modules of the project that were loaded."""

    def write(self, path: str) -> None:
        """Writes the notes to a file."""
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(asdict(self), file)

    @staticmethod
    def read(path: str) -> Notes:
        """Reads the notes from a file."""
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            raw = json.load(file)
        raw["tests"] = {name: TestNote(**note) for name, note in raw["tests"].items()}
        return Notes(**raw)


class Project:
    """Distinguishes the project's files from those of Python and of installed distributions."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        outside = {sys.prefix, sys.base_prefix, sys.exec_prefix}
        self._outside = tuple(os.path.realpath(place) + os.sep for place in outside)

    def has(self, path: str) -> bool:
        """Returns true for a file below the project's directory that belongs to no installation."""
        inside = path.startswith(self.root + os.sep)
        installed = any(
            path.startswith(place) and len(place) > len(self.root) for place in self._outside
        )
        return inside and not installed and f"{os.sep}site-packages{os.sep}" not in path

    def is_installed(self, path: str) -> bool:
        """Returns true for a file of Python or of an installed distribution."""
        return f"{os.sep}site-packages{os.sep}" in path or any(
            path.startswith(place) for place in self._outside if place != "/usr/"
        )

    def modules(self) -> set[str]:
        """Returns the source files of the project's modules that are loaded now."""
        found = set()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.endswith(".py"):
                path = os.path.realpath(file)
                if self.has(path):
                    found.add(path)
        return found

    def ran(self, codes: Iterable[CodeType]) -> Ran:
        """Returns the functions of the project among ``codes``, by file and first line."""
        found: dict[str, set[int]] = {}
        for code in codes:
            name = code.co_filename
            # The code of a module is the part outside its functions.
            if name.startswith("<") or code.co_name == "<module>":
                continue
            path = os.path.realpath(name)
            if self.has(path):
                found.setdefault(path, set()).add(code.co_firstlineno)
        return {path: sorted(lines) for path, lines in found.items()}
