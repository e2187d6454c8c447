"""Measures web servers under load: natively, recorded, and recorded with their inputs and outputs.

Each round measures every mode once, in random order, with a new server and a new store. `ab` or
`wrk` makes the requests (the paper of C2SR: `ab`, a million of them by eight clients). The ratios
compare modes of one round.

With `--calls`, the system calls of a request are counted instead, once for each mode.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import backstory_program, deep_share, load_calls, load_profile, progress
from .collectors import COLLECTORS
from .collectors.base import all_bytes
from .deep_share import DeepShare
from .report import write_rows
from .stats import paired
from .web_load import LOADS
from .web_servers import WEB_SERVERS, WebServer

NATIVE = "native"
DEEP = "deep"


@dataclass(frozen=True)
class Mode:
    """The words before the server's command, and where they write."""

    words: tuple[str, ...] = ()
    """With `{log}` for a directory of the mode's own."""
    collector: str = "none"
    """The collector that says why the mode cannot run here."""
    stops_child: bool = False
    """True if a signal to these words does not end the server, as they trace it. The server then
    gets it itself.
    """


RECORD = ("{backstory}", "record", "--wait", "--store", "{log}", "--contents")
"""The run is indexed before the next measurement begins."""
MODES: dict[str, Mode] = {
    NATIVE: Mode(),
    "record": Mode((*RECORD, "off", "--"), "backstory"),
    DEEP: Mode((*RECORD, "off", "--deep", "--"), "backstory-deep"),
    f"{DEEP}-lazy": Mode((*RECORD, "lazy", "--deep", "--"), "backstory-deep-lazy"),
    f"{DEEP}-full": Mode((*RECORD, "off", "--deep", "--outputs", "full", "--"), "backstory-deep-full"),
    "strace": Mode(("strace", "-f", "-s", "65536", "-o", "{log}/strace.log"), "strace", stops_child=True),
    "rr": Mode(("rr", "record", "-o", "{log}/trace"), "rr", stops_child=True),
}
USUAL = (NATIVE, "record", DEEP, "strace", "rr")
"""The modes that are measured if none are named."""
USUAL_CALLS = (NATIVE, "record", DEEP)
"""The modes whose calls are counted if none are named."""
REQUESTS = 1_000_000
"""The requests of `ab`, if no other number is given."""
FIELDS = ["server", "round", "mode", "load", "requests", "requests_s", "mean_ms", "log_bytes", "body_bytes"]
FIELDS += deep_share.FIELDS
SMALL = 1 << 10
SEED = 2013


def log_bytes(mode: str, log: Path) -> int:
    """Returns the bytes of the log: those of the runs of a store, or of all files."""
    if "{backstory}" not in MODES[mode].words:
        return all_bytes(log)
    return sum(path.stat().st_size for path in (log / "runs").glob("*") if path.is_file())


def words_before(mode: str, log: Path) -> list[str]:
    """Returns the words before the server's command."""
    names = {"log": log, "backstory": backstory_program.chosen()}
    return [word.format(**names) for word in MODES[mode].words]


@contextmanager
def _directories(workdir: str) -> Iterator[tuple[Path, Path]]:
    """Makes a directory for a server, with a file to serve, and one for the log of its mode."""
    top = Path(tempfile.mkdtemp(prefix="bench-servers-", dir=workdir))
    top.chmod(0o755)
    try:
        files = top / "files"
        files.mkdir()
        (files / "small").write_bytes(random.Random(SEED).randbytes(SMALL))
        log = top / "log"
        log.mkdir()
        yield top, log
    finally:
        shutil.rmtree(top, ignore_errors=True)


def measure(args: argparse.Namespace, server: WebServer, mode: str, name: str) -> dict[str, object]:
    """Measures one mode of one server. `name`: that of its profile, if one is wanted."""
    with _directories(args.workdir) as (top, log):
        running = server.running(top, words_before(mode, log), MODES[mode].stops_child)
        with running as found, load_profile.profiled(args.perf, name):
            figures = LOADS[args.load].make(args, f"http://127.0.0.1:{found.port}/small", top)
        share = deep_share.of_store(log) if "--deep" in MODES[mode].words else None
        return {**figures, "log_bytes": log_bytes(mode, log), **deep_share.fields(share)}


def count(args: argparse.Namespace, server: WebServer, mode: str) -> Counter[str]:
    """Counts the system calls of one mode of one server."""
    with _directories(args.workdir) as (top, log):
        words = words_before(mode, log)
        with server.running(top, words) as found:
            with load_calls.counting(lambda: load_calls.server_processes(found.pid, bool(words))) as calls:
                load_calls.make_requests(found.port, "/small", args.requests)
            return calls


