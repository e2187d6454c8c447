"""The tasks of `tasks.c`: their inputs, and the input bytes that each output byte comes from.

As in `programs.py`, the dependence is of explicit flows, and is derived from the inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import groupby
from string import ascii_letters, digits

from .programs import Origin, Where

ROW = 8
MOST_ROWS = 62
Rows = list[bytes]
Truth = list[Origin]

INPUTS = [
    f"{name}.in"
    for name in ("permute", "filter", "sort", "join", "join.too", "sum", "base64", "compress", "encrypt")
]  # fmt: skip


def inputs(rows: int) -> dict[str, bytes]:
    """Files of rows: a key that is unique in its file, three letters, and four digits."""
    made, rng = dict[str, bytes](), random.Random(31)
    for name in INPUTS:
        keys = rng.sample(ascii_letters + digits, min(rows, MOST_ROWS))
        lines = [key + "".join(rng.choices("abmnxyz", k=3) + rng.choices(digits, k=4)) for key in keys]
        made[name] = "".join(lines).encode()
    # Strings of equal bytes, which the compressor shortens.
    size = len(made["compress.in"])
    made["compress.in"] = b"".join(bytes([rng.randrange(97, 123)]) * rng.randrange(1, 9) for _ in range(size))[:size]
    return made


def _rows(content: bytes) -> list[int]:
    return list(range(0, len(content), ROW))


def _copied(name: str, places: list[int]) -> Truth:
    return [{(name, at)} for at in places]


def permute(given: dict[str, bytes]) -> Truth:
    return _copied("permute.in", list(reversed(range(len(given["permute.in"])))))


def filter_rows(given: dict[str, bytes]) -> Truth:
    content = given["filter.in"]
    return _copied("filter.in", [row + k for row in _rows(content) if content[row + 1] > ord("m") for k in (1, 2, 3)])


def sort(given: dict[str, bytes]) -> Truth:
    content = given["sort.in"]
    rows = sorted(_rows(content), key=lambda row: content[row])
    return _copied("sort.in", [row + k for row in rows for k in range(ROW)])


def join(given: dict[str, bytes]) -> Truth:
    left, right = given["join.in"], given["join.too.in"]
    truth: Truth = []
    for ours in _rows(left):
        for theirs in _rows(right):
            if left[ours] == right[theirs]:
                truth += _copied("join.in", [ours + k for k in (1, 2, 3)])
                truth += _copied("join.too.in", [theirs + k for k in (4, 5, 6, 7)])
    return truth


def _groups(given: dict[str, bytes]) -> Truth:
    """The digits of each four rows."""
    rows = _rows(given["sum.in"])
    return [
        {("sum.in", row + k) for row in rows[first : first + 4] for k in (4, 5, 6, 7)}
        for first in range(0, len(rows), 4)
    ]  # fmt: skip


def total(given: dict[str, bytes]) -> Truth:
    return [group for group in _groups(given) for _ in range(2)]


def base64(given: dict[str, bytes]) -> Truth:
    triples = range(0, len(given["base64.in"]) // 3 * 3, 3)
    parts = ((0,), (0, 1), (1, 2), (2,))
    return [{("base64.in", at + k) for k in part} for at in triples for part in parts]


def compress(given: dict[str, bytes]) -> Truth:
    """A count is found by comparisons, and so has no explicit flow."""
    truth: Truth = []
    at = 0
    for _, equal in groupby(given["compress.in"]):
        truth += [set(), {("compress.in", at)}]
        at += len(list(equal))
    return truth


def encrypt(given: dict[str, bytes]) -> Truth:
    return [{("encrypt.in", k) for k in range(i - i % 8, i + 1)} for i in range(len(given["encrypt.in"]))]


def report(given: dict[str, bytes]) -> Truth:
    return list(_groups(given))


TASKS: dict[str, tuple[str, Callable[[dict[str, bytes]], Truth]]] = {
    "permute": ("permute", permute),
    "filter": ("filter rows", filter_rows),
    "sort": ("sort", sort),
    "join": ("join two files", join),
    "sum": ("aggregate: sum", total),
    "base64": ("base64", base64),
    "compress": ("compress: run lengths", compress),
    "encrypt": ("encrypt: chained blocks", encrypt),
    "report": ("what another function computed", report),
}
"""By the name of the output: the case's name, and its truth."""


def whole(given: dict[str, bytes], names: set[str]) -> Origin:
    """All bytes of these inputs."""
    found: set[Where] = set()
    for name in names:
        found |= {(name, at) for at in range(len(given[name]))}
    return found
