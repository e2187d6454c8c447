"""Measures TPC-C on a database: natively, with the server's logs, and watched by backstory.

go-tpc (`github.com/pingcap/go-tpc`) makes the data once. Each round measures every mode once, in
random order, from a copy of that data and with a server of its own:

- native: the server with its default settings;
- logged: the settings that `backstory watch` needs, without a watch;
- watched: the same, and `backstory watch` records statements and rows.

The ratios compare modes of one round. A watched measurement says whether its record is complete.
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
from pathlib import Path

from . import progress
from .database_servers import SERVERS, DatabaseServer
from .report import write_rows
from .stats import paired

MODES = ("native", "logged", "watched")
TRANSACTIONS = ("NEW_ORDER", "PAYMENT", "ORDER_STATUS", "DELIVERY", "STOCK_LEVEL")
FIELDS = ["server", "warehouses", "round", "mode", "tpmc", *TRANSACTIONS, "end_s", "log_bytes", "complete"]
"""The columns of transactions have mean response times in ms."""
SUMMARY = re.compile(r"^\[Summary\] (\w+) - .*?Count: (\d+).*?Avg\(ms\): ([\d.]+)", re.MULTILINE)
THROUGHPUT = re.compile(r"^tpmC: ([\d.]+)", re.MULTILINE)
PATIENCE_S = 600.0


def parsed(printed: str) -> dict[str, float]:
    """Returns the throughput and the mean response times (ms) that go-tpc printed."""
    found = {name: float(mean) for name, _, mean in SUMMARY.findall(printed)}
    throughput = THROUGHPUT.search(printed)
    failed = [name for name in found if name.endswith("_ERR")]
    if throughput is None or failed or not all(name in found for name in TRANSACTIONS):
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


def prepare(args: argparse.Namespace, server: DatabaseServer, data: Path) -> None:
    """Makes the data of all measurements."""
    server.make(data)
    with server.running(data, False) as port:
        server.execute(data, port, "CREATE DATABASE tpcc")
        go_tpc(args, server, port, "prepare", "-T", 2, "--no-check")


@contextmanager
def watch(backstory: str, server: DatabaseServer, port: int, store: Path, result: dict[str, object]) -> Iterator[None]:
    """Watches the database. Afterwards, `result` has the time of the end and the log's size."""
    words = [backstory, "watch", server.name, server.connection(port)]
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
        with server.running(data, mode != "native", args.setting) as port:
            words = ["run", "-T", args.threads, "--time", f"{args.seconds}s"]
            if mode == "watched":
                backstory = os.environ.get("BACKSTORY", "backstory")
                with watch(backstory, server, port, top / "store", result):
                    printed = go_tpc(args, server, port, *words)
            else:
                printed = go_tpc(args, server, port, *words)
        return parsed(printed) | result
    finally:
        shutil.rmtree(top, ignore_errors=True)


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of medians, and of the paired ratios with the smallest and the largest."""
    lines = [
        "| | native | logged | watched | logged / native | watched / native |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for field in ("tpmc", *TRANSACTIONS):
        cells = ["tpmC" if field == "tpmc" else f"{field} (ms)"]
        for mode in MODES:
            cells.append(f"{statistics.median(float(str(row[field])) for row in rows if row['mode'] == mode):.1f}")
        for mode in MODES[1:]:
            found = paired(rows, field, mode, "native")
            cells.append(f"{statistics.median(found):.3f} ({found[0]:.3f} to {found[-1]:.3f})")
        lines.append("| " + " | ".join(cells) + " |")
    watched = [row for row in rows if row["mode"] == "watched"]
    complete = sum(row["complete"] == "yes" for row in watched)
    lines.append(f"\nComplete records: {complete} of {len(watched)}.")
    return lines


def main_tpcc(args: argparse.Namespace) -> int:
    """Runs the command."""
    server = SERVERS[args.server]
    lacking = server.missing()
    if lacking is None and shutil.which(args.go_tpc) is None:
        lacking = f"{args.go_tpc} is not installed (go build github.com/pingcap/go-tpc/cmd/go-tpc)"
    if lacking:
        print(f"SKIPPED: {lacking}")
        return 0
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-tpcc-data-", dir=args.workdir) as made:
        top = Path(made)
        top.chmod(0o711)
        prepared = top / "data"
        prepare(args, server, prepared)
        for number in range(args.rounds):
            for mode in random.sample(MODES, k=len(MODES)):
                found = measure(args, server, mode, prepared, top)
                row = {"server": args.server, "warehouses": args.warehouses, "round": number, "mode": mode} | found
                rows.append({field: row.get(field, "") for field in FIELDS})
                print(f"round {number + 1}, {mode}: {row['tpmc']:.0f} tpmC", file=sys.stderr)
            progress.show(f"TPC-C: round {number + 1} of {args.rounds}")
        progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, rows)
    print("\n".join(summary(rows)))
    return 0
