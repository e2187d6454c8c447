"""`backstory-bench scenes`: records servers and clients deeply, and reconstructs parts of them.

Of the record of a server, ten random requests are reconstructed, each alone. A client is recorded
ten times, and each run is reconstructed whole. A client that views many pages is recorded once, and
ten random requests of it are reconstructed. Programs without a peer are recorded with exact time,
once each. A case that fails is a row with its reason.

With `--tools`, a request of each server is reconstructed under these tools instead.
"""

from __future__ import annotations

import argparse
import ftplib
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import backstory_program, progress
from ..granularity import put_tables
from ..report import all_rows, write_rows
from ..web_servers import free_port
from .all_attempts import attempts_table, starts_table
from .beside_paper import beside_paper, needed
from .cases import CASES
from .clients import Client, ManyPages, serving
from .replays import CLIENT_SOCKET, OF_EXECUTIONS, Row, as_owner, backstory, index, reconstruct, record_words
from .scene import Scene
from .series import SERIES, series_row, series_table
from .tools import FIELDS as TOOL_FIELDS
from .tools import KIND as OF_TOOLS
from .tools import tool_rows, tools_table
from .verdicts import DIFFERENT, EQUAL, NOTHING, verdict_of
from .whole import Whole, command, record, whole_table

FIELDS = [
    "case",
    "kind",
    "recorded_calls",
    "requests",
    "request",
    "verdict",
    "tries",
    "clock_shift_ns",
    "fed",
    "calls",
    "request_calls",
    *OF_EXECUTIONS,
    "copy_obstacles",
    "share",
    "bytes_compared",
    "bytes_counted",
    "files_compared",
    "seconds",
    "unsteady",
    "why",
    "volatile_verdict",
    "volatile_why",
]

REQUESTS, PICKS = 5000, 10
REQUESTS_FOR_TOOLS = 30


def answered(requests: Sequence[Mapping[str, Any]], role: str) -> list[Mapping[str, Any]]:
    """Returns the requests in which a program of this role sent bytes.

    A connection on which nothing left has nothing to compare.
    """
    return [request for request in requests if request["role"] == role and request["bytes_out"] > 0]


def request_rows(
    scene: Scene, store: Path, rng: random.Random, args: argparse.Namespace, owner: str | None = None
) -> list[Row]:
    """Reconstructs some requests of a recorded program, each alone, or under each tool."""
    index(store, owner)
    words = backstory(store, "requests", scene.name, "--json")
    listed = subprocess.run(words, capture_output=True, text=True, check=True, **as_owner(owner))
    role = "client" if scene.is_client else "server"
    # A number with a fraction stays text: a moment has more digits than a float.
    requests = answered(json.loads(listed.stdout, parse_float=str), role)
    if not requests:
        raise RuntimeError(f"the record has no request of a {role} in which bytes left")
    picked = rng.sample(requests, min(args.picks, len(requests)))
    if args.tools:
        return tool_rows(scene.name, store, picked, args, owner)
    rows = []
    for number in (request["number"] for request in picked):
        row = reconstruct(store, scene.name, ["--request", str(number), "--tries", str(args.tries)], args.limit, owner)
        rows.append({"case": scene.name, "kind": role, "requests": len(requests), "request": number} | row)
        print(f"{scene.name}: request {number}: {row['verdict']} {row['why']}", file=sys.stderr)
    if args.series:
        numbers = [int(str(row["request"])) for row in rows]
        row = series_row(store, scene.name, numbers, args.limit * len(rows), owner)
        rows.append({"case": scene.name, "kind": SERIES, "requests": len(requests)} | row)
    return rows


def server_rows(scene: Scene, top: Path, args: argparse.Namespace) -> list[Row]:
    """Records a server under its requests, and reconstructs some of them."""
    rng = random.Random(args.seed)
    store, port = top / "store", free_port()
    work = top / "work"
    work.mkdir(mode=0o755)
    if scene.user and os.geteuid() == 0:
        for path in (top, work):
            shutil.chown(path, scene.user, scene.user)
    count = scene.count(args.requests)
    if count < args.requests:
        print(f"{scene.name}: makes {count} requests only, because each one takes long", file=sys.stderr)
    with scene.running(work, port, record_words(store, scene.name, *args.record)):
        scene.drive(work, port, count, rng)
    return request_rows(scene, store, rng, args, scene.user if os.geteuid() == 0 else None)


