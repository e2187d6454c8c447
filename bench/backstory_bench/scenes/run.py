"""`backstory-bench scenes`: records servers and clients deeply, and reconstructs parts of them.

Of the record of a server, ten random requests are reconstructed, each alone. A client is recorded
ten times, and each run is reconstructed whole. A client that views many pages is recorded once, and
ten random requests of it are reconstructed. Programs without a peer are recorded with exact time,
once each. A case that fails is a row with its reason.
"""

from __future__ import annotations

import argparse
import ftplib
import http.client
import json
import os
import random
import re
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
from .scene import Scene
from .verdicts import DIFFERENT, EQUAL, NOTHING, verdict_of
from .whole import Whole, command, record, whole_table

OF_EXECUTIONS = (
    "executed_calls",
    "executed_start_calls",
    "start_calls",
    "start_s",
    "executed_s",
    "executed_start_s",
)
"""Columns of all attempts at a request, and of the start of the last one."""
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
CLIENT_SOCKET = re.compile(r"the socket to 127\.0\.0\.1:\d+|socket:\[\d+\]")
"""The other end of a connection, whose number differs from run to run."""
Row = dict[str, object]


def backstory(store: Path, *words: str) -> list[str]:
    """Returns a command of backstory with this store."""
    command, *rest = words
    return [backstory_program.chosen(), command, "--store", str(store), *rest]


def difference(answer: Mapping[str, Any], texts: bool = False) -> str:
    """Returns the first difference of a reconstruction in a few words. `texts`: with both sides."""
    found = answer["reconstruction"]
    if found is None:
        return "no reconstruction"
    if found["stopped"]:
        return str(found["stopped"])
    for process in found["processes"]:
        differs = process["difference"]
        if differs:
            words = f"{differs['kind']} of {differs['object']}, byte {differs['position']}"
            if texts:
                words += f": recorded {differs['recorded'][:60]}, came {differs['came'][:60]}"
            return words
    if found["not_started"]:
        return f"{found['not_started'][0]} was not started again"
    return ""


def differing_file(answer: Mapping[str, Any]) -> str:
    """Returns the first file that is not as recorded, in a few words; empty if all are."""
    for output in answer["outputs"]:
        if output["state"] in ("different", "missing"):
            return f"{output['state']} file {output['path']}"
    return ""


def judged(answer: Mapping[str, Any], texts: bool = False) -> tuple[str, str]:
    """Returns the verdict of a reconstruction, and its first difference in a few words.

    The verdict of the programs has their connections and pipes. A file that differs counts, too.
    """
    verdict = str(answer["reconstruction"]["verdict"])
    if verdict in EQUAL and not answer["identical"]:
        return DIFFERENT, differing_file(answer)
    return verdict, "" if verdict == "equal" else difference(answer, texts) or differing_file(answer)


def answer_row(answer: Mapping[str, Any], texts: bool = False) -> Row:
    """Returns the columns that an answer of `replay --deep --json` has."""
    found = answer["reconstruction"]
    verdict, why = judged(answer, texts)
    row: Row = {"verdict": verdict, "calls": found["calls"], "recorded_calls": found["recorded_calls"]}
    row |= {name: found[name] for name in ("tries", "clock_shift_ns")}
    request = found["request"]
    if request:
        row |= {"fed": len(request["fed"]), "request_calls": request["calls"]}
        # Earlier builds do not have all of them.
        row |= {name: request.get(name, "") for name in OF_EXECUTIONS}
        row["copy_obstacles"] = "; ".join(request["copy_obstacles"])
    row["share"] = f"{found['calls'] / max(found['recorded_calls'], 1):.6f}"
    row["bytes_compared"] = sum(process["bytes_compared"] for process in found["processes"])
    row["bytes_counted"] = sum(process["bytes_counted"] for process in found["processes"])
    row["files_compared"] = found["files"]["equal"] + found["files"]["different"]
    row["unsteady"] = found["unsteady"]
    row["why"] = why
    return row


