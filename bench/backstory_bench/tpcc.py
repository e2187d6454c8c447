"""Measures TPC-C on a database: natively, with the server's logs, and watched by backstory.

go-tpc (`github.com/pingcap/go-tpc`) makes the data once. Each round measures every mode once, in
random order, from a copy of that data and with a server of its own:

- native: the server with its default settings;
- statements: the settings that `backstory watch --rows off` needs, and this watch;
- rows: the settings that `backstory watch` needs for rows, too, and this watch;
- statements-unwatched, rows-unwatched: the settings alone, which say what the server's own part is.

The ratios compare modes of one round, and stand beside those of Story Book, which watches
statements. A watched measurement says whether its record is complete.

By default the clients make no pauses. With `--wait`, each client pauses as TPC-C demands: before a
transaction for the keying time, and after it for a random thinking time. Their modes have names of
their own, as `native-wait`, so no table compares the two kinds. The pauses limit the throughput,
whatever the server does. So the response times are the figures to compare.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import backstory_program, progress
from .database_servers import SERVERS, DatabaseServer, Recording
from .paper_data import paper_table
from .report import write_rows
from .stats import paired


@dataclass(frozen=True)
class Mode:
    """The settings of the server, and whether a watch records it."""

    settings: Recording
    watched: bool


MODES = {
    "native": Mode(Recording.NOTHING, watched=False),
    "statements-unwatched": Mode(Recording.STATEMENTS, watched=False),
    "statements": Mode(Recording.STATEMENTS, watched=True),
    "rows-unwatched": Mode(Recording.ROWS, watched=False),
    "rows": Mode(Recording.ROWS, watched=True),
}
PROMISED = "native,statements,rows"
"""The modes that are measured unless others are named."""
TRANSACTIONS = ("NEW_ORDER", "PAYMENT", "ORDER_STATUS", "DELIVERY", "STOCK_LEVEL")
FIELDS = ["server", "warehouses", "round", "mode", "tpmc", *TRANSACTIONS, "end_s", "log_bytes", "complete"]
"""The columns of transactions have mean response times in ms."""
SUMMARY = re.compile(r"^\[Summary\] (\w+) - .*?Count: (\d+).*?Avg\(ms\): ([\d.]+)", re.MULTILINE)
THROUGHPUT = re.compile(r"^tpmC: ([\d.]+)", re.MULTILINE)
PATIENCE_S = 600.0
PAUSES = "-wait"
"""The end of the name of a mode whose clients pause."""
TERMINALS = 10
"""The clients of each warehouse, as TPC-C demands."""


def label(mode: str, wait: bool) -> str:
    """Returns the name of a mode in results. `wait`: the clients pause as TPC-C demands."""
    return f"{mode}{PAUSES}" if wait else mode


def has_pauses(named: str) -> bool:
    """Returns whether the clients of a mode in results paused."""
    return named.endswith(PAUSES)


def parsed(printed: str, clients: int) -> dict[str, float]:
    """Returns the throughput and the mean response times (ms) that go-tpc printed.

    The end of the time interrupts a transaction of each client, which go-tpc counts as failed.
    """
    summaries = SUMMARY.findall(printed)
    found = {name: float(mean) for name, _, mean in summaries}
    throughput = THROUGHPUT.search(printed)
    failed = sum(int(count) for name, count, _ in summaries if name.endswith("_ERR"))
    lacking = [name for name in TRANSACTIONS if name not in found]
    if summaries and lacking and failed <= clients:
        raise SystemExit(f"backstory-bench: go-tpc executed no {lacking[0]} in its time: choose more --seconds")
    if throughput is None or lacking or failed > clients:
        raise SystemExit(f"backstory-bench: go-tpc failed: {printed[-800:]}")
    return {"tpmc": float(throughput[1])} | {name: found[name] for name in TRANSACTIONS}


def go_tpc(args: argparse.Namespace, server: DatabaseServer, port: int, *words: object) -> str:
    """Runs go-tpc, and returns its output."""
    command = [args.go_tpc, "tpcc", *words, "--warehouses", args.warehouses, "-d", server.driver, "-D", "tpcc"]
    command += ["-H", "127.0.0.1", "-P", port, "-U", "root"]
    if server.driver == "postgres":
        command += ["--conn-params", "sslmode=disable"]
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"backstory-bench: go-tpc fails with {done.returncode}: {done.stdout[-4000:]}")
    return done.stdout


def client_number(args: argparse.Namespace) -> int:
    """Returns the number of clients."""
    return int(args.threads or (TERMINALS * args.warehouses if args.wait else 1))


def run_words(args: argparse.Namespace) -> list[object]:
    """Returns the words by which go-tpc executes transactions."""
    words: list[object] = ["run", "-T", client_number(args), "--time", f"{args.seconds}s"]
    return [*words, "--wait"] if args.wait else words


def prepare(args: argparse.Namespace, server: DatabaseServer, data: Path) -> None:
    """Makes the data of all measurements."""
    server.make(data)
    with server.running(data, Recording.NOTHING) as port:
        server.execute(data, port, "CREATE DATABASE tpcc")
        go_tpc(args, server, port, "prepare", "-T", 2, "--no-check")


@contextmanager
def watch(words: Sequence[str], store: Path, result: dict[str, object]) -> Iterator[None]:
    """Runs a watch. Afterwards, `result` has the time of the end and the log's size."""
    environment = os.environ | {"BACKSTORY_STORE": str(store)}
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    first = process.stderr.readline()
    if " records " not in first:
        process.wait(PATIENCE_S)
        raise SystemExit(f"backstory-bench: backstory watch fails: {first}{process.stderr.read()}")
    try:
        yield
    finally:
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        process.wait(PATIENCE_S)
        result["end_s"] = f"{time.monotonic() - began:.2f}"
    result["complete"] = "no" if "not complete" in said else "yes"
    logs = (store / "runs").glob("*.log")
    result["log_bytes"] = sum(path.stat().st_size for path in logs)


