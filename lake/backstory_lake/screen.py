"""One screen of links: those without files of the system, and the numbers of all others.

The order is that of an answer: the links nearest in time to the question come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from .printing import Answer, columns, cut, escaped, table, text

#: Where packages and the kernel keep files. `crates/workflow/tools.toml` is the definition.
SYSTEM = (
    *("/usr/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/bin/", "/sbin/", "/etc/", "/proc/"),
    *("/sys/", "/dev/", "/var/cache/", "/var/lib/apt/", "/var/lib/dpkg/", "/var/lib/pacman/"),
    *("/var/lib/rpm/", "/var/lib/texmf/"),
)
NOT_SYSTEM = ("/usr/local/",)
#: The links that are printed unless all are asked for.
ROWS = 40
#: The columns of a link for the terminal.
SHOWN = ("source_host", "source", "target_host", "target", "flow", "how", "certainty")
#: Their two that can be wider than a screen, and the least width of each.
ENDS, LEAST = (SHOWN.index("source"), SHOWN.index("target")), 24
#: Characters between two columns.
BETWEEN = 2


def is_system(path: str) -> bool:
    """True for a file of a package, or one that the kernel makes."""
    return path.startswith(SYSTEM) and not path.startswith(NOT_SYSTEM)


def links(answer: Answer, everything: bool, out: TextIO) -> None:
    """Prints links with hosts, paths and commands: one screen of them, or everything."""
    found = Links(answer, everything)
    table(narrowed(found.shown), out)
    for count, which in ((found.more, ""), (found.system, " with files of the system")):
        if count:
            noun = "link" if count == 1 else "links"
            print(f"{count} more {noun}{which}: `--all` prints all links", file=out)


def narrowed(shown: Answer) -> Answer:
    """The same links, with paths and commands that leave room for the other columns."""
    rows = [[escaped(text(cell)) for cell in row] for row in shown.rows]
    others = [
        max(map(len, column)) for at, column in enumerate(zip(shown.names, *rows)) if at not in ENDS
    ]
    room = columns() - sum(others) - BETWEEN * (len(shown.names) - 1)
    # A short end leaves its room to the other one.
    ends = [max((len(row[at]) for row in rows), default=0) for at in ENDS]
    half = max(room // 2, LEAST)
    most = [max(half, room - min(other, half)) for other in reversed(ends)]
    for row in rows:
        for at, width in zip(ENDS, most):
            row[at] = _end(row[at], width)
    return Answer(shown.names, (tuple(row) for row in rows))


def _end(cell: str, most: int) -> str:
    """A path with its last part, or a command with its first one, in so many columns."""
    if cell.startswith("/") and " " not in cell and len(cell) > most:
        return "…" + cell[len(cell) - most + 1 :]
    return cut(cell, most)


class Links:
    """The links of an answer, which are counted while they are read."""

    def __init__(self, answer: Answer, everything: bool) -> None:
        #: The links that are left out: those behind the first `ROWS`, and those of system files.
        self.more, self.system = 0, 0
        self._names, self._everything = answer.names, everything
        places = [answer.names.index(name) for name in SHOWN]
        rows = (tuple(row[at] for at in places) for row in self._kept(answer.rows))
        self.shown = Answer(list(SHOWN), rows)

    def _kept(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        printed = 0
        for row in rows:
            if self._everything:
                yield row
            elif self._touches_system(row):
                self.system += 1
            elif printed < ROWS:
                printed += 1
                yield row
            else:
                self.more += 1

    def _touches_system(self, row: tuple[Any, ...]) -> bool:
        link = dict(zip(self._names, row))
        ends = ((link["from_file"], link["source"]), (link["to_file"], link["target"]))
        return any(file is not None and is_system(path or "") for file, path in ends)
