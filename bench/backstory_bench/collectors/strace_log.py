"""Reads a log of `strace -f`: used files, process starts, and the number of each syscall.

The reader makes paths absolute. It follows the working directory of each process and the
directories that it opened. A path relative to a directory that the log does not name is left out.
With `strace -y` the log has the paths of descriptors.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .base import Edges, Files, Log

_CALL = re.compile(r"^(?:(\d+) +)?(?:[\d:.]+ +)?(\w+)\((.*)\) += +(-?\w+)")
_UNFINISHED = re.compile(r"^(\d+) +(?:[\d:.]+ +)?(\w+)\((.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +(?:[\d:.]+ +)?<\.\.\. (\w+) resumed>(.*)$")
_STRING = re.compile(r'(?:(AT_FDCWD|\d+)(?:<((?:[^>\\]|\\.)*)>)?, )?"((?:[^"\\]|\\.)*)"')
_OCTAL = re.compile(rb"\\([0-7]{1,3}|x[0-9a-f]{2}|.)")
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}

USES = {
    "open": 1, "openat": 1, "openat2": 1, "creat": 1, "execve": 1, "execveat": 1, "unlink": 1, "unlinkat": 1, "rename": 2,
    "renameat": 2, "renameat2": 2, "link": 2, "linkat": 2, "truncate": 1,
}  # fmt: skip
"""Calls that use a file, with their number of paths.

The target of symlink is a text, not a file.
"""
STARTS = {"clone", "clone3", "fork", "vfork"}


def unescape(text: str) -> str:
    """Decodes a path from the C escapes that strace prints."""

    def one(match: re.Match[bytes]) -> bytes:
        body = match.group(1)
        if body[:1].isdigit():
            return bytes([int(body, 8) & 0xFF])
        if body[:1] == b"x" and len(body) == 3:
            return bytes([int(body[1:], 16)])
        return _ESCAPES.get(body, body)

    return os.fsdecode(_OCTAL.sub(one, text.encode("utf-8", "surrogateescape")))


def calls(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yields (pid, call, arguments, result) of every finished call, in order of finishing."""
    waiting: dict[str, tuple[str, str]] = {}
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if match := _UNFINISHED.match(line):
                waiting[match.group(1)] = (match.group(2), match.group(3))
                if match.group(2) in ("execve", "execveat"):
                    continue
            elif match := _RESUMED.match(line):
                name, head = waiting.pop(match.group(1), (match.group(2), ""))
                if whole := _CALL.match(f"{match.group(1)} {name}({head}{match.group(3)}"):
                    yield whole.group(1), name, whole.group(3), whole.group(4)
            elif match := _CALL.match(line):
                yield match.group(1) or "0", match.group(2), match.group(3), match.group(4)


class _View:
    """The state of one process: its working directory, its open directories, its program."""

    def __init__(self, cwd: str, program: str) -> None:
        self.cwd, self.program, self.descriptors = cwd, program, dict[str, str]()

    def copy(self) -> _View:
        other = _View(self.cwd, self.program)
        other.descriptors = dict(self.descriptors)
        return other

    def absolute(self, base: str, shown: str, text: str) -> str | None:
        path = unescape(text)
        if path.startswith("/"):
            return os.path.normpath(path)
        start = unescape(shown) if shown else self.cwd if base in ("", "AT_FDCWD") else self.descriptors.get(base)
        return os.path.normpath(os.path.join(start, path)) if start else None


def read(path: Path, cwd: str | None = None) -> Log:
    """Reads used files and process starts.

    `cwd` is the directory in which the command started. The default is in the file `cwd` beside
    the log.
    """
    marker = path.with_name("cwd")
    start = cwd or (marker.read_text() if marker.exists() else "/")
    views: dict[str, _View] = {}
    files: Files = set()
    edges: Edges = set()
    parents: dict[str, str] = {}
    for pid, name, arguments, result in calls(path):
        view = views.setdefault(pid, _View(start, ""))
        if result.startswith("-") or result == "?":
            continue
        if name in STARTS:
            child = views.get(result)
            if child is not None and child.program and view.program:
                edges.add((view.program, child.program))
            elif "CLONE_THREAD" not in arguments and view.program:
                parents[result] = view.program
            views[result] = _joined(view, child)
            continue
        paths = [
            p for p in (view.absolute(b, s, t) for b, s, t in _STRING.findall(arguments)[: USES.get(name, 1)]) if p
        ]
        _follow(view, name, paths, result, arguments)
        if name in USES and "O_DIRECTORY" not in arguments:
            files.update(paths)
        if name in ("execve", "execveat") and paths:
            before = parents.pop(pid, "") or view.program
            view.program = os.path.basename(paths[0])
            if before:
                edges.add((before, view.program))
    return Log(files, edges)


def _joined(parent: _View, child: _View | None) -> _View:
    """Derives a child's view from its parent's, and keeps the changes that the child made
    before.
    """
    view = parent.copy()
    if child is not None:
        view.program = child.program or view.program
        view.cwd = child.cwd if child.cwd != "/" else view.cwd
        view.descriptors |= child.descriptors
    return view


def _follow(view: _View, name: str, paths: list[str], result: str, arguments: str) -> None:
    if name == "chdir" and paths:
        view.cwd = paths[0]
    elif name == "fchdir" and arguments.split("<")[0] in view.descriptors:
        view.cwd = view.descriptors[arguments.split("<")[0]]
    elif name in ("open", "openat", "openat2") and paths:
        view.descriptors[result.split("<")[0]] = paths[0]


def count(path: Path) -> Counter[str]:
    """Counts the calls by name, including failed ones."""
    return Counter(name for _, name, _, _ in calls(path))