def watch_words(server: DatabaseServer, port: int, recording: Recording) -> list[str]:
    """Returns the command of a watch."""
    rows = "on" if recording is Recording.ROWS else "off"
    backstory = backstory_program.chosen()
    return [backstory, "watch", server.name, "--rows", rows, server.connection(port)]


def chosen(text: str) -> list[str]:
    """Returns the modes of a list. Native is one of them, since the others are compared with it."""
    named = text.split(",")
    unknown = [mode for mode in named if mode not in MODES]
    if unknown or "native" not in named:
        wrong = f"{unknown[0]} is no mode" if unknown else "native is missing"
        raise SystemExit(f"backstory-bench: --modes {text}: {wrong}; the modes are {', '.join(MODES)}")
    return [mode for mode in MODES if mode in named]


def measure(
    args: argparse.Namespace, server: DatabaseServer, mode: str, prepared: Path, base: Path
) -> dict[str, object]:
    """Measures one mode."""
    top = Path(tempfile.mkdtemp(prefix="bench-tpcc-", dir=base))
    top.chmod(0o711)
    result: dict[str, object] = {}
    try:
        data = top / "data"
        subprocess.run(["cp", "-a", "--reflink=auto", prepared, data], check=True)
        os.sync()
        with server.running(data, MODES[mode].settings, args.setting, client_number(args)) as port:
            words = run_words(args)
            if MODES[mode].watched:
                with watch(watch_words(server, port, MODES[mode].settings), top / "store", result):
                    printed = go_tpc(args, server, port, *words)
            else:
                printed = go_tpc(args, server, port, *words)
        return parsed(printed, client_number(args)) | result
    finally:
        shutil.rmtree(top, ignore_errors=True)


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians, and of the paired ratios with the smallest and the largest.

    The last column has the ratio of Story Book to its database alone. Measurements with pauses have
    a table of their own.
    """
    tables = [table for table in (_table(rows, wait) for wait in (False, True)) if table]
    return [line for number, table in enumerate(tables) for line in ([""] if number else []) + table]


def _table(every: Sequence[Mapping[str, object]], wait: bool) -> list[str]:
    """Returns the table of the measurements with pauses, or of those without. It may be empty."""
    rows = [row for row in every if has_pauses(str(row["mode"])) == wait]
    named = {label(mode, wait): mode for mode in MODES}
    measured = {str(row["mode"]) for row in rows}
    modes = [mode for mode in named if mode in measured]
    if not modes:
        return []
    native = label("native", wait)
    others = [mode for mode in modes if mode != native]
    heads = ["", *modes, *(f"{mode} / {native}" for mode in others), "Story Book / regular"]
    lines = [_line(heads), _line(["---", *["---:"] * (len(heads) - 1)])]
    paper = {row["row"]: float(row["story_book"]) / float(row["regular"]) for row in paper_table("paper_tpcc.csv")}
    for field in ("tpmc", *TRANSACTIONS):
        cells = ["tpmC" if field == "tpmc" else f"{field} (ms)"]
        for mode in modes:
            cells.append(f"{statistics.median(float(str(row[field])) for row in rows if row['mode'] == mode):.1f}")
        for mode in others:
            found = paired(rows, field, mode, native)
            cells.append(f"{statistics.median(found):.3f} ({found[0]:.3f} to {found[-1]:.3f})")
        lines.append(_line([*cells, f"{paper[field]:.3f}"]))
    for mode in (mode for mode in modes if MODES[named[mode]].watched):
        complete = [row["complete"] == "yes" for row in rows if row["mode"] == mode]
        lines.append(f"\nComplete records of {mode}: {sum(complete)} of {len(complete)}.")
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main_tpcc(args: argparse.Namespace) -> int:
    """Runs the command."""
    server = SERVERS[args.server]
    lacking = server.missing()
    if lacking is None and shutil.which(args.go_tpc) is None:
        lacking = f"{args.go_tpc} is not installed (go build github.com/pingcap/go-tpc/cmd/go-tpc)"
    if lacking:
        print(f"SKIPPED: {lacking}")
        return 0
    modes = chosen(args.modes)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-tpcc-data-", dir=args.workdir) as made:
        top = Path(made)
        top.chmod(0o711)
        prepared = top / "data"
        prepare(args, server, prepared)
        for number in range(args.rounds):
            for mode in random.sample(modes, k=len(modes)):
                found = measure(args, server, mode, prepared, top)
                name = label(mode, args.wait)
                row = {"server": args.server, "warehouses": args.warehouses, "round": number, "mode": name} | found
                rows.append({field: row.get(field, "") for field in FIELDS})
                print(f"round {number + 1}, {name}: {row['tpmc']:.0f} tpmC", file=sys.stderr)
            progress.show(f"TPC-C: round {number + 1} of {args.rounds}")
        progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory_program.chosen())
    print("\n".join(summary(rows)))
    return 0
