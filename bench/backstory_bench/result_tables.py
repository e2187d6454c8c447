"""Renews tables of docs/performance.md, docs/design/store.md and docs/benchmark/profiles.md.

The results are in `bench/runs`.

The name of a file says what it has: `2026-11-27-durability.csv` has the results of `durability`.
Each table ends with a line that names its files, so that a reader finds the figures behind it. The
tables hold medians over rounds, and the pages say by which command they were measured.
"""

from __future__ import annotations

import argparse
import re
import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import durability, flushes, inspected, log_forms, mounted, profiles
from .granularity import put_tables
from .report import all_rows
from .stats import paired
from .tpcc import TRANSACTIONS, has_pauses

Rows = list[dict[str, str]]
Value = Callable[[Mapping[str, str]], float]

STORE, PERFORMANCE, PROFILES = "docs/design/store.md", "docs/performance.md", "docs/benchmark/profiles.md"
NAME = re.compile(r"\d{4}-\d{2}-\d{2}-([a-z0-9-]+)\.csv")
ENGINES = {
    "sqlite": "SQLite",
    "lsm": "`lsm`",
    "redb": "`redb`",
    "berkeleydb": "`berkeleydb`",
    "rocksdb": "`rocksdb`",
    "postgresql": "`postgresql`",
}
LEVELS = {3: "three levels", 4: "four levels", 5: "five levels"}
SERVERS = {"postgres": "PostgreSQL 15", "mariadb": "MariaDB 10.11"}
DURABLE = {
    "sqlite": "SQLite, small transactions",
    "mail1": "mail, deliveries by 1 thread",
    "mail": "mail, deliveries by 8 threads",
    "postmark": "Postmark",
}
BEFORE = {
    "nothing": "nothing",
    "append": "append 500 bytes to the log, `fdatasync`",
    "within": "the same within a file that is long enough already",
    "unchanged": "`fdatasync` of a log without changes",
    "range": "`sync_file_range` of the 500 bytes",
}


def line(cells: Sequence[str]) -> str:
    """Returns a line of a table."""
    return f"| {' | '.join(cells)} |"


def head(first: str, others: Sequence[str]) -> list[str]:
    """Returns the first two lines of a table with numbers in all columns but the first."""
    return [line([first, *others]), line(["---", *["---:"] * len(others)])]


def engines(rows: Rows) -> list[str]:
    """Returns the engines that were measured."""
    measured = {row["engine"] for row in rows}
    return [engine for engine in ENGINES if engine in measured]


def of_engines(label: str, rows: Rows, of: Sequence[str], form: str, value: Value) -> str:
    """Returns a line with the median of each engine, or an empty cell without results."""
    cells = []
    for engine in of:
        own = [value(row) for row in rows if row["engine"] == engine]
        cells.append(form.format(statistics.median(own)) if own else "")
    return line([label, *cells])


def bytes_per_edge(row: Mapping[str, str]) -> float:
    """Returns the bytes of the database for each edge."""
    return int(row["graph_bytes"]) / int(row["edges"])


def edges_per_second(row: Mapping[str, str]) -> float:
    """Returns the edges that were taken in each second."""
    return int(row["edges"]) / float(row["ingest_s"])


def seconds(field: str) -> Value:
    """Returns the function that reads a column with seconds."""
    return lambda row: float(row[field])


def by_levels(rows: Rows) -> list[str]:
    """Returns the table of `engines`: the paper's figures 6 and 9."""
    of = engines(rows)
    lines = head("", [ENGINES[engine] for engine in of])
    for levels in sorted({int(row["levels"]) for row in rows}):
        own = [row for row in rows if int(row["levels"]) == levels]
        word = LEVELS.get(levels, f"{levels} levels")
        log = int(own[0]["log_bytes"]) / 1e6
        questions = f"{word}: 50 questions"
        lines.append(of_engines(f"{word}, {log:.1f} MB: edges per second", own, of, "{:,.0f}", edges_per_second))
        lines.append(of_engines(questions, own, of, "{:.2f} s", lambda row: float(row["questions_s"].split()[-1])))
        # Older results have no such column.
        if "questions_cpu_s" in rows[0]:
            lines.append(of_engines(f"{word}: their processor time", own, of, "{:.2f} s", seconds("questions_cpu_s")))
        lines.append(of_engines(f"{word}: bytes per edge", own, of, "{:,.1f}", bytes_per_edge))
    return lines


