"""The commands `origin`, `exfil` and `touched`, which `backstory ... --lake` executes.

Exit status 1: nothing was found.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from typing import Any

from . import places, rounds
from .engine import Duck
from .lake import Lake
from .printing import Answer, escaped, json_array, moment, text
from .questions import Limits


def add(commands: Any) -> None:
    """Adds the commands to a parser."""
    for name, what, direction in (
        ("origin", "the addresses that a file's content came from", "back"),
        ("exfil", "the addresses that a file's content can have been sent to", "forth"),
    ):
        asked = _command(commands, name, what, "PATH")
        asked.add_argument("--possible", action="store_true", help="also what was not observed")
        asked.set_defaults(run=_ends, direction=direction)
    asked = _command(commands, "touched", "the processes that used a file or an address", "SUBJECT")
    asked.add_argument("--lookups", action="store_true", help="also those that only looked it up")
    asked.add_argument("--most", type=int, metavar="N", help="at most the N latest")
    asked.set_defaults(run=_touched)


def _command(commands: Any, name: str, what: str, subject: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=what)
    made.add_argument("--lake", required=True, metavar="LAKE")
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument("--timeout", type=int, default=60, metavar="SECONDS", help="0: no bound")
    made.add_argument("--memory", type=int, default=512, metavar="MB", help="most memory")
    made.add_argument("subject", metavar=subject)
    return made


def _ends(given: argparse.Namespace) -> int:
    way = rounds.Way(given.direction, None, given.possible)
    duck = Duck(Lake.open(given.lake), Limits(given.timeout, given.memory))
    with closing(duck), duck.bounded():
        found = _read(duck.ask(places.ends(duck, given.subject, way)))
    if given.json:
        return _print(found)
    addresses = len({row["address"] for row in found})
    verb = "came from" if given.direction == "back" else "can have been sent to"
    many = "1 address" if addresses == 1 else f"{addresses} addresses"
    print(f"{escaped(given.subject)}: content {verb} {many if found else 'no recorded address'}")
    for row in found:
        _line(row, row["started_ns"], row["address"])
    return int(not found)


def _touched(given: argparse.Namespace) -> int:
    duck = Duck(Lake.open(given.lake), Limits(given.timeout, given.memory))
    with closing(duck), duck.bounded():
        found = _read(duck.ask(places.touches(duck, given.subject, given.lookups)))
    shown = found[: given.most]
    if given.json:
        return _print(shown)
    for row in shown:
        possible = " (possible)" if row["certainty"] == "possible" else ""
        _line(row, row["ended_ns"], f"{row['access']}{possible}")
    if left := len(found) - len(shown):
        print(f"… and {left} before these (-n N shows more)")
    return int(not found)


def _read(answer: Answer) -> list[dict[str, Any]]:
    return [dict(zip(answer.names, row)) for row in answer.rows]


def _print(found: list[dict[str, Any]]) -> int:
    names = list(found[0]) if found else []
    json_array(Answer(names, (tuple(row.values()) for row in found)), sys.stdout)
    return int(not found)


def _line(row: dict[str, Any], ns: int, what: str) -> None:
    cells = (moment(ns), row["host"], f"run {row['run']}", what, row["command"])
    print("  ".join(escaped(text(cell)) for cell in cells))
