"""The kinds of line: a registry of small templates.

A row is `row(NAME, TEMPLATE)`; adding a kind is one such call in the module of its language. In a
template, `{TYPE}` or `{TYPE2}` stands for a file: a source of that type (`SOURCES`). For `lines` it
is sometimes a result of an earlier line. `{out}` is a new result. `{newvar}` is a variable that is
set, and `{var}` is one that was set before. `{id}` is a number that no other line has. Other braces
stay as they are.

Goes in: nothing. Comes out: `ROWS`, by language. Rules for authors:

- A program that is executed twice from the same state leaves the same bytes (sort what you list).
- A result contains no absolute paths, clocks, process numbers or inodes.
- No process is left running.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field

SOURCES = (
    "lines",
    "num",
    "word",
    "flag",
    "code",
    "list",
    "names",
    "dir",
    "link",
    "dirlink",
    "maybe",
    "tool",
    "pytool",
    "module",
    "odd",
    "opt",
    "db",
    "tar",
    "mode",
    "json",
    "header",
    "config",
    "big",
    "huge",
    "pathdirs",
)


@dataclass
class Row:
    """One kind of line."""

    name: str
    lang: str
    text: str
    flags: list[str] = field(default_factory=list)


ROWS: dict[str, list[Row]] = {"sh": [], "bash": [], "python": [], "perl": [], "make": [], "ninja": []}


def row(name: str, text: str, lang: str = "sh", flags: str = "", needs: str = "") -> None:
    """Adds a kind of line. `needs` names programs without which the kind is left out.

    Flags: `rmw` (it rewrites a source), `src` (its files are sources, never results: it compares
    times), `slow`, `fails` (a maker fails on purpose). With `unseen`, looks at files are not
    recorded: `of` and `uses` do not know them.
    """
    if all(shutil.which(p) for p in needs.split()):
        ROWS[lang].append(Row(name, lang, text, flags.split()))


def rows_for(lang: str) -> list[Row]:
    """Returns the kinds that a program of this language can have."""
    from . import bash, callers, looks, make, ninja, perl, python, state, status, words  # noqa: F401

    if lang == "dash":
        return ROWS["sh"]
    if lang == "bash":
        return ROWS["sh"] + ROWS["bash"] + ROWS["bash"]
    return ROWS[lang]
