"""Measures web servers under load: natively, recorded, and recorded with their inputs and outputs.

Each round measures every mode once, in random order, with a new server and a new store. `ab` makes
the requests (the paper of C2SR: a million of them by eight clients). The ratios compare modes of
one round.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import progress
from .report import write_rows
from .stats import paired
from .web_servers import WEB_SERVERS, WebServer

NATIVE = "native"
MODES: dict[str, tuple[str, ...]] = {
    NATIVE: (),
    "record": ("record", "--contents", "off"),
    "deep": ("record", "--contents", "off", "--deep"),
}
FIELDS = ["server", "round", "mode", "requests_s", "mean_ms", "log_bytes", "body_bytes"]
SMALL = 1 << 10
SEED = 2013
RATE = re.compile(r"^Requests per second:\s+([\d.]+)", re.MULTILINE)
MEAN = re.compile(r"^Time per request:\s+([\d.]+) \[ms\] \(mean\)", re.MULTILINE)
FAILED = re.compile(r"^Failed requests:\s+(\d+)", re.MULTILINE)
TRANSFERRED = re.compile(r"^Total transferred:\s+(\d+) bytes", re.MULTILINE)


def parsed(printed: str) -> dict[str, float]:
    """Returns the requests per second, their mean time (ms) and the bytes that ab printed."""
    found = [pattern.search(printed) for pattern in (RATE, MEAN, TRANSFERRED, FAILED)]
    if None in found or (found[3] and found[3][1] != "0"):
        raise SystemExit(f"backstory-bench: ab failed: {printed[-800:]}")
    values = [float(match[1]) for match in found if match]
    return {"requests_s": values[0], "mean_ms": values[1], "body_bytes": values[2]}


def load(args: argparse.Namespace, port: int) -> dict[str, float]:
    """Makes the requests."""
    words = ["ab", "-q", "-n", str(args.requests), "-c", str(args.clients)]
    words += ["-k"] if args.keep_alive else []
    words.append(f"http://127.0.0.1:{port}/small")
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return parsed(done.stdout)


def log_bytes(store: Path) -> int:
    """Returns the bytes of all logs of a store."""
    return sum(path.stat().st_size for path in (store / "runs").glob("*") if path.is_file())


def measure(args: argparse.Namespace, server: WebServer, mode: str) -> dict[str, object]:
    """Measures one mode of one server."""
    top = Path(tempfile.mkdtemp(prefix="bench-servers-", dir=args.workdir))
    top.chmod(0o755)
    try:
        files = top / "files"
        files.mkdir()
        (files / "small").write_bytes(random.Random(SEED).randbytes(SMALL))
        before: list[str] = []
        if MODES[mode]:
            command, *options = MODES[mode]
            store = ["--store", str(top / "store")]
            before = [os.environ.get("BACKSTORY", "backstory"), command, *store, *options, "--"]
        with server.running(top, before) as port:
            found = load(args, port)
        return {**found, "log_bytes": log_bytes(top / "store") if before else 0}
    finally:
        shutil.rmtree(top, ignore_errors=True)


def summary(rows: Sequence[Mapping[str, object]], modes: Sequence[str]) -> list[str]:
    """Returns a table of medians, and of the paired ratios with the smallest and the largest."""
    recorded = [mode for mode in modes if mode != NATIVE]
    lines = [
        "| server | native (requests/s) | "
        + " | ".join(f"{mode} / native" for mode in recorded)
        + " | log (bytes a request) |",
        "| --- | ---: |" + " ---: |" * (len(recorded) + 1),
    ]
    for name in dict.fromkeys(str(row["server"]) for row in rows):
        own = [row for row in rows if row["server"] == name]
        native = [float(str(row["requests_s"])) for row in own if row["mode"] == NATIVE]
        cells = [name, f"{statistics.median(native):.0f}"]
        for mode in recorded:
            # The cost is the time of a request: the inverse of the rate.
            found = sorted(1 / each for each in paired(own, "requests_s", mode, NATIVE))
            cells.append(f"{statistics.median(found):.3f} ({found[0]:.3f} to {found[-1]:.3f})")
        logs = [
            float(str(row["log_bytes"])) / float(str(row["requests"])) for row in own if row["mode"] == recorded[-1]
        ]
        cells.append(f"{statistics.median(logs):.0f}" if logs else "")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main_servers(args: argparse.Namespace) -> int:
    """Runs the command."""
    modes = args.modes.split(",")
    if shutil.which("ab") is None:
        print("SKIPPED: ab is not installed (Debian package apache2-utils)")
        return 0
    rows: list[dict[str, object]] = []
    for name in args.servers.split(","):
        server = WEB_SERVERS[name]
        lacking = server.missing()
        if lacking:
            print(f"SKIPPED: {name}: {lacking}")
            continue
        for number in range(args.rounds):
            for mode in random.sample(modes, k=len(modes)):
                found = measure(args, server, mode)
                row = {"server": name, "round": number, "mode": mode, "requests": args.requests} | found
                rows.append(row)
                print(f"{name}, round {number + 1}, {mode}: {row['requests_s']:.0f} requests/s", file=sys.stderr)
            progress.show(f"{name}: round {number + 1} of {args.rounds}")
        progress.show("")
    if args.out:
        write_rows(args.out, FIELDS, [{field: row[field] for field in FIELDS} for row in rows])
    if rows:
        print("\n".join(summary(rows, modes)))
    return 0