def summary(rows: Sequence[Mapping[str, object]], modes: Sequence[str]) -> list[str]:
    """Returns a table of medians, and of the paired ratios with the smallest and the largest."""
    recorded = [mode for mode in modes if mode != NATIVE]
    lines = [
        "| server | native (requests/s) | "
        + " | ".join(f"{mode} / native" for mode in recorded)
        + " | "
        + " | ".join(f"log of {mode} (bytes a request)" for mode in recorded)
        + " |",
        "| --- | ---: |" + " ---: |" * (2 * len(recorded)),
    ]
    for name in dict.fromkeys(str(row["server"]) for row in rows):
        own = [row for row in rows if row["server"] == name]
        native = [float(str(row["requests_s"])) for row in own if row["mode"] == NATIVE]
        cells = [name, f"{statistics.median(native):.0f}"]
        for mode in recorded:
            # The cost is the time of a request: the inverse of the rate.
            found = sorted(1 / each for each in paired(own, "requests_s", mode, NATIVE))
            cells.append(f"{statistics.median(found):.3f} ({found[0]:.3f} to {found[-1]:.3f})")
        for mode in recorded:
            logs = [float(str(row["log_bytes"])) / float(str(row["requests"])) for row in own if row["mode"] == mode]
            cells.append(f"{statistics.median(logs):.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def shares(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns a table of the deep logs before compression beside the I/O that they describe."""
    lines = []
    for name, mode in dict.fromkeys((str(row["server"]), str(row["mode"])) for row in rows):
        own = [row for row in rows if (row["server"], row["mode"]) == (name, mode)]
        share: DeepShare | None = deep_share.of_rows(own)
        if share is not None:
            lines.append(
                f"| {name}, {mode} | {share.moved} | {share.records} | {share.to_io:.3f} | {100 * share.other:.2f} % |"
            )
    if not lines:
        return []
    head = "| server | bytes of I/O | log before compression | log / I/O | of the log not I/O (the paper: 2.12 %) |"
    return [head, "| --- | ---: | ---: | ---: | ---: |", *lines]


def able(modes: Sequence[str]) -> list[str]:
    """Returns the modes that can run here. Prints the others with their reasons."""
    can = []
    for mode in modes:
        if mode not in MODES:
            raise KeyError(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
        lacking = COLLECTORS[MODES[mode].collector].missing()
        if lacking:
            print(f"SKIPPED: mode {mode}: {lacking}")
        else:
            can.append(mode)
    return can


def _present(names: str) -> Iterator[WebServer]:
    """Yields the named servers that can run here. Prints the others with their reasons."""
    for name in names.split(","):
        server = WEB_SERVERS[name]
        if lacking := server.missing():
            print(f"SKIPPED: {name}: {lacking}")
        else:
            yield server


def main_calls(args: argparse.Namespace) -> int:
    """Runs the command with `--calls`: one measurement of each mode of each server."""
    if lacking := load_calls.missing():
        print(f"SKIPPED: {lacking}")
        return 0
    modes = []
    for mode in able(list(dict.fromkeys([NATIVE, *args.modes.split(",")]))):
        if MODES[mode].stops_child:
            print(f"SKIPPED: mode {mode}: a process has one tracer only")
        else:
            modes.append(mode)
    rows: list[dict[str, object]] = []
    for server in _present(args.servers):
        for mode in modes:
            progress.show(f"{server.name}, {mode}: counting calls")
            try:
                calls = count(args, server, mode)
            except load_calls.CannotAttachError as error:
                print(f"SKIPPED: {server.name}, {mode}: {error}")
                continue
            rows += load_calls.rows_of(server.name, mode, calls)
            if args.out:
                note = load_calls.note(args.requests)
                write_rows(args.out, load_calls.FIELDS, rows, backstory_program.chosen(), note)
        progress.show("")
    if rows:
        print("\n".join(load_calls.summary(rows, modes, args.requests)))
        print("\n".join(["", *load_calls.differences(rows, NATIVE, args.requests)]))
    return 0


def main_servers(args: argparse.Namespace) -> int:
    """Runs the command."""
    args.modes = args.modes or ",".join(USUAL_CALLS if args.calls else USUAL)
    args.requests = args.requests or (load_calls.REQUESTS if args.calls else REQUESTS)
    if args.calls:
        return main_calls(args)
    lacking = LOADS[args.load].missing() or (load_profile.missing() if args.perf else None)
    if lacking:
        print(f"SKIPPED: {lacking}")
        return 0
    # Ratios are to the native run of the same round.
    modes = able(list(dict.fromkeys([NATIVE, *args.modes.split(",")])))
    rows: list[dict[str, object]] = []
    for server in _present(args.servers):
        name = server.name
        for number in range(args.rounds):
            for mode in random.sample(modes, k=len(modes)):
                found = measure(args, server, mode, f"{name}-{mode}-{number}")
                row = {"server": name, "round": number, "mode": mode, "load": args.load} | found
                rows.append(row)
                print(f"{name}, round {number + 1}, {mode}: {row['requests_s']:.0f} requests/s", file=sys.stderr)
                if args.out:
                    write_rows(args.out, FIELDS, rows, backstory_program.chosen())
            progress.show(f"{name}: round {number + 1} of {args.rounds}")
        progress.show("")
    if rows:
        print("\n".join(summary(rows, modes)))
        print("\n".join(["", *shares(rows)]))
    return 0
