"""The commands `origin`, `exfil` and `touched`, which `backstory ... --lake` executes.

Exit status 1: nothing was found.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from typing import Any

from . import places, rounds, ways
from .engine import Duck
from .lake import Lake
from .printing import Answer, columns, cut, escaped, json_array, moment, text
from .questions import add_limits, chosen_limits

#: The least columns of a shortened command.
LEAST = 16


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
    add_limits(made)
    made.add_argument("subject", metavar=subject)
    return made


def _ends(given: argparse.Namespace) -> int:
    way = rounds.Way(given.direction, None, given.possible)
    duck = Duck(Lake.open(given.lake), chosen_limits(given))
    with closing(duck), duck.bounded():
        found = places.ends(duck, given.subject, way)
    if given.json:
        return _print(found)
    addresses = len({row["address"] for row in found})
    verb = "came from" if given.direction == "back" else "can have been sent to"
    many = "1 address" if addresses == 1 else f"{addresses} addresses"
    many = many if found else "no recorded address"
    print(f"{escaped(text(given.subject))}: content {verb} {many}")
    for row in found:
        names = f" ({', '.join(row['names'])})" if row["names"] else ""
        moved = ""
        if row["sent"] is not None:
            moved = f", sent {row['sent']:,} bytes, received {row['received']:,}"
        _line(row, row["time_ns"], f"{row['address']}{names}{moved}")
        for step in row["way"]:
            _step(step, row["host"], given.direction)
    return int(not found)


def _touched(given: argparse.Namespace) -> int:
    duck = Duck(Lake.open(given.lake), chosen_limits(given))
    with closing(duck), duck.bounded():
        found = places.touches(duck, given.subject, given.lookups)
    shown = found[: given.most]
    if given.json:
        return _print(shown)
    if not found:
        print(f"{escaped(text(given.subject))}: no recorded process touched it")
    for row in shown:
        possible = " (possible)" if row["certainty"] == "possible" else ""
        _line(row, row["ended_ns"], f"{_words(row)}{possible}")
    if left := len(found) - len(shown):
        print(f"… and {left} before these (-n N shows more)")
    return int(not found)


def _words(row: places.Row) -> str:
    """The acts of a process. Look-ups say nothing beside another act."""
    named = [f"{one['how']} {side} {one['path']}" for side in ("to", "from") for one in row[side]]
    acts = [one for one in row["access"] if one not in places.LOOKUPS]
    return ", ".join([*acts, *named]) or ", ".join(row["access"])


def _step(step: ways.Step, host: str, direction: str) -> None:
    """A step of a way, from the taken file to the made one."""
    ends = [step["from"], step["to"]][:: -1 if direction == "back" else 1]
    place = "" if step["host"] == host else f"  {step['host']}"
    flow = " > ".join(escaped(text(end)) if end else "…" for end in ends)
    rest = f"{escaped(place)}  run {step['run']}  {flow}"
    print(f"    {_shortened(step['command'], len(rest) + 4)}{rest}")


def _shortened(command: str, others: int) -> str:
    """A command, shortened if the line with so many other characters is wider than the screen."""
    return cut(escaped(text(command)), max(columns() - others, LEAST))


def _print(found: list[places.Row]) -> int:
    names = list(found[0]) if found else []
    json_array(Answer(names, (tuple(row.values()) for row in found)), sys.stdout)
    return int(not found)


def _line(row: places.Row, ns: int, what: str) -> None:
    cells = (moment(ns), row["host"], f"run {row['run']}", what)
    line = "  ".join(escaped(text(cell)) for cell in cells)
    print(f"{line}  {_shortened(row['command'], len(line) + 2)}")