def by_memory(rows: Rows) -> list[str]:
    """Returns the table of ingestion by size of memory: the paper's figure 7."""
    of = engines(rows)
    lines = head("memory", [ENGINES[engine] for engine in of])
    for memory in sorted({int(row["memory_mb"]) for row in rows}):
        own = [row for row in rows if int(row["memory_mb"]) == memory]
        lines.append(of_engines(f"{memory} MB", own, of, "{:,.0f}", lambda row: edges_per_second(row) / 1000))
    return lines


def parts(rows: Rows) -> list[str]:
    """Returns the table of the parts of an ingestion."""
    of = engines(rows)
    edges, log = int(rows[0]["edges"]), int(rows[0]["log_bytes"]) / 1e6
    lines = head(f"processor time, {edges:,} edges, {log:.0f} MB", [ENGINES[engine] for engine in of])
    for label, field in (
        ("read the log", "read_cpu_s"),
        ("fold it", "fold_cpu_s"),
        ("the engine's own part", "engine_cpu_s"),
        ("the whole", "whole_cpu_s"),
    ):
        lines.append(of_engines(label, rows, of, "{:.2f} s", seconds(field)))
    lines.append(of_engines("bytes per edge", rows, of, "{:,.1f}", bytes_per_edge))
    return lines


def labelled(lines: Sequence[str], labels: Mapping[str, str]) -> list[str]:
    """Returns a table whose first cells are words for people."""
    found = []
    for each in lines:
        first, rest = each.removeprefix("| ").split(" | ", 1)
        found.append(f"| {labels.get(first, first)} | {rest}")
    return found


def in_order(rows: Rows, field: str, order: Sequence[str]) -> Rows:
    """Returns the rows in the order of the values of a field."""
    return sorted(rows, key=lambda row: order.index(row[field]) if row[field] in order else len(order))


def places(rows: Rows) -> list[str]:
    """Returns the table of `mounted`."""
    order = [place.name for place in mounted.places("backstory", mounted.LIBFUSE, [])]
    return mounted.summary(in_order(rows, "place", order))


def shares(rows: Rows) -> list[str]:
    """Returns the table of `inspected`."""
    ordered: Rows = sorted(rows, key=lambda row: int(row["text_percent"]))
    return inspected.summary(ordered)


def throughput(*servers: Rows) -> list[str]:
    """Returns the table of the throughput of each server."""
    lines = head("throughput (tpmC)", ["native", "settings / native", "statements / native", "rows / native"])
    for rows in servers:
        native = statistics.median(float(row["tpmc"]) for row in rows if row["mode"] == "native")
        cells = [SERVERS[rows[0]["server"]], f"{native:,.0f}"]
        for mode in ("rows-unwatched", "statements", "rows"):
            ratios = paired(rows, "tpmc", mode, "native")
            cells.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        lines.append(line(cells))
    return lines


def response_times(*servers: Rows) -> list[str]:
    """Returns the table of mean response times on each server."""
    names = [SERVERS[rows[0]["server"]].split()[0] for rows in servers]
    lines = head("mean response time (ms), native, statements and rows", names)
    for transaction in TRANSACTIONS:
        cells = [transaction]
        for rows in servers:
            times = []
            for mode in ("native", "statements", "rows"):
                times.append(statistics.median(float(row[transaction]) for row in rows if row["mode"] == mode))
            cells.append(", ".join(f"{time:.1f}" for time in times))
        lines.append(line(cells))
    return lines


@dataclass(frozen=True)
class ResultTable:
    """A table of a page."""

    page: str
    kinds: tuple[str, ...]
    """The kinds of results that it is made of. It needs all."""
    lines: Callable[..., list[str]]
    """Makes the table of the rows of each kind."""
    figures: str = "Medians"
    """The word for the figures of the table, before the number of rounds."""
    is_printed: bool = False
    """True if the command also prints the table."""


def _tpcc(lines: Callable[..., list[str]], warehouses: str) -> ResultTable:
    return ResultTable(PERFORMANCE, (f"tpcc-postgres{warehouses}", f"tpcc-mariadb{warehouses}"), lines)