def record_client(scene: Client, store: Path, name: str, rng: random.Random, args: argparse.Namespace) -> None:
    """Records one run of a client. Its server is not recorded."""
    top = store.parent
    path = scene.prepare(top, rng)
    pem = scene.pem(top)
    with serving(top, pem, scene.handler) as port:
        words = scene.words_for(top, f"{'https' if pem else 'http'}://127.0.0.1:{port}/{path}")
        # A file that is younger than one tick of the file system's clock has no known content.
        time.sleep(0.05)
        subprocess.run(
            [*record_words(store, name, *args.record), *words],
            capture_output=True,
            check=False,
            cwd=top,
            env=scene.environment(top),
            timeout=args.limit,
        )


def client_rows(scene: Client, top: Path, args: argparse.Namespace) -> list[Row]:
    """Records a client several times, and reconstructs each run.

    A client that views many pages is recorded once, and some of its requests are reconstructed.
    """
    rng = random.Random(args.seed)
    store = top / "store"
    if isinstance(scene, ManyPages):
        record_client(scene, store, scene.name, rng, args)
        return request_rows(scene, store, rng, args)
    rows = []
    for number in range(args.picks):
        name = f"{scene.name}-{number}"
        record_client(scene, store, name, rng, args)
        index(store, None)
        row = reconstruct(store, name, [], args.limit)
        rows.append(
            {"case": scene.name, "kind": "client", "requests": 1, "request": number, "tries": 1, "fed": 0} | row
        )
        print(f"{scene.name}: run {number}: {row['verdict']} {row['why']}", file=sys.stderr)
    return rows


def whole_rows(scene: Whole, top: Path, args: argparse.Namespace) -> list[Row]:
    """Records each program of a case with exact time, and reconstructs it."""
    rows = []
    for number, run in enumerate(scene.runs()):
        place, name = top / str(number), f"{scene.name}-{number}"
        work, store = place / "work", place / "store"
        work.mkdir(parents=True)
        row: Row
        try:
            run.prepare(work)
            # A file that is younger than one tick of the file system's clock has no known content.
            time.sleep(0.05)
            words = [*record_words(store, name, "--time", "exact", *args.record), *command(run, work)]
            record(words, work, scene.environment(work), args.limit)
            index(store, None)
            row = reconstruct(store, name, [], args.limit, texts=True)
            if scene.volatile and row["verdict"] == DIFFERENT:
                again = reconstruct(store, name, ["--volatile", scene.volatile], args.limit, texts=True)
                row |= {"volatile_verdict": again["verdict"], "volatile_why": again.get("why", "")}
        except FAILURES as error:
            row = {"verdict": "failed", "why": " ".join(str(error).split())[:300]}
        rows.append({"case": scene.name, "kind": "whole", "requests": 1, "request": run.name} | row)
        print(f"{scene.name}: {run.name}: {row['verdict']} {row['why']}", file=sys.stderr)
        if args.keep is None:
            shutil.rmtree(place, ignore_errors=True)
    return rows


FAILURES: tuple[type[BaseException], ...] = (
    *ftplib.all_errors,
    http.client.HTTPException,
    RuntimeError,
    subprocess.SubprocessError,
)
"""The exceptions of a case that cannot be recorded."""


def scene_rows(scene: Scene, args: argparse.Namespace) -> list[Row]:
    """Returns the rows of one case. A case that cannot be recorded is one row."""
    top = Path(tempfile.mkdtemp(prefix="bench-scenes-", dir=args.workdir))
    top.chmod(0o755)
    try:
        if isinstance(scene, Whole):
            return whole_rows(scene, top, args)
        if isinstance(scene, Client):
            return client_rows(scene, top, args)
        return server_rows(scene, top, args)
    except FAILURES as error:
        why = " ".join(str(error).split())[:300]
        print(f"{scene.name}: failed: {why}", file=sys.stderr)
        kind = OF_TOOLS if args.tools else "client" if scene.is_client else "server"
        return [{"case": scene.name, "kind": kind, "verdict": "failed", "why": why}]
    finally:
        if args.keep is None:
            shutil.rmtree(top, ignore_errors=True)


