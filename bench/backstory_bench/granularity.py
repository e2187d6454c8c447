"""The page on granularities: the trade-offs paper's tables I and II, and those of bytes.

The figure of a row comes from measurements. Its words come from the way in which a method works.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from .byte_truth.command import built_engine, measured_bytes, read_bytes
from .byte_truth.tables import byte_tables
from .collectors.backstory import ENGINE
from .functions import IMPORT, TESTS, measured_rows, median_rates
from .paper_data import paper_table
from .real_programs import BEYOND
from .report import all_rows
from .workloads.sources import source

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
    "bytes": ("none", "bytes", "processes and children", "moved bytes: none in 15 of 18 cases (see below)"),
}
"""By mode: integration effort, granularity, scope, and false positives."""

PAPER_METHODS = {"strace": "strace", "llvmtrace": "LLVMTrace", "datatracker": "DataTracker"}
"""The paper's columns: files, functions, bytes."""

PAPER_INDEX = {"baseline": 720.8, "strace": 53.3, "llvmtrace": 257.8, "datatracker": 4.6}
"""The last line of the paper's table II. The operations above it are rounded."""

OURS = ("strace", "backstory", "hooks off", "hooks on", "sleds off", "sleds on", "bytes")

PAPER_ROWS: dict[str, tuple[str, str, str, str]] = {
    "strace": ("easy", "files", "processes and children", "many"),
    "llvmtrace": ("medium", "functions", "process, no dynamic libraries", "depend on the configured scope"),
    "datatracker": ("easy", "bytes", "processes and children", "negligible, tracks use of individual bytes"),
}
"""The same in the paper's table I."""

HEAD = ["Method", "Integration effort", "Granularity", "Scope", "False positives"]


def base_of(mode: str) -> str:
    """Returns the mode of the same compiler's program alone."""
    return "clang" if mode.startswith("sleds") else "none"


def properties(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the table, with the median slowdown of UnixBench if all methods were measured."""
    rates = median_rates(rows)
    costs: dict[str, float] = {}
    for mode in METHODS:
        base = base_of(mode)
        tests = [test for test, found in rates if found == mode and (test, base) in rates and test != "dhrystone"]
        slower = [rates[test, base] / rates[test, mode] for test in tests]
        if slower:
            costs[mode] = statistics.median(slower)
    head = [*HEAD, "Median slowdown"] if len(costs) == len(METHODS) else HEAD
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for mode, words in METHODS.items():
        cost = [f"{costs[mode]:.2f}"] if len(head) > len(HEAD) else []
        lines.append(f"| {' | '.join([mode.removesuffix(' on'), *words, *cost])} |")
    for name, words in PAPER_ROWS.items():
        cost = [f"{paper_slowdown(name):.2f}, index"] if len(head) > len(HEAD) else []
        lines.append(f"| {' | '.join([f'{PAPER_METHODS[name]} (paper)', *words, *cost])} |")
    return lines


def paper_rates() -> dict[str, dict[str, float]]:
    """Reads the paper's table II: the operations of each test by column."""
    lines = paper_table("paper_unixbench.csv")
    return {line["test"]: {name: float(line[name]) for name in line if name != "test"} for line in lines}


def paper_slowdown(name: str) -> float:
    """Returns the paper's index of the programs alone, divided by that of a column."""
    return PAPER_INDEX["baseline"] / PAPER_INDEX[name]


def beside_paper(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the paper's table II with the measured modes beside it.

    A cell is a rate divided by that of the program alone. The last line has the same of the index.
    """
    rates = median_rates(rows)
    modes = [mode for mode in OURS if any(found == mode for _, found in rates)]
    paper = paper_rates()
    head = [f"{name} (paper)" for name in PAPER_METHODS.values()] + modes
    lines = [f"| Test | {' | '.join(head)} |", "| --- |" + " ---: |" * len(head)]

    def ours(test: str, mode: str) -> float | None:
        base = base_of(mode)
        if (test, mode) not in rates or (test, base) not in rates:
            return None
        return rates[test, mode] / rates[test, base]

    def shown(value: float | None) -> str:
        return "–" if value is None else f"{value:.4f}" if value < 0.01 else f"{value:.3f}"

    others = [test for test in dict.fromkeys(test for test, _ in rates) if test in (*BEYOND, "dhrystone")]
    for test in [*TESTS, *others]:
        theirs = [paper[test][name] / paper[test]["baseline"] if test in paper else None for name in PAPER_METHODS]
        cells = [*map(shown, theirs), *(shown(ours(test, mode)) for mode in modes)]
        lines.append(f"| {test} | {' | '.join(cells)} |")
    cells = [shown(1 / paper_slowdown(name)) for name in PAPER_METHODS]
    # The ratio of two indices is the geometric mean of the ratios.
    for mode in modes:
        values = [ours(test, mode) for test in TESTS]
        whole = [value for value in values if value]
        cells.append(shown(statistics.geometric_mean(whole) if len(whole) == len(values) else None))
    lines.append(f"| Index, relative | {' | '.join(cells)} |")
    if (IMPORT, "strace") in rates:
        cells = [f"{rates[IMPORT, mode]:.2f}" if (IMPORT, mode) in rates else "–" for mode in modes]
        lines.append(f"| Import of a second, s | {' | '.join(['–'] * len(PAPER_METHODS) + cells)} |")
    return lines


def main_granularity(args: argparse.Namespace) -> int:
    """Makes all tables of the page: measures functions and bytes, or reads earlier results."""
    if not args.functions and source("byte-unixbench").directory is None:
        raise SystemExit(f"backstory-bench: {source('byte-unixbench').reason()}")
    functions: list[Mapping[str, object]] = []
    for path in args.functions or []:
        functions += all_rows(path)
    if not args.functions:
        # A mode of the functions records bytes, too.
        with built_engine(args.engine) as engine:
            os.environ[ENGINE] = str(engine)
            functions = measured_rows(args, args.out and f"{args.out}-functions.csv")
    found = [row for path in args.bytes or [] for row in read_bytes(Path(path))]
    if not args.bytes:
        found = measured_bytes(args, args.out and Path(f"{args.out}-bytes.csv"))
    tables = {"properties": properties(functions), "unixbench": beside_paper(functions), **byte_tables(found)}
    put_tables(Path(args.page), tables)
    print(f"renewed in {args.page}: {', '.join(tables)}")
    return 0


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