def reconstruct(
    store: Path, run: str, more: Sequence[str], limit: float, owner: str | None = None, texts: bool = False
) -> Row:
    """Reconstructs a run or a part of it, as the owner of the store."""
    with tempfile.TemporaryDirectory(prefix="scene-") as out:
        if owner:
            shutil.chown(out, owner, owner)
        words = backstory(store, "replay", run, "--deep", "--json", "--output-dir", f"{out}/replay", *more)
        began = time.monotonic()
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=limit, user=owner, cwd=out
            )
        except subprocess.TimeoutExpired:
            return {"verdict": "failed", "seconds": f"{limit:.1f}", "why": f"no result within {limit:.0f} s"}
        seconds = f"{time.monotonic() - began:.2f}"
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"verdict": "failed", "seconds": seconds, "why": done.stderr.strip()[-200:].replace("\n", " ")}
    return answer_row(answer, texts) | {"seconds": seconds}


def record_words(store: Path, name: str, *more: str) -> list[str]:
    """Returns the words before a command that is recorded deeply."""
    words = ("record", "--deep", "--outputs", "full", "--contents", "lazy", "--name", name)
    return [*backstory(store, *words), *more, "--"]


def index(store: Path, owner: str | None) -> None:
    """Waits until a run is in the store."""
    subprocess.run(backstory(store, "index", "--wait"), check=True, capture_output=True, user=owner)


def answered(requests: Sequence[Mapping[str, Any]], role: str) -> list[int]:
    """Returns the numbers of the requests in which a program of this role sent bytes.

    A connection on which nothing left has nothing to compare.
    """
    return [request["number"] for request in requests if request["role"] == role and request["bytes_out"] > 0]


def request_rows(
    scene: Scene, store: Path, rng: random.Random, args: argparse.Namespace, owner: str | None = None
) -> list[Row]:
    """Reconstructs some requests of a recorded program, each alone."""
    index(store, owner)
    words = backstory(store, "requests", scene.name, "--json")
    listed = subprocess.run(words, capture_output=True, text=True, check=True, user=owner)
    role = "client" if scene.is_client else "server"
    numbers = answered(json.loads(listed.stdout), role)
    if not numbers:
        raise RuntimeError(f"the record has no request of a {role} in which bytes left")
    rows = []
    for number in rng.sample(numbers, min(args.picks, len(numbers))):
        row = reconstruct(store, scene.name, ["--request", str(number), "--tries", str(args.tries)], args.limit, owner)
        rows.append({"case": scene.name, "kind": role, "requests": len(numbers), "request": number} | row)
        print(f"{scene.name}: request {number}: {row['verdict']} {row['why']}", file=sys.stderr)
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
        return [
            {"case": scene.name, "kind": "client" if scene.is_client else "server", "verdict": "failed", "why": why}
        ]
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


def main_scenes(args: argparse.Namespace) -> int:
    """Runs the command: reconstructs, or reads earlier results, and prints or renews the tables."""
    rows: list[Row] = []
    for path in args.results or []:
        rows += all_rows(path)
    names = [] if args.results else args.cases.split(",")
    for number, name in enumerate(names):
        scene = CASES[name]
        lacking = scene.missing()
        if lacking:
            print(f"SKIPPED: {name}: {lacking}")
            continue
        progress.show(f"{name}: case {number + 1} of {len(names)}")
        rows += scene_rows(scene, args)
        progress.show("")
        if args.out:
            whole = [{field: row.get(field, "") for field in FIELDS} for row in rows]
            write_rows(args.out, FIELDS, whole, backstory_program.chosen())
    parts = [row for row in rows if row.get("kind") != "whole"]
    tables = {
        "results": summary(parts),
        "requests": needed(parts),
        "attempts": attempts_table(parts),
        "paper": beside_paper(parts, EQUAL),
        "starts": starts_table(parts),
    }
    if len(parts) < len(rows):
        tables["whole"] = whole_table(rows, EQUAL)
    print("\n\n".join("\n".join(lines) for lines in tables.values()))
    if args.page:
        put_tables(Path(args.page), tables)
    return 0
