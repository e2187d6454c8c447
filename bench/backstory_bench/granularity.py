"""The properties of methods that record provenance: the trade-offs paper's table I.

The figure of a row comes from measurements. Its words come from the way in which a method works.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

METHODS: dict[str, tuple[str, str, str, str]] = {
    "strace": ("none", "files", "processes and children", "each output has every earlier input"),
    "backstory": ("none", "files", "processes and children", "each output has every earlier input"),
    "hooks on": (
        "recompile with `backstory cc`",
        "functions",
        "compiled programs and libraries",
        "inputs of functions that were active, or that read before",
    ),
    "sleds on": (
        "recompile with `backstory cc`",
        "functions",
        "compiled programs",
        "as above",
    ),
    "bytes": ("none", "bytes", "processes and children", "moved bytes: none in 15 of 17 cases (see below)"),
}
"""By mode: integration effort, granularity, scope, and false positives."""

HEAD = ["Method", "Integration effort", "Granularity", "Scope", "False positives"]


def properties(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the table, with the median slowdown of UnixBench if all methods were measured."""
    rates: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        rates.setdefault((str(row["test"]), str(row["mode"])), []).append(float(str(row["rate"])))
    costs: dict[str, float] = {}
    for mode in METHODS:
        base = "clang" if mode.startswith("sleds") else "none"
        tests = [test for test, found in rates if found == mode and (test, base) in rates and test != "dhrystone"]
        slower = [statistics.median(rates[test, base]) / statistics.median(rates[test, mode]) for test in tests]
        if slower:
            costs[mode] = statistics.median(slower)
    head = [*HEAD, "Median slowdown"] if len(costs) == len(METHODS) else HEAD
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for mode, words in METHODS.items():
        cost = [f"{costs[mode]:.2f}"] if len(head) > len(HEAD) else []
        lines.append(f"| {' | '.join([mode.removesuffix(' on'), *words, *cost])} |")
    return lines


def put_tables(page: Path, tables: Mapping[str, Sequence[str]]) -> None:
    """Replaces the tables of a page, each between the comments `NAME` and `end of NAME`."""
    text = page.read_text()
    for name, lines in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"backstory-bench: {page} has no place for the table {name}")
        text = f"{before}{begin}\n{chr(10).join(lines)}\n\n{end}{after}"
    page.write_text(text)