TABLES = {
    "engines": ResultTable(STORE, ("engines",), by_levels),
    "engines-every-block": ResultTable(STORE, ("engines-every-block",), by_levels),
    "engines-memory": ResultTable(STORE, ("engines-memory",), by_memory),
    "engines-parts": ResultTable(STORE, ("engines-parts",), parts),
    "durability": ResultTable(
        PERFORMANCE,
        ("durability",),
        lambda rows: labelled(durability.summary(in_order(rows, "workload", list(DURABLE))), DURABLE),
    ),
    "flushes": ResultTable(PERFORMANCE, ("flushes",), lambda rows: labelled(flushes.summary(rows), BEFORE)),
    "mounted": ResultTable(PERFORMANCE, ("mounted",), places),
    "mounted-larger": ResultTable(PERFORMANCE, ("mounted-larger",), places),
    "inspected": ResultTable(PERFORMANCE, ("inspected",), shares),
    "inspected-mounted": ResultTable(PERFORMANCE, ("inspected-mounted",), shares),
    "logforms": ResultTable(
        PERFORMANCE, ("logforms",), lambda rows: log_forms.summary(log_forms.in_order(rows)), "Low percentiles"
    ),
    "profiles": ResultTable(PROFILES, ("profiles",), profiles.summary, is_printed=True),
    "profiles-deep": ResultTable(PROFILES, ("profiles-deep",), profiles.summary, is_printed=True),
    "tpcc": _tpcc(throughput, ""),
    "tpcc-times": _tpcc(response_times, ""),
    "tpcc-10": _tpcc(throughput, "-10"),
    "tpcc-10-times": _tpcc(response_times, "-10"),
}
"""The tables by the names of their places in the pages."""


def kind_of(path: Path) -> str:
    """Returns what a file has, by its name."""
    known = {kind for table in TABLES.values() for kind in table.kinds}
    match = NAME.fullmatch(path.name)
    if match is None or match[1] not in known:
        raise SystemExit(
            f"backstory-bench: {path.name} is not DATE-KIND.csv with one of these kinds: {', '.join(sorted(known))}"
        )
    return match[1]


def read(paths: Sequence[Path]) -> dict[str, tuple[str, Rows]]:
    """Reads files of results: their names and rows, by kind."""
    found: dict[str, tuple[str, Rows]] = {}
    for path in paths:
        rows = all_rows(path)
        if not rows:
            raise SystemExit(f"backstory-bench: {path.name} has no results")
        paused = [mode for mode in (row.get("mode") or "" for row in rows) if has_pauses(mode)]
        if paused:
            raise SystemExit(
                f"backstory-bench: {path.name} has {paused[0]}, a measurement with pauses (--wait), "
                "and no page has a table of these"
            )
        found[kind_of(path)] = (path.name, rows)
    return found


def made(table: ResultTable, found: Mapping[str, tuple[str, Rows]]) -> list[str]:
    """Returns the lines of a table, with the line that names its results."""
    lacking = [kind for kind in table.kinds if kind not in found]
    if lacking:
        raise SystemExit(f"backstory-bench: the table also needs a file DATE-{lacking[0]}.csv")
    results = [found[kind] for kind in table.kinds]
    files = ", ".join(f"`bench/runs/{name}`" for name, _ in results)
    unit = "round" if "round" in results[0][1][0] else "message"
    counts = dict.fromkeys(len({row[unit] for row in rows}) for _, rows in results)
    lines = table.lines(*(rows for _, rows in results))
    number = " and ".join(map(str, counts))
    said = f"{table.figures} of {number} {unit}{'' if number == '1' else 's'} ({files})."
    return [*lines, "", *textwrap.wrap(said, 100, break_long_words=False, break_on_hyphens=False)]


def main_tables(args: argparse.Namespace) -> int:
    """Runs the command."""
    found = read([Path(path) for path in args.results])
    pages: dict[str, dict[str, list[str]]] = {}
    for name, table in TABLES.items():
        if any(kind in found for kind in table.kinds):
            lines = made(table, found)
            pages.setdefault(table.page, {})[name] = lines
            if table.is_printed:
                print("\n".join(lines))
    for page, tables in pages.items():
        put_tables(Path(args.root) / page, tables)
        print(f"renewed in {page}: {', '.join(tables)}")
    return 0


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command `tables`."""
    p = commands.add_parser("tables", help="renew the tables of performance, of the store and of profiles from results")
    p.add_argument("results", nargs="+", metavar="CSV", help="files named DATE-KIND.csv, as in bench/runs")
    p.add_argument("--root", default=".", help="the directory of the repository")
    p.set_defaults(do=main_tables)