def nonzero(rows: Sequence[Mapping[str, object]], field: str) -> str:
    """Returns how many rows have another number than 0; empty if no row has the column."""
    found = [int(str(row[field])) for row in rows if row.get(field) not in (None, "")]
    return str(sum(value != 0 for value in found)) if found else ""


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the table: for each case the verdicts, the median share, and the attempts."""
    lines = [
        "| program | calls recorded | reconstructed (median) | equal | volatile | partly | nothing compared | other "
        "| unsteady | tries | shifted | first difference |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name in dict.fromkeys(str(row["case"]) for row in rows):
        own = [row for row in rows if row["case"] == name]
        done = [row for row in own if row.get("calls") not in (None, "")]

        def median(field: str, of: Sequence[Mapping[str, object]] = done) -> float:
            return statistics.median(float(str(row[field])) for row in of) if of else 0.0

        verdicts = [verdict_of(row) for row in own]
        counts = [verdicts.count(word) for word in (*EQUAL, NOTHING)]
        why = next((str(row["why"]) for row in own if row["verdict"] not in EQUAL), "")
        tries = sorted(int(str(row["tries"])) for row in done if row.get("tries"))
        cells = [
            name,
            f"{median('recorded_calls'):.0f}",
            f"{median('calls'):.0f} ({100 * median('share'):.2f} %)",
            *map(str, counts),
            str(len(own) - sum(counts)),
            nonzero(own, "unsteady"),
            f"{tries[0]} to {tries[-1]}" if tries else "",
            nonzero(own, "clock_shift_ns"),
            CLIENT_SOCKET.sub("the socket to its client", why).replace("|", "\\|"),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def tables_of(rows: Sequence[Mapping[str, object]]) -> dict[str, list[str]]:
    """Returns the tables that have rows, by their names on the page."""
    kinds = [row.get("kind") for row in rows]
    parts = [row for row, kind in zip(rows, kinds, strict=True) if kind not in ("whole", OF_TOOLS, SERIES)]
    tables = {}
    if parts or not rows:
        tables = {
            "results": summary(parts),
            "requests": needed(parts),
            "attempts": attempts_table(parts),
            "paper": beside_paper(parts, EQUAL),
            "starts": starts_table(parts),
        }
    if SERIES in kinds:
        tables["series"] = series_table(rows)
    if "whole" in kinds:
        tables["whole"] = whole_table(rows, EQUAL)
    if OF_TOOLS in kinds:
        tables["tools"] = tools_table(rows)
    return tables


def main_scenes(args: argparse.Namespace) -> int:
    """Runs the command: reconstructs, or reads earlier results, and prints or renews the tables."""
    rows: list[Row] = []
    for path in args.results or []:
        rows += all_rows(path)
    if args.requests is None:
        args.requests = REQUESTS_FOR_TOOLS if args.tools else REQUESTS
    if args.picks is None:
        args.picks = 1 if args.tools else PICKS
    fields = TOOL_FIELDS if args.tools else FIELDS
    names = [] if args.results else args.cases.split(",")
    for number, name in enumerate(names):
        scene = CASES[name]
        lacking = scene.missing()
        if args.tools and (scene.is_client or isinstance(scene, Whole)):
            lacking = "--tools is for servers"
        if lacking:
            print(f"SKIPPED: {name}: {lacking}")
            continue
        progress.show(f"{name}: case {number + 1} of {len(names)}")
        rows += scene_rows(scene, args)
        progress.show("")
        if args.out:
            whole = [{field: row.get(field, "") for field in fields} for row in rows]
            write_rows(args.out, fields, whole, backstory_program.chosen())
    tables = tables_of(rows)
    print("\n\n".join("\n".join(lines) for lines in tables.values()))
    if args.page:
        put_tables(Path(args.page), tables)
    return 0
