"""Measures the storage engines with the workload of the Story Book paper (section 4).

The workload is a tree of directories with one file each. The tree has an arity of 14 and five
levels. A process of its own copies each file in blocks from the parent to the child.

The workload is recorded once for each number of levels. Then every engine takes in copies of the
same log: ingestion by the size of the log (figure 6). It answers 50 questions about random files,
the first 10 first (figure 9). Each question is a process of its own. Each round takes the engines
in random order, because other programs use the machine, too.

A server of PostgreSQL is run for the engine `postgresql`. Each store has a database of its own
there. The processor time of the server is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import backstory_program, progress
from .database_servers import SERVERS, Recording
from .report import write_rows

FIELDS = [
    "engine",
    "levels",
    "round",
    "log_bytes",
    "edges",
    "graph_bytes",
    "ingest_s",
    "cpu_s",
    "questions_s",
    "questions_cpu_s",
]
ARITY = 14
QUESTIONS = 50
STEP = 10
SEED = 20090223
POSTGRESQL = "postgresql"
NOT_BUILT = b"without which this program was built"
"""In the message about a store whose engine the program does not have."""


@dataclass(frozen=True)
class Tree:
    """The directories of the workload: paths from the top, each parent before its children."""

    arity: int
    levels: int

    def paths(self) -> list[str]:
        """Returns the directories. The top is `.`."""
        last, found = ["."], ["."]
        for _ in range(self.levels - 1):
            last = [f"{parent}/{child}" for parent in last for child in range(self.arity)]
            found += last
        return found

    def write(self, top: Path, size: int, block: int) -> Path:
        """Makes the directories and the first file. Returns the script that copies the others."""
        lines = []
        for path in self.paths():
            (top / path).mkdir(parents=True, exist_ok=True)
            if path != ".":
                parent = path.rsplit("/", 1)[0]
                lines.append(f"dd if={parent}/file of={path}/file bs={block} status=none")
        (top / "file").write_bytes(random.Random(SEED).randbytes(size))
        script = top / "copy.sh"
        script.write_text("\n".join([*lines, ""]))
        return script


@dataclass(frozen=True)
class Ingestion:
    """One log, taken in by one engine."""

    log_bytes: int
    edges: int
    graph_bytes: int
    elapsed: float
    processor: float


def backstory(words: Sequence[str], store: Path, top: Path) -> tuple[str, float, float]:
    """Runs a command. Returns its output, its elapsed time and its processor time in seconds."""
    argv = [backstory_program.chosen(), *words]
    environment = os.environ | {"BACKSTORY_STORE": str(store)}
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(
            argv, cwd=top, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(child.pid, 0)
        elapsed = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().decode(errors="surrogateescape")
        if child.returncode:
            raise SystemExit(f"backstory-bench: {' '.join(argv)}: {said.strip()}")
        return said, elapsed, used.ru_utime + used.ru_stime


def record(tree: Tree, top: Path, args: argparse.Namespace) -> Path:
    """Records the workload, and returns a store with a log that has all identities."""
    work, store = top / "work", top / "recorded"
    work.mkdir()
    script = tree.write(work, args.size, args.block)
    options = ["--contents", "off", "--suppress", "off" if args.every_block else "on"]
    backstory(["record", *options, "--", "sh", str(script)], store, work)
    # The first indexer adds identities to the log.
    backstory(["index", "--wait"], store, work)
    return store


@dataclass
class ServerDatabases:
    """A running server of PostgreSQL, on which each store has a new database."""

    data: Path
    port: int
    made: int = 0

    def connection(self) -> str:
        """Replaces the database before by an empty one. Returns the text that names it."""
        server = SERVERS["postgres"]
        server.execute(self.data, self.port, f"DROP DATABASE IF EXISTS store{self.made} WITH (FORCE)")
        self.made += 1
        server.execute(self.data, self.port, f"CREATE DATABASE store{self.made}")
        return f"postgresql://root@127.0.0.1:{self.port}/store{self.made}"


@contextmanager
def server_databases(workdir: str) -> Iterator[ServerDatabases]:
    """Runs a server."""
    server = SERVERS["postgres"]
    with tempfile.TemporaryDirectory(prefix="bench-engines-server-", dir=workdir) as made:
        top = Path(made)
        top.chmod(0o711)
        server.make(top / "data")
        with server.running(top / "data", Recording.NOTHING) as port:
            yield ServerDatabases(top / "data", port)


def prepare(engine: str, recorded: Path, store: Path, databases: ServerDatabases | None) -> None:
    """Makes a store with the logs of another one, and an empty database of an engine."""
    store.mkdir(mode=0o700)
    (store / "runs").mkdir(mode=0o700)
    shutil.copy(recorded / "format", store / "format")
    if databases is not None and engine == POSTGRESQL:
        words = ["store", "migrate", "--to", engine, "--connection", databases.connection()]
        backstory(words, store, store.parent)
    elif engine != "sqlite":
        (store / "engine").write_text(engine + "\n")
    shutil.copytree(recorded / "runs", store / "runs", dirs_exist_ok=True)


def ingest(store: Path, top: Path) -> Ingestion:
    """Indexes the logs of a store."""
    _, elapsed, processor = backstory(["index", "--wait"], store, top)
    stats = json.loads(backstory(["store", "stats", "--json"], store, top)[0])
    return Ingestion(stats["log_bytes"], stats["edges"], stats["graph_bytes"], elapsed, processor)


def ask(tree: Tree, store: Path, work: Path) -> tuple[list[float], float]:
    """Asks where random files come from.

    Returns the seconds of the first 10, 20, … questions, and the processor time of all in seconds.
    """
    files = [path for path in tree.paths() if path != "."]
    chosen = random.Random(SEED).choices(files, k=QUESTIONS)
    total, processor, found = 0.0, 0.0, []
    for number, path in enumerate(chosen, 1):
        _, elapsed, used = backstory(["of", f"{path}/file", "--json"], store, work)
        total += elapsed
        processor += used
        if number % STEP == 0:
            found.append(total)
    return found, processor


def lacking(engine: str, top: Path) -> str | None:
    """Returns why an engine cannot be measured here."""
    if engine == POSTGRESQL and (missing := SERVERS["postgres"].missing()):
        return missing
    store = Path(tempfile.mkdtemp(dir=top))
    (store / "runs").mkdir()
    (store / "format").write_text("1\n")
    (store / "engine").write_text(engine + "\n")
    argv = [backstory_program.chosen(), "store", "stats", "--store", str(store)]
    done = subprocess.run(argv, capture_output=True, check=False)
    # A store on a server has no connection yet.
    if done.returncode == 0 or (engine == POSTGRESQL and NOT_BUILT not in done.stderr):
        return None
    return "the program was built without it"


def summary(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns a table: medians over the rounds, with the least and greatest ingestion."""
    questions = "".join(f" {count} questions (s) |" for count in range(STEP, QUESTIONS + 1, STEP))
    lines = [
        f"| Engine | Levels | Log (MB) | Edges/s | Least to greatest | Bytes an edge |{questions}",
        "| --- | ---: | ---: | ---: | ---: | ---: |" + " ---: |" * (QUESTIONS // STEP),
    ]
    for engine, levels in dict.fromkeys((row["engine"], row["levels"]) for row in rows):
        own = [row for row in rows if (row["engine"], row["levels"]) == (engine, levels)]
        edges = int(own[0]["edges"])
        rates = [edges / float(row["ingest_s"]) for row in own]
        size = statistics.median(int(row["graph_bytes"]) for row in own) / edges
        asked = zip(*([float(one) for one in row["questions_s"].split()] for row in own), strict=True)
        times = "".join(f" {statistics.median(column):.2f} |" for column in asked)
        lines.append(
            f"| {engine} | {levels} | {int(own[0]['log_bytes']) / 1e6:.1f} | {statistics.median(rates):,.0f} "
            f"| {min(rates):,.0f} to {max(rates):,.0f} | {size:.1f} |{times}"
        )
    return lines


def depths(text: str) -> list[int]:
    """Returns the numbers of levels. In a tree of one level no file is copied."""
    found = [int(one) for one in text.split(",")]
    if min(found) < 2:
        raise SystemExit(f"backstory-bench: --levels {text}: a tree has at least 2 levels")
    return found


def main_engines(args: argparse.Namespace) -> int:
    """Runs the command."""
    rows: list[dict[str, str]] = []
    levels_measured = depths(args.levels)
    with tempfile.TemporaryDirectory(prefix="bench-engines-", dir=args.workdir) as base, ExitStack() as servers:
        why_not = {engine: lacking(engine, Path(base)) for engine in args.engines.split(",")}
        chosen = [engine for engine, why in why_not.items() if why is None]
        for engine, why in why_not.items():
            if why is not None:
                print(f"SKIPPED {engine}: {why}", file=sys.stderr)
        databases = servers.enter_context(server_databases(args.workdir)) if POSTGRESQL in chosen else None
        for levels in levels_measured:
            tree = Tree(args.arity, levels)
            top = Path(base) / str(levels)
            top.mkdir()
            recorded = record(tree, top, args)
            # The database has the path of each directory, so its size depends on this path.
            print(f"{levels} levels: the tree is at {top / 'work'}", file=sys.stderr)
            for number in range(args.rounds):
                for engine in random.sample(chosen, k=len(chosen)):
                    store = top / engine
                    prepare(engine, recorded, store, databases)
                    done = ingest(store, top)
                    asked, asked_cpu = ask(tree, store, top / "work")
                    shutil.rmtree(store)
                    values = [engine, levels, number, done.log_bytes, done.edges, done.graph_bytes]
                    times = [f"{done.elapsed:.3f}", f"{done.processor:.3f}", " ".join(f"{one:.3f}" for one in asked)]
                    times.append(f"{asked_cpu:.3f}")
                    rows.append(dict(zip(FIELDS, [str(value) for value in [*values, *times]], strict=True)))
                if args.out:
                    # Five levels take long. An interrupted measurement has its rounds so far.
                    write_rows(args.out, FIELDS, rows, backstory_program.chosen())
                progress.show(f"engines: {levels} levels, round {number + 1} of {args.rounds}")
            if args.keep:
                shutil.copytree(recorded, Path(args.keep) / f"levels-{levels}")
            shutil.rmtree(top)
    progress.show("")
    rows.sort(key=lambda row: (int(row["levels"]), chosen.index(row["engine"])))
    print("\n".join(summary(rows)))
    return 0
